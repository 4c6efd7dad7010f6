"""Quantities read and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.core import units
from npusim.core.units import UNITS, parse, write


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("512 KiB", "bytes", 524288),
        ("512KB", "bytes", 512000),
        ("1.5 MiB", "bytes", 1572864),
        ("1_024 B", "bytes", 1024),
        ("4096", "bytes", 4096),
        (4096, "bytes", 4096),
        ("1.6 GHz", "hertz", 1_600_000_000),
        ("1.600000001 GHz", "hertz", 1_600_000_001),
        ("1e3 MHz", "hertz", 1e9),
        ("500 ps", "nanoseconds", 0.5),
        ("20 us", "nanoseconds", 20000),
        ("12 cycles", "cycles", 12),
        ("2 KiB/cycle", "bytes_per_cycle", 2048),
        ("819.2 GB/s", "bytes_per_second", 819_200_000_000),
        ("6.4 GT/s", "transfers_per_second", 6_400_000_000),
        ("50 GFLOP/s", "flops_per_second", 5e10),
        ("64 bits", "bits", 64),
        (".5 us", "nanoseconds", 500),
        ("-3", "number", -3),
    ],
)
def test_parse(text, dimension, value):
    assert parse(text, dimension) == value


@pytest.mark.parametrize(
    ("text", "dimension", "message"),
    [
        ("4 MB", "hertz", "Hz, kHz, MHz, GHz, THz, found the unit 'MB'"),
        ("4 mib", "bytes", "did you mean MiB?"),
        ("4 m", "number", "expected a number, found the unit 'm'"),
        ("four", "bytes", "found 'four'"),
        ("", "number", "expected a number, found ''"),
        ("4 5", "number", "found '4 5'"),
        (True, "number", "expected a number, found true"),
    ],
)
def test_parse_refuses(text, dimension, message):
    with pytest.raises(ValueError, match="expected a number") as error:
        parse(text, dimension)
    assert message in str(error.value)


def test_huge_numbers_are_read_at_once():
    assert parse("1e999999999 KB", "bytes") == float("inf")
    assert parse("1e-999999999 KB", "bytes") == 0.0


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (4 << 20, "bytes", "4 MiB"),
        (1000, "bytes", "1000 B"),
        (0, "bytes", "0 B"),
        (1_600_000_000, "hertz", "1.6 GHz"),
        (14.2, "nanoseconds", "14.2 ns"),
        (20000.0, "nanoseconds", "20 us"),
        (0.3, "nanoseconds", "0.3 ns"),
        (512, "bytes_per_cycle", "512 B/cycle"),
        (64, "bits", "64 bits"),
        (0.25, "number", "0.25"),
        (7, "number", "7"),
    ],
)
def test_write(value, dimension, text):
    assert write(value, dimension) == text


@given(
    value=st.one_of(st.integers(0, 2**53), st.floats(0, 1e18, allow_subnormal=False)),
    dimension=st.sampled_from(sorted(UNITS)),
)
def test_what_is_written_is_read_back_exactly(value, dimension):
    assert parse(write(value, dimension), dimension) == value


def test_text_for_people():
    assert units.si(8.192e11, "B/s") == "819 GB/s"
    assert units.si(12, "FLOP") == "12 FLOP"
    assert units.kib(3 << 20) == "3 MiB"
    assert units.kib(100) == "100 B"
    assert [units.seconds(t) for t in (2.5, 2.5e-4, 3e-9)] == ["2.5 s", "250 us", "3 ns"]
