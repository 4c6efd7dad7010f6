"""What a machine says of itself: derived numbers, time base, and being frozen."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from npusim.core.catalog import folder
from npusim.core.errors import InputError
from npusim.core.hashing import content_hash
from npusim.hw.loader import load_machine, parse_machine
from npusim.hw.machine import MAX_QUEUES, Machine
from npusim.hw.matrix import Accumulators
from npusim.hw.sram import Sram
from npusim.machine.heap import MAX_STREAMS


@pytest.fixture(scope="module")
def npu_a() -> Machine:
    return load_machine(folder("hwconfigs") / "npu_a.yaml").machine


def test_dram_geometry(npu_a):
    dram = npu_a.dram
    assert dram.burst_bytes == 32
    assert dram.row_set_bytes == 1024 * 2 * 4
    assert dram.channel_bytes_per_s == 51.2e9
    assert npu_a.dram_bytes_per_cycle == 819.2
    assert dram.unloaded_read_ns == 28.4


@pytest.mark.parametrize(("time_ns", "clocks"), [(0, 0), (0.625, 1), (14.2, 23), (47.5, 76)])
def test_times_round_up_to_whole_clocks(npu_a, time_ns, clocks):
    """At 1.6 GHz a clock is 0.625 ns; 47.5 ns are 76 of them exactly."""
    assert npu_a.dram.clocks(time_ns) == clocks


def test_time_base_is_the_least_common_multiple_of_the_clocks(npu_a):
    assert npu_a.tick_hz == 32_000_000_000
    assert npu_a.ticks_per_cycle == 32


def test_queues_are_as_many_as_the_engine_can_number(npu):
    assert MAX_QUEUES == MAX_STREAMS
    assert npu("core.dma.queues=5", "cores=1000").cores == 1000
    with pytest.raises(InputError, match="cores: .*beside 16 .*, found 1000 cores of 9 queues"):
        npu("core.dma.queues=7", "cores=1000")


def test_requests_and_banks_are_as_many_as_their_state_can_be_kept_of(npu):
    """16 queues x 65536 of them; 16 channels of 2 pseudo-channels with 2^15 banks each."""
    assert npu("core.dma.outstanding_requests=65536").requests_in_flight == 1 << 20
    with pytest.raises(InputError, match="outstanding_requests: at most 4194304 requests"):
        npu("core.dma.outstanding_requests=65536", "cores=64")
    more = ("dram.bank_groups=64", "dram.interleave_bytes=4 KiB", "dram.size_bytes=1 TiB")
    assert npu(*more, "dram.banks_per_group=512").dram.banks_per_group == 512
    with pytest.raises(InputError, match="at most 1048576 banks, found 2097152"):
        npu(*more, "dram.banks_per_group=1024")


def test_machine_is_frozen_and_hashes_by_content(npu_a):
    with pytest.raises(ValidationError, match="frozen"):
        npu_a.cores = 8
    again = Machine.model_validate(npu_a.model_dump())
    assert content_hash(again) == content_hash(npu_a)
    assert content_hash(npu_a.model_copy(update={"cores": 8})) != content_hash(npu_a)


def test_parts_can_be_made_in_python():
    assert Accumulators(size_bytes="1 MiB").size_bytes == 1 << 20
    assert Accumulators(size_bytes=np.int64(64)).size_bytes == 64
    with pytest.raises(ValidationError, match="size_bytes: must be a multiple of banks x"):
        Sram(size_bytes=1000, banks=8, bank_width_bytes=16, latency_cycles=1)


def test_json_round_trip(npu_a, small):
    for machine in (npu_a, parse_machine(small).machine):
        assert Machine.model_validate_json(machine.model_dump_json()) == machine
