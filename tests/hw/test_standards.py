"""Tables of DRAM standards: what they hold, and what a machine takes from them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from npusim.core.catalog import folder
from npusim.core.errors import InputError
from npusim.hw.dump import dump_yaml
from npusim.hw.loader import load_machine, parse_machine
from npusim.hw.override import override
from npusim.hw.provenance import Provenance

DATA = Path(__file__).parents[1] / "data" / "memory" / "dram_timings.csv"
#: The set of timings behind each table: part of its source, its preset.
PRESETS = {
    "HBM2_1600": ("hbm2.py", "HBM2_8Gb/HBM2_1600Mbps"),
    "HBM2_2000": ("hbm2.py", "HBM2_8Gb/HBM2_2000Mbps"),
    "HBM2_2400": ("hbm2.py", "HBM2_8Gb/HBM2_2400Mbps"),
    "HBM3_6400": ("hbm3.py", "HBM3_16Gb_8hi/HBM3_6400Mbps"),
    "LPDDR5_6400": ("lpddr5.py", "LPDDR5_16Gb_x16/LPDDR5_6400"),
    "DDR4_2400": ("ddr4.py", "DDR4_8Gb_x8/DDR4_2400R"),
    "DDR4_3200": ("ddr4.py", "DDR4_8Gb_x8/DDR4_3200AA"),
    "DDR5_3200": ("ddr5.py", "DDR5_16Gb_x8/DDR5_3200BN"),
    "DDR5_4800": ("ddr5.py", "DDR5_16Gb_x8/DDR5_4800BN"),
    "DDR5_5600": ("ddr5.py", "DDR5_16Gb_x8/DDR5_5600AN"),
    "DDR5_6400": ("ddr5.py", "DDR5_16Gb_x8/DDR5_6400AN"),
    "GDDR6_14000": ("gddr6.py", "GDDR6_16Gb_x16/GDDR6_14000_1350mV_double"),
    "HBM2_2000_DRAMSIM3": ("HBM2_8Gb_x128.ini", "HBM2_8Gb_x128"),
    "LPDDR4_2400_DRAMSIM3": ("LPDDR4_8Gb_x16_2400.ini", "LPDDR4_8Gb_x16_2400"),
    "DDR4_3200_DRAMSIM3": ("DDR4_8Gb_x8_3200.ini", "DDR4_8Gb_x8_3200"),
}
COLUMNS = {
    "rcd": "RCD", "rcd_write": "RCDWR", "rp": "RP", "cl": "CL", "cwl": "CWL", "ras": "RAS",
    "rc": "RC", "wr": "WR", "rtp": "RTP", "ccd_s": "CCDS", "ccd_l": "CCDL", "rrd_s": "RRDS",
    "rrd_l": "RRDL", "wtr_s": "WTRS", "wtr_l": "WTRL", "faw": "FAW", "rfc": "RFC", "refi": "REFI",
}  # fmt: skip


@pytest.fixture(scope="module")
def presets():
    with DATA.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return lambda part, name: next(
        row for row in rows if part in row["source"] and row["preset"] == name
    )


def on_table(npu, name: str, *settings: str):
    """npu_a with two channels of another standard."""
    return npu(f"dram.standard={name}", "dram.channels=2", "dram.interleave_bytes=1 KiB", *settings)


@pytest.mark.parametrize("name", PRESETS)
def test_tables_have_the_published_clocks(npu, presets, name):
    """Each time, rounded up to command clocks, is the preset's; so are geometry and peak."""
    dram, row = on_table(npu, name).dram, presets(*PRESETS[name])
    for field, column in COLUMNS.items():
        value = dram.rcd_write_ns if field == "rcd_write" else getattr(dram.timings_ns, field)
        given = int(row[column] or row["RCD"])
        if field == "rrd_l":
            given = max(given, int(row["RRDS"]))  # one preset has it the other way round
        assert dram.clocks(value) == given, field
    assert dram.bank_groups * dram.banks_per_group == int(row["banks"])
    assert dram.bank_groups == int(row["bankgroups"])
    assert dram.pseudo_channels == int(row["pseudochannels"])
    assert dram.burst_bytes == int(row["bytes_per_burst"])
    assert dram.row_bytes == int(row["row_bytes"])
    assert dram.burst_clocks == int(row["nBL"])


@pytest.mark.parametrize(
    ("name", "peak"),
    [("LPDDR5_6400", 12.8), ("DDR5_4800", 19.2), ("HBM3_6400", 51.2), ("GDDR6_14000", 28.0)],
)
def test_peak_per_channel(npu, name, peak):
    """M22 to M25."""
    assert on_table(npu, name).dram.channel_bytes_per_s == peak * 1e9


def test_derived_table_says_so():
    """HBM2E has no public timing set: nanoseconds of HBM2, which the table states."""
    loaded = load_machine(folder("hwconfigs") / "npu_a.yaml")
    assert loaded.machine.dram.standard == "HBM2E_3200"
    assert loaded.provenance["dram.timings_ns.rc"].kind == "assumed"
    assert loaded.provenance["dram.timings_ns.rc"].source.startswith("derived from HBM2_2400")
    assert loaded.provenance["dram.clock_hz"].kind == "public"
    assert loaded.machine.dram.clocks(loaded.machine.dram.timings_ns.rc) == 76


