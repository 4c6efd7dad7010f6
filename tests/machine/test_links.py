"""Data sheet of the topologies: routes, mean hops, loads of links under uniform traffic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.machine.links import DOWN, LEFT, RIGHT, UP, WAYS, grid_params, hops


def all_routes(grids, machine, which=0):
    """(source, target, links) of every pair of routers."""
    g, nodes = grid_params(machine.noc), machine.noc.grid.nodes
    for source in range(nodes):
        for target in range(nodes):
            yield source, target, grids.route(which, source, target, g)


def uniform_load(grids, machine):
    """Flits per cycle over every link when each node sends one flit per cycle to any node."""
    nodes = machine.noc.grid.nodes
    load = np.zeros(nodes * WAYS)
    for _, _, links in all_routes(grids, machine):
        np.add.at(load, links, 1 / nodes)
    return load


def ways(grids, machine, source, target, which=0):
    return [
        int(link) % WAYS for link in grids.route(which, source, target, grid_params(machine.noc))
    ]


def test_a_mesh_saturates_at_half_a_flit_per_node(npu, grids):
    """8 x 8, XY: the middle links carry k/4 times the injection."""
    assert 1 / uniform_load(grids, grids.grid(npu)).max() == pytest.approx(0.5, abs=1e-9)


def test_mean_hops_of_a_mesh(npu, grids):
    """2 (k - 1/k) / 3 with k = 8, oneself included."""
    mean = np.mean([len(links) for _, _, links in all_routes(grids, grids.grid(npu))])
    assert mean == pytest.approx(5.25, abs=1e-9)


def test_a_torus_saturates_at_one_flit_per_node(npu, grids):
    """8 x 8, shortest ways: k/8 on every link, since ties are split between both directions."""
    load = uniform_load(grids, grids.grid(npu, "torus"))
    assert 1 / load.max() == pytest.approx(1.0, abs=0.001)
    assert load.min() == load.max()


def test_bisection_of_a_mesh(npu, grids):
    """4 x 4: 2 k links cross the middle, of 64 B per cycle each."""
    machine = grids.grid(npu, "mesh", 4, 4, "noc.grid.flit_bytes=64",
                         "noc.grid.link_bytes_per_cycle=64")  # fmt: skip
    g = grid_params(machine.noc)
    crossing = {
        int(link)
        for source, target, links in all_routes(grids, machine)
        for link in links
        if source % 4 < 2 <= target % 4 or target % 4 < 2 <= source % 4
        if (int(link) // WAYS % 4, int(link) % WAYS) in ((1, RIGHT), (2, LEFT))
    }
    assert g.columns == 4
    assert len(crossing) * machine.noc.grid.link_bytes_per_cycle == 512


@pytest.mark.parametrize(
    ("kind", "fields", "which", "expected"),
    [
        ("mesh", (), 0, [LEFT] * 7 + [UP] * 7),
        ("mesh", ("noc.grid.first=y",), 0, [UP] * 7 + [LEFT] * 7),
        ("torus", (), 0, [RIGHT, DOWN]),
        ("torus", ("noc.grid.one_way=true",), 0, [RIGHT, DOWN]),
        ("torus", ("noc.grid.one_way=true", "noc.grid.networks=2"), 1, [LEFT] * 7 + [UP] * 7),
        (
            "torus",
            ("noc.grid.one_way=true", "noc.grid.networks=2", "noc.grid.first=alternate"),
            1,
            [UP] * 7 + [LEFT] * 7,
        ),
    ],
)
def test_the_way_from_the_last_corner_to_the_first(npu, grids, kind, fields, which, expected):
    machine = grids.grid(npu, kind, 8, 8, *fields)
    assert ways(grids, machine, 63, 0, which) == expected


def test_a_ring_goes_the_shorter_way_round(npu, grids):
    machine = grids.grid(npu, "ring", 1, 6)
    assert ways(grids, machine, 0, 2) == [RIGHT, RIGHT]
    assert ways(grids, machine, 1, 5) == [LEFT, LEFT]
    assert ways(grids, machine, 0, 3) == [RIGHT] * 3, "from even routers ties go right"
    assert ways(grids, machine, 1, 4) == [LEFT] * 3, "from odd ones left"


@given(
    st.sampled_from(["mesh", "torus"]), st.integers(1, 9), st.integers(1, 9), st.data(),
    st.sampled_from(["x", "y", "alternate"]),
)  # fmt: skip
def test_a_route_ends_at_its_target_and_passes_no_router_twice(npu, grids, kind, r, c, data, first):
    fields = ["noc.grid.networks=2", f"noc.grid.first={first}"]
    if kind == "torus":
        fields.append(f"noc.grid.one_way={'true' if data.draw(st.booleans()) else 'false'}")
    g = grid_params(grids.grid(npu, kind, r, c, *fields).noc)
    source, target = (data.draw(st.integers(0, r * c - 1)) for _ in range(2))
    which = data.draw(st.integers(0, 1))
    links = grids.route(which, source, target, g)
    routers = [int(link) // WAYS - which * r * c for link in links]
    assert len(set(routers)) == len(links) == hops(which, source, target, g)
    if links.size:
        assert routers[0] == source
        x, y = routers[-1] % c, routers[-1] // c
        step = {RIGHT: (1, 0), LEFT: (-1, 0), DOWN: (0, 1), UP: (0, -1)}[int(links[-1]) % WAYS]
        assert ((x + step[0]) % c, (y + step[1]) % r) == (target % c, target // c)
