"""Machines from YAML: values, and errors by their exact text."""

from __future__ import annotations

import pytest

from npusim.core.catalog import folder
from npusim.core.errors import InputError
from npusim.hw.loader import load_machine, parse_machine


def test_values_in_base_units(small):
    machine = parse_machine(small).machine
    assert machine.core.clock_hz == 10**9
    assert machine.core.sram.size_bytes == 64 * 1024
    assert machine.dram.transfers_per_s == 6_400_000_000
    assert machine.dram.timings_ns.rcd == 18.75
    assert machine.host.launch_ns == 10_000
    assert machine.core.dma.request_bytes == 512
    assert machine.shared_sram is None
    assert dict(machine.core.matrix.rates) == {"bf16": 1.0, "int8": 2.0}


@pytest.mark.parametrize(
    ("text", "hertz"),
    [("1e9", 10**9), ("1_000_000_000", 10**9), ("2.5 GHz", 2_500_000_000), ('"1 GHz"', 10**9)],
)
def test_ways_to_write_a_number(small, text, hertz):
    loaded = parse_machine(small.replace("core:\n  clock_hz: 1 GHz", f"core:\n  clock_hz: {text}"))
    assert loaded.machine.core.clock_hz == hertz


def test_shipped_machines_are_what_they_claim():
    npu_a = load_machine(folder("hwconfigs") / "npu_a.yaml").machine
    assert (npu_a.cores, npu_a.core.matrix.rows, npu_a.core.matrix.columns) == (4, 128, 128)
    assert npu_a.dram.peak_bytes_per_s == 819.2e9
    assert npu_a.shared_sram.size_bytes == 32 << 20
    assert npu_a.core.sram.bandwidth_bytes_per_cycle == 2048
    assert npu_a.peak_matrix_flops_per_cycle("bf16") == 32768
    assert npu_a.peak_matrix_flops_per_cycle("fp32") == 8192
    assert npu_a.peak_matrix_flops_per_cycle("int32") == 0
    edge = load_machine(folder("hwconfigs") / "npu_edge.yaml").machine
    assert (edge.cores, edge.shared_sram) == (1, None)
    assert edge.dram.peak_bytes_per_s == 25.6e9
    assert edge.dram.burst_bytes == 32
    assert edge.tick_hz == 16_000_000_000
    assert edge.ticks_per_cycle == 32


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "banks: 8,",
            "bnaks: 8,",
            "m.yaml:14:30: unknown field 'bnaks' in core.sram\n"
            "      sram: {size_bytes: 64 KiB, bnaks: 8, bank_width_bytes: 16, latency_cycles: 3}\n"
            "                                 ^\n"
            "  nearest: core.sram.banks\n"
            "  allowed: bank_width_bytes, banks, interleave_words, latency_cycles, ports, "
            "size_bytes, stream_entries, swizzle",
        ),
        (
            "  clock_hz: 800 MHz\n",
            "",
            "m.yaml:19:1: missing field 'clock_hz' in dram: Command clock.\n    dram:\n    ^",
        ),
        (
            "size_bytes: 2 GiB",
            "size_bytes: 2 Gib",
            "m.yaml:22:15: dram.size_bytes: expected a number with one of the units B, KB, kB, "
            "KiB, MB, MiB, GB, GiB, TB, TiB, found the unit 'Gib'; did you mean GiB?\n"
            "      size_bytes: 2 Gib\n"
            "                  ^",
        ),
        (
            "fold_overlap: weights",
            "fold_overlap: pipelind",
            "m.yaml:9:19: core.matrix.fold_overlap: unknown choice 'pipelind'\n"
            "        fold_overlap: pipelind\n"
            "                      ^\n"
            "  nearest: pipelined\n"
            "  allowed: none, pipelined, weights",
        ),
        (
            "{bf16: 1, int8: 2}",
            "{bf61: 1, int8: 2}",
            "m.yaml:10:13: core.matrix.rates.bf61: unknown dtype 'bf61'\n"
            "        rates: {bf61: 1, int8: 2}\n"
            "                ^\n"
            "  nearest: bf16\n"
            "  allowed: bf16, bool, fp16, fp32, fp64, fp8e4m3, fp8e5m2, int16, int32, int64, int8, "
            "uint16, uint32, uint64, uint8",
        ),
        (
            "accumulators: {size_bytes: 4 KiB}",
            "accumulators: 4 KiB",
            "m.yaml:12:17: core.accumulators: expected a block of fields, found the text '4 KiB'\n"
            "      accumulators: 4 KiB\n"
            "                    ^\n"
            "  fields: size_bytes",
        ),
    ],
)
def test_error_texts(spoilt, old, new, expected):
    assert spoilt(old, new) == expected


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cores: 2", "cores: 0", "2:8: cores: must be greater than 0, found 0"),
        ("cores: 2", "cores: 2.5", "2:8: cores: must be a whole number, found 2.5"),
        ("cores: 2", "cores: '2'", "2:8: cores: expected a number, found the text '2'"),
        ("cores: 2", "cores: 010", "2:8: cores: expected a number, found the text '010'"),
        ("cores: 2", "cores: true", "2:8: cores: expected a number, found true"),
        ("cores: 2", "cores: [2]", "2:8: cores: expected a number, found a list"),
        ("cores: 2", "cores:", "2:7: cores: expected a number, found nothing"),
        ("cores: 2", f"cores: {'9' * 400}", "2:8: cores: is too large: found inf"),
        ("cores: 2", "cores: 1e300", "2:8: cores: is too large: found 1e+300"),
        ("queues: 3", "queues: 1", "core.dma.queues: must be at least 2, found 1"),
        ("start_cycles: 8", "start_cycles: -1", "must be at least 0, found -1"),
        ("start_cycles: 8", "start_cycles: 9e15", "must be at most 1000000 cycles, found 9000"),
        ("latency_cycles: 10", "latency_cycles: 1e7", "noc.latency_cycles: must be at most"),
        ("core:\n  clock_hz: 1 GHz", "core:\n  clock_hz: 500", "must be at least 1 MHz, found 500"),
        ("cores: 2", "cores: 1e7", "cores: must be at most 1024, found 10000000"),
        (
            "banks: 8,",
            "banks: 8, stream_entries: 65,",
            "stream_entries: must be at most 64, found 65",
        ),
        ("queues: 3", "queues: 1000", "core.dma.queues: must be at most 64, found 1000"),
        ("rates: {bf16: 1,", "rates: {bf16: 1e-300,", "rates.bf16: must be at least 1e-06, found"),
        ("rates: {bf16: 1,", "rates: {bf16: 1e300,", "rates.bf16: is too large: found 1e+300"),
        (": weights", ": [none]", "core.matrix.fold_overlap: expected a word, found a list"),
        ("64 KiB", "64.3 B", "must be a whole number of bytes, found 64.3 B"),
        ("64 KiB", "lots", "found 'lots'"),
        ("name: small", "name: a/b", "(it names the results folder), found 'a/b'"),
        ("name: small", "name: 7", "1:7: name: expected a text (numbers in quotes), found 7"),
        ("int8: 2}", "int8: 2}\n    zero_points: yes", "expected true or false, found the text"),
        ("rates: {bf16: 1, int8: 2}", "rates: 3", "rates: expected a block of fields, found 3"),
        ("{bf16: 1,", "{bfloat16: 1, bf16: 1,", "bfloat16 and bf16 are one format, given twice"),
    ],
)
def test_values_are_strict(spoilt, old, new, message):
    assert message in spoilt(old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{bf16: 1, int8: 2}", "{}", "10:12: core.matrix.rates: must name at least one dtype"),
        ("bf16: fp32, ", "", "11:17: core.matrix.accumulate: no accumulator dtype for bf16"),
        ("bf16: 1, ", "", "accumulate.bf16: has no rate: the array cannot run it"),
        ("bf16: fp32", "bf16: int32", "accumulate.bf16: must be a floating-point dtype"),
        ("int8: int32", "int8: fp32", "accumulate.int8: must be an integer dtype, found fp32"),
        ("int8: int32", "int8: bool", "accumulate.int8: must be an integer dtype, found bool"),
        ("bf16: fp32", "bf16: fp8e4m3", "must not be narrower than bf16, found fp8e4m3"),
        ("size_bytes: 4 KiB", "size_bytes: 64 B", "must hold one array tile of 8 x 4 x 4 B = 128"),
        ("size_bytes: 64 KiB", "size_bytes: 1000 B", "multiple of banks x bank_width_bytes = 128"),
        (
            "banks: 8,",
            "banks: 2,",
            "must not exceed what all SRAM banks move, 32 B/cycle, found 64",
        ),
        ("clock_hz: 800 MHz", "clock_hz: 800000001 Hz", "a burst of 16 transfers must take whole"),
        ("width_bits: 16", "width_bits: 12", "must be whole bytes, found 12 bits"),
        ("bank_groups: 4", "bank_groups: 3", "dram.bank_groups: must be a power of two, found 3"),
        (
            "row_bytes: 2 KiB",
            "row_bytes: 2000",
            "must be 32 B (a burst) times a power of two, found 2000",
        ),
        ("interleave_bytes: 256", "interleave_bytes: 64", "must be a multiple of 128 B"),
        ("interleave_bytes: 256 B", "interleave_bytes: 16 KiB", "must be at most 8192 B"),
        (
            "interleave_bytes: 256 B",
            "address_mapping: [channel, column, bank_group, pseudo_channel, bank, row]\n"
            "  interleave_bytes: 256 B",
            "must be left out where address_mapping has one column only",
        ),
        ("interleave_bytes: 256 B", "address_mapping: [row]", "pseudo_channel is missing"),
        ("interleave_bytes: 256 B", "address_mapping: row", "expected a list: each of pseudo_chan"),
        ("interleave_bytes: 256 B", "address_mapping: [rwo]", "'rwo' is no part of an address"),
        ("interleave_bytes: 256 B", "activate_command_clocks: 1.1", "whole quarters of a clock"),
        ("interleave_bytes: 256 B", "drain_low: 0.9", "must be below drain_high = 0.8"),
        ("interleave_bytes: 256 B", "drain_high: 1.1", "drain_high: must be at most 1, found 1.1"),
        (
            "interleave_bytes: 256",
            "interleave_bytes: 384",
            "must be 128 B times a power of two, found 384",
        ),
        ("size_bytes: 2 GiB", "size_bytes: 2 GB", "must be a multiple of 65536"),
        ("rc: 61.25 ns", "rc: 30 ns", "timings_ns.rc: must be at least rcd + rp = 37.5 ns"),
        ("faw: 20 ns", "faw: 4 ns", "timings_ns.faw: must be at least rrd_s = 5 ns, found 4 ns"),
        (
            "faw: 20 ns",
            "faw: 10000 ns",
            "faw: must be at most refi = 3906 ns, found 10000",
        ),
        (
            "refi: 3906 ns",
            "refi: 200 ns",
            "leave less than half of the time, found 200 ns",
        ),
        ("ras: 42.5 ns", "ras: 62 ns", "timings_ns.rc: must be at least ras = 62 ns, found 61.25"),
        ("ccd_l: 5 ns", "ccd_l: 1 ns", "timings_ns.ccd_l: must be at least ccd_s = 2.5 ns"),
        (
            "queues: 3",
            "queues: 3, request_bytes: 48",
            "must be whole DRAM bursts of 32 B, found 48",
        ),
        ("core:\n  clock_hz: 1 GHz", "core:\n  clock_hz: 999999937 Hz", "no common time base"),
        ("core:\n  clock_hz: 1 GHz", "core:\n  clock_hz: 999999937 Hz", "4:13: core.clock_hz: "),
        ("crossbar, clock_hz: 1 GHz", "crossbar, clock_hz: 1.000003 GHz", "noc.clock_hz: the clo"),
        ("  clock_hz: 800 MHz", "  clock_hz: 1e15", "dram.clock_hz: the clocks (core 1000000000"),
        (
            "channels: 2\n",
            "channels: 16384\n",
            "23:13: dram.channels: queues and DRAM channels must be at most 8192 together; "
            "beside the 11 queues of the cores and the host, found 16384 channels",
        ),
    ],
)
def test_what_cannot_be_together_is_refused_at_the_field(spoilt, old, new, message):
    assert message in spoilt(old, new)


