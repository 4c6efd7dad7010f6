"""Grids: places as people write them, what is refused, the machine wormhole_n150."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.core.catalog import folder
from npusim.hw import placement
from npusim.hw.closed_forms import network_way_cycles
from npusim.hw.dump import dump_yaml
from npusim.hw.loader import load_machine, parse_machine

CROSSBAR = "noc: {kind: crossbar, clock_hz: 1 GHz, port_bytes_per_cycle: 64, latency_cycles: 10}"
GRID = {
    "rows": "3", "columns": "4", "hop_cycles": "2", "flit_bytes": "64",
    "link_bytes_per_cycle": "60",
}  # fmt: skip


def noc(kind="mesh", port="64", **fields):
    grid = ", ".join(f"{k}: {v}" for k, v in {**GRID, **fields}.items())
    ends = f"port_bytes_per_cycle: {port}, latency_cycles: 10"
    return f"noc: {{kind: {kind}, clock_hz: 1 GHz, {ends}, grid: {{{grid}}}}}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x1-3 y0", [(1, 0), (2, 0), (3, 0)]),
        ("x1,3 y0,2", [(1, 0), (3, 0), (1, 2), (3, 2)]),
        ("x0 y2-3; x5 y7", [(0, 2), (0, 3), (5, 7)]),
        (" x 0 - 1 , 4  y 9 ", [(0, 9), (1, 9), (4, 9)]),
    ],
)
def test_places_as_text(text, expected):
    assert placement.places(text) == expected


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=9))
def test_places_are_read_as_they_are_written(found):
    assert placement.places(placement.write(found)) == found


def test_places_by_rule():
    assert placement.row_by_row(5, 3) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]
    assert placement.sides(4, 4, 4) == [(0, 1), (3, 1), (0, 3), (3, 3)]
    assert placement.sides(1, 1, 1) == [(0, 0)]
    assert all(0 <= x < 5 and 0 <= y < 3 for x, y in placement.sides(16, 3, 5))


@pytest.mark.parametrize(
    ("noc_text", "message"),
    [
        (noc("crossbar"), "noc.grid: a crossbar has none; kinds with one: ring, mesh, torus"),
        (CROSSBAR.replace("crossbar", "torus"), "noc.grid: a torus needs one: rows, columns"),
        (noc("ring"), "noc.grid.rows: must be 1 in a ring, found 3"),
        (noc(one_way="true"), "noc.grid.one_way: must be false in a mesh: there would be no way"),
        (
            noc(port="65"),
            "noc.port_bytes_per_cycle: must be at most one flit per cycle, 64 B, foun",
        ),
        (
            noc(link_bytes_per_cycle="64.5"),
            "link_bytes_per_cycle: must be at most one flit per cyc",
        ),
        (noc(packet_bytes="100"), "noc.grid.packet_bytes: must be whole flits of 64 B"),
        (noc(rows="1", columns="1"), "noc.grid.rows: must give room to 2 cores, found 1 rows x 1"),
        (
            noc(places="{cores: x0-2 y0}"),
            "noc.grid.places.cores: must be 2 places, one per core, f",
        ),
        (noc(places="{cores: x1 y1; x1 y1}"), "places.cores: must differ, found x1 y1 twice"),
        (noc(places="{cores: x0-1 y3}"), "must lie inside 4 columns x 3 rows, found x0 y3"),
        (
            noc(places="{dram: x0 y0-2}"),
            "places.dram: must be at most 2 places, one per DRAM channe",
        ),
        (noc(places="{shared: x0 y0}"), "places.shared: there is no shared SRAM to place"),
        (
            noc(places="{cores: left}"),
            "places.cores: must be terms like 'x1-4,6-9 y1-5', separated",
        ),
        (noc(places="{cores: x3-1 y0}"), "must be ranges upwards below 4096, found '3-1'"),
        (noc(places="{cores: x1- y0}"), "must be numbers or ranges like 1-4, found '1-'"),
        (noc(first="z"), "noc.grid.first"),
        (noc(hops="3"), "unknown field 'hops' in noc.grid"),
    ],
)
def test_what_cannot_be_is_refused(spoilt, noc_text, message):
    assert message in spoilt(CROSSBAR, noc_text)


def test_a_grid_is_written_as_it_is_read(small):
    machine = parse_machine(small.replace(CROSSBAR, noc(places="{cores: x1-2 y1}"))).machine
    assert machine.noc.grid.core_places(2) == [(1, 1), (2, 1)]
    assert machine.noc.grid.dram_places(2) == [(0, 1), (3, 1)]
    assert parse_machine(dump_yaml(machine)).machine == machine


@pytest.mark.parametrize(
    ("kind", "fields", "way"),
    [
        ("mesh", {}, 10 + 2 * (3 + 2) / 2),
        ("torus", {"rows": "4"}, 10 + 2 * (3 + 2) / 2),
        ("torus", {"one_way": "true"}, 10 + 2 * (4 + 3) / 2),
        ("mesh", {"request_cycles": "8"}, 10 + 2 * (3 + 2) / 2 + 4),
    ],
)
def test_a_way_to_dram_is_the_mean_of_there_and_back(small, kind, fields, way):
    """From x1 y1 to DRAM at x3 y0 and x0 y2; a one-way ring is gone round by there and back."""
    text = noc(kind, places="{cores: x1 y1, dram: x3 y0; x0 y2}", **fields)
    one = small.replace("cores: 2", "cores: 1").replace(CROSSBAR, text)
    assert network_way_cycles(parse_machine(one).machine) == pytest.approx(way)


def test_the_catalogue_s_torus_machine():
    loaded = load_machine(folder("hwconfigs") / "wormhole_n150.yaml")
    machine, grid = loaded.machine, loaded.machine.noc.grid
    assert machine.dram.peak_bytes_per_s == 288e9
    assert machine.cores * machine.peak_matrix_flops_per_cycle("bf16") == 72 * 1024
    assert machine.core.sram.size_bytes == 16 * 93696
    assert len(set(grid.dram_places(12))) == 12
    assert not set(grid.core_places(72)) & set(grid.dram_places(12))
    assert loaded.provenance["noc.port_bytes_per_cycle"].kind == "measured"
