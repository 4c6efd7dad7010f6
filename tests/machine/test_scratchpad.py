"""Data sheet of the scratchpad: matrix unit, vector unit and DMA share its banks max-min fair."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.machine.classes import CycleClass
from npusim.machine.engine import _fair
from npusim.program.kinds import Space

#: Two banks of 64 bytes, as much as the DMA port: the units come short of it.
NARROW = (
    "core.sram.banks=2",
    "core.dma.port_bytes_per_cycle=128",
    "core.sequencer.dispatch_cycles=0",
)


def water_filling(demands: list[int], total: float) -> list[float]:
    """Max-min fair shares: everyone's level rises until it is served or nothing is left."""
    shares, open_, left = [0.0] * len(demands), set(range(len(demands))), float(total)
    while open_:
        level = left / len(open_)
        served = {i for i in open_ if demands[i] <= level}
        for i in served or open_:
            shares[i] = float(demands[i]) if served else level
        left -= sum(shares[i] for i in served)
        open_ = open_ - served if served else set()
    return shares


@given(st.lists(st.integers(0, 4000), min_size=3, max_size=3), st.integers(3, 3000))
def test_shares_are_max_min_fair(demands, total):
    """Whatever three demands: the share that water filling gives, in whole bytes per cycle."""
    mine, other, third = demands
    fair = water_filling(demands, total)[0]
    assert fair - 1 < _fair(mine, other, third, total) <= max(fair + 1, 1)


def test_shares_by_hand():
    assert _fair(256, 0, 0, 2048) == 256
    assert _fair(400, 0, 0, 300) == 300
    assert _fair(250, 101, 0, 300) == 199
    assert _fair(250, 90, 120, 300) == 105
    assert _fair(250, 250, 250, 300) == 100
    assert _fair(1, 4000, 4000, 300) == 1


def test_enough_banks_stretch_nothing(bench):
    """npu_a: the array takes 256 B, the vector unit 1536, the DMA 512 of 2048 B per cycle."""
    b = bench("core.sequencer.dispatch_cycles=0")
    b.load(1 << 20)
    product, sums = b.mma(2048, 128, 128), b.add(64, 1024)
    seen = b.run()
    assert seen.timeline.stretch[product] == seen.timeline.stretch[sums] == 0


def test_operand_fetch_beyond_all_banks_stretches_an_instruction(bench):
    """128 columns of bf16 are 256 B per cycle from banks that give 128: twice the time."""
    b = bench(*NARROW)
    product = b.mma(1024, 128, 128)
    seen = b.run()
    costs = seen.timeline.costs
    demand = int(costs.fetch[product]) // int(costs.busy[product])
    assert demand == (1024 + 128) * 128 * 2 // 1024
    expected = -(-1024 * demand // 128) - 1024
    assert seen.timeline.stretch[product] == expected
    assert seen.took(product) == 128 + 1024 + expected + 254


def test_vector_and_matrix_unit_halve_what_both_want(bench):
    """The second to start finds the banks shared; it is slowed, the first is not."""
    b = bench(*NARROW)
    sums = b.add(64, 1024)
    alone = b.run().timeline.stretch[sums]
    b = bench(*NARROW)
    b.mma(65536, 128, 128)
    sums = b.add(64, 1024)
    seen = b.run()
    busy, demand = 12 + 512, 3 * 64 * 1024 * 4 // (12 + 512)
    assert alone == -(-busy * demand // 128) - busy
    assert seen.timeline.stretch[sums] == -(-busy * demand // 64) - busy


def test_a_copy_takes_its_share_from_the_units(bench):
    """The port asks for 128 B per cycle while a copy is in flight."""
    b = bench(*NARROW)
    load = b.load(1 << 16)
    head = b.load(512, queue=1)
    sums = b.add(8, 128, after=head)
    seen = b.run()
    assert seen.timeline.start[sums] < seen.timeline.end[load]
    busy, demand = 12 + 8, 3 * 8 * 128 * 4 // (12 + 8)
    assert seen.timeline.stretch[sums] == -(-busy * demand // 64) - busy


def test_busy_banks_slow_a_copy_and_it_says_so(bench):
    """While the array fetches all that two banks give, a third is left for the port."""
    idle, busy = bench(*NARROW, "cores=1"), bench(*NARROW, "cores=1")
    alone = idle.load(1 << 18)
    busy.mma(65536, 128, 128)
    beside = busy.load(1 << 18)
    free, shared = idle.run(), busy.run()
    assert free.share(alone, CycleClass.BANK_CONFLICT) == 0
    assert shared.share(beside, CycleClass.BANK_CONFLICT) > 0.8 * shared.ticks(beside)
    assert shared.ticks(beside) / free.ticks(alone) == pytest.approx(3, rel=0.1)


@pytest.mark.parametrize(("row_bytes", "waste"), [(64, 1), (32, 2), (16, 4), (2, 32)])
def test_short_rows_waste_the_words_of_the_banks(bench, row_bytes, waste):
    """A column of elements that lie 512 B apart in the scratchpad moves a word of 64 B each."""
    b = bench("core.sequencer.dispatch_cycles=0")
    far = b.shared(4096 // row_bytes, row_bytes, kind="uint8")
    room = b.buffer(Space.SRAM, 0, 512 * 4096 // row_bytes, "uint8")
    near = b.box(room, (4096 // row_bytes, row_bytes), "uint8", steps=(512, 1))
    copy = b.copy(near, far)
    seen = b.run()
    assert seen.timeline.requests[copy] == 8
    shared_sram = seen.cycle  # 512 B from four slices of 128 B per cycle
    around = 16 + 20 + 12 + 20 + 1 + 4  # descriptor, network, its latency, network, port, banks
    assert seen.ticks(copy) == shared_sram + (around + 8 * waste) * seen.cycle