def test_all_errors_at_once_in_the_order_of_the_file(refusal, small):
    text = small.replace("cores: 2", "cores: -2").replace("lanes: 16", "lane: 16")
    text = text.replace("kind: crossbar", "kind: star").replace("rrd_s: 5 ns", "rrd_s: 5 GHz")
    lines = [line for line in refusal(text).splitlines() if line.startswith("m.yaml")]
    assert [line.split(": ")[0] for line in lines] == [
        "m.yaml:2:8",
        "m.yaml:13:12",
        "m.yaml:18:13",
        "m.yaml:42:12",
    ]


def test_duplicate_keys_name_both_places(spoilt):
    error = spoilt("cores: 2", "cores: 2\ncores: 3")
    assert error == "m.yaml:3:1: cores is given twice\n    cores: 3\n    ^\n  first: m.yaml:2:1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "m.yaml: expected the fields of a machine, the file is empty\n  fields: name, desc"),
        ("# nothing\n", "the file is empty"),
        ("- a\n- b\n", "expected the fields of a machine, found a list"),
        ("just words", "expected the fields of a machine, found the text 'just words'"),
        (
            "a: 1\n\tb: 2\n",
            "m.yaml:2:1: no valid YAML: found a tab character that violates indentation",
        ),
        ("a: 1\n\tb: 2\n", "\n    \tb: 2\n    ^\n  indent with spaces, not with tabs"),
        ("a: b: c\n", "m.yaml:1:5: no valid YAML: mapping values are not allowed in this context"),
        ("a: [1,\n", "m.yaml:2:1: no valid YAML: did not find expected node content"),
        ("a: 'x\n", "no valid YAML: found unexpected end of stream, while scanning a quoted"),
        ("a: 1\nbé: \x07\n", "m.yaml:2:5: no valid YAML: control characters are not allowed"),
        ("a: *x\n", "m.yaml:1:4: no valid YAML: found undefined alias"),
        ("a: 1\n---\nb: 1\n", "m.yaml:2:1: no valid YAML: but found another document"),
        ("a: " + "[" * 600 + "]" * 600, "m.yaml:1:1: no valid YAML: nested too deeply"),
        ("a: " + "[" * 100_000, "m.yaml:1:"),
        ("\ud800: 1", "m.yaml:1:1: no valid YAML: not UTF-8"),
    ],
)
def test_text_that_is_no_machine(refusal, text, message):
    assert message in refusal(text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cores: 2", "cores: !weird 2", "m.yaml:2:8: tags are not used here: !weird"),
        ("cores: 2", "cores: 2\n? [a, b]\n: 1", "the name of a field must be a plain text"),
        ("host: {", "host: &h {self: *h, ", "an alias must not stand inside its own anchor"),
        ("host: {", "host: {<<: 4, ", "<< merges a block or a list of blocks"),
    ],
)
def test_yaml_beyond_values(spoilt, old, new, message):
    assert message in spoilt(old, new)


