"""--hw-set: what it changes, and errors that point into the flag."""

from __future__ import annotations

import re

import pytest

from npusim.core.errors import InputError
from npusim.hw.loader import parse_machine
from npusim.hw.override import given_twice, override
from npusim.hw.provenance import Provenance


@pytest.fixture
def loaded(small):
    return parse_machine(small, "m.yaml")


def refused(loaded, *texts: str) -> str:
    with pytest.raises(InputError) as error:
        override(loaded, texts)
    return str(error.value)


def test_values_are_yaml_with_units(loaded):
    after = override(
        loaded,
        [
            "cores=4",
            "core.clock_hz=2GHz",
            "core.sram.banks = 16",
            "core.matrix.rates={bf16: 1}",
            "core.matrix.accumulate={bf16: fp32}",
            "core.matrix.zero_points=true",
            "shared_sram={size_bytes: 1 MiB, bytes_per_cycle: 64, latency_cycles: 9}",
        ],
    ).machine
    assert (after.cores, after.core.clock_hz, after.core.sram.banks) == (4, 2 * 10**9, 16)
    assert dict(after.core.matrix.rates) == {"bf16": 1.0}
    assert after.core.matrix.zero_points
    assert after.shared_sram.size_bytes == 1 << 20
    assert loaded.machine.cores == 2


def test_one_entry_of_a_mapping_and_null(loaded):
    after = override(loaded, ["core.matrix.rates.int8=4", "shared_sram=null"]).machine
    assert dict(after.core.matrix.rates) == {"bf16": 1.0, "int8": 4.0}
    assert after.shared_sram is None


def test_later_texts_win_and_all_are_remembered(loaded):
    once = override(loaded, ["cores=3", "cores=5"])
    assert once.machine.cores == 5
    again = override(once, ["core.sram.latency_cycles=1"])
    assert (again.machine.cores, again.machine.core.sram.latency_cycles) == (5, 1)
    assert again.overrides == ("cores=3", "cores=5", "core.sram.latency_cycles=1")
    assert again.source == "m.yaml"


