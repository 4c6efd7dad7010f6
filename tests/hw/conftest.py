"""A small valid machine as text, to be spoilt in one place at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from npusim.core.errors import InputError
from npusim.hw.loader import parse_machine

SMALL = """\
name: small
cores: 2
core:
  clock_hz: 1 GHz
  matrix:
    rows: 8
    columns: 4
    dataflow: weight_stationary
    fold_overlap: weights
    rates: {bf16: 1, int8: 2}
    accumulate: {bf16: fp32, int8: int32}
  accumulators: {size_bytes: 4 KiB}
  vector: {lanes: 16, start_cycles: 8}
  sram: {size_bytes: 64 KiB, banks: 8, bank_width_bytes: 16, latency_cycles: 3}
  dma: {queues: 3, outstanding_requests: 16, descriptor_cycles: 12, port_bytes_per_cycle: 64}
  sequencer:
    {dispatch_cycles: 2, queue_depth: 16, signal_cycles: 2, wait_cycles: 1, semaphores: 16}
noc: {kind: crossbar, clock_hz: 1 GHz, port_bytes_per_cycle: 64, latency_cycles: 10}
dram:
  description: LPDDR5
  clock_hz: 800 MHz
  size_bytes: 2 GiB
  channels: 2
  width_bits: 16
  transfers_per_s: 6.4 GT/s
  burst_length: 16
  bank_groups: 4
  banks_per_group: 4
  row_bytes: 2 KiB
  interleave_bytes: 256 B
  timings_ns:
    rcd: 18.75 ns
    rp: 18.75 ns
    cl: 21.25 ns
    cwl: 11.25 ns
    ras: 42.5 ns
    rc: 61.25 ns
    wr: 35 ns
    rtp: 10 ns
    ccd_s: 2.5 ns
    ccd_l: 5 ns
    rrd_s: 5 ns
    rrd_l: 5 ns
    wtr_s: 6.25 ns
    wtr_l: 12.5 ns
    faw: 20 ns
    rfc: 280 ns
    refi: 3906 ns
host: {link_bytes_per_s: 8 GB/s, launch_ns: 10 us, flops_per_s: 10 GFLOP/s}
"""

Refusal = Callable[[str], str]


@pytest.fixture
def small() -> str:
    """The text of a valid machine."""
    return SMALL


@pytest.fixture
def refusal() -> Refusal:
    """The text of the errors that a machine's YAML gives; fails if it gives none."""

    def refuse(text: str) -> str:
        with pytest.raises(InputError) as error:
            parse_machine(text, "m.yaml")
        return str(error.value)

    return refuse


@pytest.fixture
def spoilt(small, refusal) -> Callable[[str, str], str]:
    """The errors after one text of the valid machine is replaced by another."""

    def spoil(old: str, new: str) -> str:
        assert small.count(old) == 1, f"{old!r} must stand in the machine once"
        return refusal(small.replace(old, new))

    return spoil