def test_aliases_and_merges_mean_what_they_say(small):
    text = small.replace("noc: {", "noc: &noc {").replace(
        "dram:\n",
        "shared_sram: {<<: [{latency_cycles: 7}], size_bytes: 1 MiB, bytes_per_cycle: 64}\ndram:\n",
    )
    assert parse_machine(text).machine.shared_sram.latency_cycles == 7
    text = small.replace("rcd: 18.75 ns", "rcd: &t 18.75 ns").replace("rp: 18.75 ns", "rp: *t")
    assert parse_machine(text).machine == parse_machine(small).machine


def test_merge_is_overridden_by_the_blocks_own_fields(small):
    text = small.replace("  vector: {lanes: 16", "  vector: {<<: {lanes: 99}, lanes: 16")
    assert parse_machine(text).machine.core.vector.lanes == 16


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="absent.yaml: No such file or directory"):
        load_machine(tmp_path / "absent.yaml")
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"name: caf\xe9\n")
    with pytest.raises(InputError, match="not UTF-8: byte 9 is 0xe9"):
        load_machine(path)
    with pytest.raises(InputError, match="Is a directory"):
        load_machine(tmp_path)


def test_byte_order_mark_is_no_character(tmp_path, small):
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + small.encode())
    assert load_machine(path).machine.name == "small"