def test_what_is_set_is_assumed_unless_it_says_otherwise(small):
    text = small.replace("dram:\n", "dram:\n  provenance: public\n")
    loaded = parse_machine(text)
    stated = "dram.bank_groups={value: 2, provenance: measured, source: me}"
    after = override(loaded, ["dram.timings_ns.rrd_s=4 ns", stated]).provenance
    assert after["dram.timings_ns.rrd_s"] == Provenance("assumed", "--hw-set")
    assert after["dram.bank_groups"] == Provenance("measured", "me")
    assert after["dram.timings_ns.rcd"].kind == "public"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "core.sram.bnaks=64",
            "--hw-set: unknown field 'bnaks' in core.sram\n"
            "    core.sram.bnaks=64\n"
            "              ^\n"
            "  nearest: core.sram.banks\n"
            "  allowed: bank_width_bytes, banks, interleave_words, latency_cycles, ports, "
            "size_bytes, stream_entries, swizzle",
        ),
        (
            "core.sarm.banks=64",
            "--hw-set: unknown field 'sarm' in core\n"
            "    core.sarm.banks=64\n"
            "         ^\n"
            "  nearest: core.sram.banks\n"
            "  allowed: accumulators, clock_hz, dma, matrix, sequencer, simt, sram, vector",
        ),
        (
            "core.clock_hz=2 GB",
            "--hw-set: core.clock_hz: expected a number with one of the units Hz, kHz, MHz, GHz, "
            "THz, found the unit 'GB'\n"
            "    core.clock_hz=2 GB\n"
            "                  ^",
        ),
        (
            "core.dma.port_bytes_per_cycle=512",
            "--hw-set: core.dma.port_bytes_per_cycle: must not exceed what all SRAM banks move, "
            "128 B/cycle, found 512\n"
            "    core.dma.port_bytes_per_cycle=512\n"
            "                                  ^",
        ),
        (
            "cores.x=3",
            "--hw-set: cores: expected a number, found a block of fields\n    cores.x=3\n    ^",
        ),
        (
            "cores=[1",
            "--hw-set: no valid YAML: did not find expected ',' or ']', while parsing a flow "
            "sequence\n    cores=[1\n          ^",
        ),
        ("cores=#4", "--hw-set: expected a value\n    cores=#4\n          ^"),
        ("cores", "--hw-set: expected KEY=VALUE, such as core.sram.banks=64, found 'cores'"),
        ("cores=", "--hw-set: expected KEY=VALUE, such as core.sram.banks=64, found 'cores='"),
        ("=4", "--hw-set: expected KEY=VALUE, such as core.sram.banks=64, found '=4'"),
    ],
)
def test_error_texts(loaded, text, expected):
    assert refused(loaded, text) == expected


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("sram.size", "core.sram.size_bytes"),
        ("core.sram.size", "core.sram.size_bytes"),
        ("cache.line", "cache.line_bytes"),
        ("sram.banks", "core.sram.banks"),
        ("banks", "core.sram.banks, core.simt.banks"),
        ("dram.timings.rcd", "dram.timings_ns.rcd"),
        ("latency_cycles", None),  # of many blocks: no hint
    ],
)
def test_the_nearest_field_is_told_by_its_whole_path(loaded, key, meant):
    error = refused(loaded, f"{key}=64")
    assert (f"  nearest: {meant}\n" in error) if meant else ("nearest" not in error)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (
            ("cores=2", "cores = 3"),
            "--hw-set: cores is given twice\n    cores = 3\n    ^\n  first: co",
        ),
        (("core.sram.banks=2", "core.sram={}"), "core.sram replaces what was given before it"),
        (("core.sram={}", "core.sram.banks=2"), None),
        (("core.sram.banks=2", "core.sram.ports=single"), None),
    ],
)
def test_flags_that_undo_each_other_are_told(texts, expected):
    found = "\n".join(map(str, given_twice(texts)))
    assert found.startswith("--hw-set: ") and expected in found if expected else not found


@pytest.mark.parametrize(
    ("texts", "field", "blamed", "met"),
    [
        (("core.matrix.rows=1024",), "core.accumulators.size_bytes", 0, "accumulators: {"),
        # Of 4 KiB of sums 64 x 4 take 1 KiB, 64 x 64 take 16.
        (("core.matrix.rows=64", "core.matrix.columns=64"), "core.accumulators.size_bytes", 1, ""),
        (("core.sram.banks=7", "cores=4"), "core.sram.size_bytes", 0, "sram: {size_bytes: 64 KiB"),
        (("cores=4", "noc.kind=mesh"), "noc.grid", 1, "noc: {kind: crossbar"),
        (("dram.timings_ns.rrd_s=6 ns",), "dram.timings_ns.rrd_l", 0, "rrd_l: 5 ns"),
    ],
)
def test_what_no_longer_goes_together_is_the_flags_fault(loaded, texts, field, blamed, met):
    """The line of the file that nobody touched is a hint, not the place."""
    lines = refused(loaded, *texts).splitlines()
    assert lines[0].startswith(f"--hw-set: {field}: ")
    assert lines[1].strip() == texts[blamed]
    assert lines[2].index("^") == 4 + texts[blamed].index("=") + 1
    assert re.match(rf"  see m\.yaml:\d+:\d+: {re.escape(met)}", lines[3])


def test_incomplete_new_block_points_at_the_flag(loaded):
    error = refused(loaded, "shared_sram.size_bytes=1 MiB")
    assert "--hw-set: missing field 'bytes_per_cycle' in shared_sram" in error
    assert "--hw-set: missing field 'latency_cycles' in shared_sram" in error


def test_all_flags_are_told_at_once(loaded):
    error = refused(loaded, "cores=[1", "x", "cores=-1", "core.sram.bnaks=1", "noc.kind=star")
    assert error.count("--hw-set: ") == 5