def test_own_fields_win_and_are_the_machines(small):
    text = (
        small[: small.index("dram:")]
        + (
            "dram:\n  provenance: measured\n  source: a board\n  standard: LPDDR5_6400\n"
            "  channels: 2\n  size_bytes: 2 GiB\n  timings_ns: {rcd: 20 ns}\n"
        )
        + small[small.index("host:") :]
    )
    loaded = parse_machine(text)
    assert loaded.machine.dram.timings_ns.rcd == 20
    assert loaded.machine.dram.timings_ns.rp == 18.75
    assert loaded.provenance["dram.timings_ns.rcd"] == Provenance("measured", "a board")
    assert loaded.provenance["dram.timings_ns.rp"].kind == "public"
    assert "lpddr5.py" in loaded.provenance["dram.timings_ns.rp"].source


def test_another_standard_by_flag_keeps_what_the_machine_wrote():
    loaded = override(load_machine(folder("hwconfigs") / "npu_a.yaml"), ["dram.standard=HBM3_6400"])
    dram = loaded.machine.dram
    assert (dram.width_bits, dram.burst_length, dram.read_queue) == (32, 8, 128)
    assert (dram.channels, dram.interleave_bytes, dram.size_bytes) == (16, 1024, 32 << 30)
    assert "hbm3.py" in loaded.provenance["dram.timings_ns.rc"].source


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("HBM2E_3300", "--hw-set: the catalogue has no DRAM standard 'HBM2E_3300'"),
        ("HBM2E_3300", "nearest: HBM2E_3200"),
        ("./none.yaml", "./none.yaml: no such file"),
    ],
)
def test_unknown_tables_are_refused(value, message):
    with pytest.raises(InputError) as refused:
        override(load_machine(folder("hwconfigs") / "npu_a.yaml"), [f"dram.standard={value}"])
    assert message in str(refused.value)


def test_an_unknown_table_hides_no_other_mistake(small):
    """What it would have given is not missing; all else is told, in the order of the file."""
    block = "dram: {standard: HBM9, chanels: 2, size_bytes: 2 GiB, row_bytes: x}\n"
    text = small[: small.index("dram:")] + block + "host: {link_bytes_per_s: 8 GB/s}\n"
    with pytest.raises(InputError) as refused:
        parse_machine(text.replace("cores: 2", "cores: -2"), "m.yaml")
    told = [problem.message.partition(":")[0] for problem in refused.value.problems]
    assert told == [
        "cores",
        "the catalogue has no DRAM standard 'HBM9'",
        "unknown field 'chanels' in dram",
        "dram.row_bytes",
        "missing field 'launch_ns' in host",
        "missing field 'flops_per_s' in host",
    ]


@pytest.fixture
def own_table(tmp_path, small):
    """A machine file that names a table beside it; returns the machine's path."""

    def write(spoil=("", "")) -> Path:
        table = (folder("dram") / "LPDDR5_6400.yaml").read_text("utf-8").replace(*spoil)
        (tmp_path / "mine.yaml").write_text(table, "utf-8")
        block = "dram: {standard: ./mine.yaml, channels: 2, size_bytes: 2 GiB}\n"
        text = small[: small.index("dram:")] + block + small[small.index("host:") :]
        (tmp_path / "m.yaml").write_text(text, "utf-8")
        return tmp_path / "m.yaml"

    return write


def test_a_table_of_ones_own_lies_beside_the_machine(own_table):
    assert load_machine(own_table()).machine.dram.timings_ns.rc == 61.25


def test_mistakes_in_a_table_point_into_it(own_table):
    with pytest.raises(InputError) as refused:
        load_machine(own_table(("  rc: 61.25 ns", "  rc: 61.25 GHz")))
    assert "mine.yaml:" in str(refused.value)
    assert "dram.timings_ns.rc: expected a number with one of the units" in str(refused.value)
    with pytest.raises(InputError, match="mine.yaml:1:1: standard: a table cannot stand on"):
        load_machine(own_table(("# LPDDR5 at", "standard: DDR4_2400\n# LPDDR5 at")))


def test_a_machine_written_out_needs_no_table(own_table, tmp_path):
    machine = load_machine(own_table()).machine
    (tmp_path / "mine.yaml").unlink()
    assert parse_machine(dump_yaml(machine)).machine == machine


def test_every_table_has_a_line_of_description():
    for path in folder("dram").glob("*.yaml"):
        first = next(
            line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")
        )
        assert first.startswith("description: "), path.name


def test_mapping_survives_json(npu):
    machine = npu(
        "dram.address_mapping=[column, bank_group, pseudo_channel, bank, channel, row]",
        "dram.interleave_bytes=null",
    )
    assert json.loads(machine.model_dump_json())["dram"]["address_mapping"][0] == "column"
    assert type(machine).model_validate_json(machine.model_dump_json()) == machine


def test_granules_follow_from_the_mapping(npu):
    assert npu().dram.granule_bytes == 1024
    assert npu().dram.field_counts == (2, 4, 4, 16, 8, 4, 1 << 16)
    contiguous = npu(
        "dram.interleave_bytes=null",
        "dram.address_mapping=[pseudo_channel, bank_group, column, bank, row, channel]",
    ).dram
    assert contiguous.granule_bytes == 2 << 30
    finest = npu(
        "dram.interleave_bytes=null",
        "dram.address_mapping=[channel, column, pseudo_channel, bank_group, bank, row]",
    ).dram
    assert finest.granule_bytes == finest.burst_bytes == 32
