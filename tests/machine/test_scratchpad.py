"""Data sheet of the scratchpad: what meets in its banks waits there, and how a layout avoids it."""

from __future__ import annotations

import pytest

from npusim.machine.classes import CycleClass
from npusim.program.kinds import Space

IMMEDIATELY = "core.sequencer.dispatch_cycles=0"
#: The array takes its operands as they lie.
STRAIGHT = (IMMEDIATELY, "core.matrix.transposer=false")
FILL, DRAIN = 128, 254


def operand(b, rows: int, columns: int, pitch: int, at: int = 0, kind: str = "bf16") -> int:
    """A matrix in the scratchpad, rows `pitch` bytes apart, its first byte in bank at / 64."""
    item = {"bf16": 2, "fp32": 4, "int8": 1}[kind]
    room = b.buffer(Space.SRAM, 0, at + (rows - 1) * pitch + columns * item, kind)
    return b.box(room, (rows, columns), kind, steps=(pitch // item, 1), at=at // item)


def turned(b, rows: int, columns: int, pitch: int) -> int:
    """A bf16 matrix whose columns lie `pitch` bytes apart, each contiguous."""
    room = b.buffer(Space.SRAM, 0, columns * pitch)
    return b.box(room, (rows, columns), steps=(1, pitch // 2), split=1)


def fetch(seen, operand: str):
    """What an operand of the only instruction that has such takes."""
    found = seen.timeline.conflicts
    (use,) = (use for use in found.uses if use.operand == operand)
    return found.fetches[int(use.fetch[0])]


# ---------------------------------------------------------------- one instruction by itself


@pytest.mark.parametrize("pitch", [256, 512, 2048])
def test_whole_rows_stretch_nothing(bench, pitch):
    """npu_a: 256 B rows are four words in four banks, whatever their pitch."""
    b = bench(*STRAIGHT)
    rows, tile = operand(b, 512, 128, pitch), operand(b, 128, 128, 2048, 1024)
    product = b.mma(512, 128, 128, a=rows, b=tile)
    assert b.run().timeline.stretch[product] == 0


@pytest.mark.parametrize(
    ("pitch", "field", "factor"),
    [
        (256, "", 16),  # 128 elements four banks apart: 16 words in each of eight banks
        (320, "", 4),  # padded by a word: five banks apart, four words in each of all banks
        (2048, "", 128),  # all in one bank
        (2048, "core.sram.swizzle=true", 4),
        (256, "core.sram.interleave_words=4", 4),  # a bank apart
        (256, "core.matrix.transposer=true", 1),  # read along the other side, and turned
    ],
)
def test_a_turned_operand_meets_itself(bench, pitch, field, factor):
    """Cycles per access to rows of B^T, whose elements lie a pitch apart; one access in flight."""
    fields = (*STRAIGHT, "core.sram.stream_entries=1", *([field] if field else []))
    b = bench(*fields)
    product = b.mma(65536, 128, 128, b=turned(b, 128, 128, pitch))
    seen = b.run()
    assert fetch(seen, "B").accesses == 128
    assert fetch(seen, "B").cycles == 128 * factor
    loading = seen.timeline.conflicts.load_stretch[product]
    assert loading == 128 * factor - 128
    assert seen.timeline.stretch[product] >= loading


def test_accesses_in_flight_use_banks_that_others_leave(bench):
    """Steps of a bank and lanes in one bank: four in flight are four times as fast as one."""
    taken = {}
    for entries in (1, 4):
        b = bench(*STRAIGHT, f"core.sram.stream_entries={entries}")
        room = b.buffer(Space.SRAM, 0, 128 * 2048 + 128 * 64)
        b.mma(65536, 128, 128, b=b.box(room, (128, 128), steps=(32, 1024), split=1))
        taken[entries] = fetch(b.run(), "B").cycles
    assert taken == {1: 128 * 128, 4: 128 * 128 / 4}


def test_products_wait_for_operands_that_conflict(bench):
    """The tile that comes next is loaded beside the rows: 2048 cycles where 512 are planned."""
    b = bench(*STRAIGHT, "core.sram.stream_entries=1")
    product = b.mma(512, 128, 128, b=turned(b, 128, 128, 256))
    stretch = int(b.run().timeline.stretch[product])
    assert stretch == pytest.approx((2048 - 128) + (2048 - 512), rel=0.15)


def test_more_lanes_than_banks_are_served_in_turn(bench):
    """Two banks of 64 B give 128 B per cycle: a row of 256 B takes two."""
    b = bench(IMMEDIATELY, "core.sram.banks=2", "core.dma.port_bytes_per_cycle=128")
    product = b.mma(1024, 128, 128)
    seen = b.run()
    assert seen.timeline.stretch[product] == (2 * 128 - 128) + (2 * 1024 + 2 * 128 - 1024)


def test_a_rate_above_one_takes_several_rows_at_once(bench):
    """int8 at two rows per cycle: 2 x 128 B, in one bank if the rows are 2 KiB apart."""
    lost = {}
    for pitch in (128, 2048):
        b = bench(IMMEDIATELY)
        rows = operand(b, 1024, 128, pitch, kind="int8")
        product = b.mma(1024, 128, 128, "int8", a=rows)
        lost[pitch] = int(b.run().timeline.stretch[product])
    assert lost[128] == 0
    assert lost[2048] == pytest.approx(512, rel=0.05)


def test_operands_of_the_vector_unit_pass_each_other(bench):
    """Three tiles that begin in one bank: their streams go one behind the other."""
    b = bench(IMMEDIATELY)
    sums = b.add(64, 1024)
    assert b.run().timeline.stretch[sums] == 0


def test_a_column_costs_a_word_per_element(bench):
    """128 elements 2 KiB apart are in one bank; 2 KiB + 64 B apart four in each."""
    for pitch, words in ((2048, 128), (2112, 4)):
        b = bench(IMMEDIATELY)
        source, target = operand(b, 128, 1, pitch, kind="fp32"), b.sram(128, 1, kind="fp32")
        move = b.vec(("neg", ("source", 0)), target, source)
        assert b.run().timeline.stretch[move] == words - 1


# ---------------------------------------------------------------- two units side by side


def beside(b, rows_at: int, pitch: int, tile_at: int):
    """A long product, and beside it a sum whose rows are as long as the array's."""
    rows = (
        operand(b, 16384, 128, pitch, rows_at)
        if pitch < 256
        else operand(b, 1024, 128, pitch, rows_at)
    )
    tiles = [operand(b, 1024, 64, pitch, tile_at, "fp32") for _ in range(2)]
    product = b.mma(1024, 128, 128, a=rows, b=operand(b, 128, 128, 2048, 1536))
    moved = b.vec(("neg", ("source", 0)), tiles[0], tiles[1])
    after = b.mma(1024, 128, 128, a=rows, b=operand(b, 128, 128, 2048, 1536))
    return b.run(), product, moved, after


def test_units_in_different_banks_do_not_meet(bench):
    fields = (IMMEDIATELY, "core.sram.size_bytes=32 MiB", "core.vector.lanes=64")
    seen, product, moved, after = beside(bench(*fields), 0, 2048, 512)
    assert seen.timeline.stretch[product] == 0
    # Reads and writes of the sum meet each other, all but the first.
    assert seen.timeline.stretch[moved] == 1024 - 1
    assert seen.timeline.stretch[after] == 0


def test_units_that_meet_slow_each_other_down(bench):
    """Rows of both, 2 KiB apart, are always in banks 0 to 3: half a window is lost by each."""
    fields = (
        IMMEDIATELY, "core.sram.size_bytes=32 MiB", "core.vector.lanes=64",
        "core.sram.ports=read_write",
    )  # fmt: skip
    seen, product, moved, after = beside(bench(*fields), 0, 2048, 0)
    apart, _, alone, none = beside(bench(*fields), 0, 2048, 512)
    assert apart.timeline.stretch[alone] == apart.timeline.stretch[none] == 0
    assert seen.timeline.stretch[product] == 0
    window = FILL + 1024
    left = seen.frees(moved) - seen.frees(product)
    assert seen.timeline.stretch[moved] == window / 2
    assert seen.timeline.stretch[after] == window / 2 + left / 2
    padded, _, moved, after = beside(bench(*fields), 0, 2048 + 256, 0)
    assert padded.timeline.stretch[moved] == padded.timeline.stretch[after] == 0


# ---------------------------------------------------------------- copies


def test_a_copy_and_the_array_share_a_bank_in_turn(bench):
    """Two banks that the array wants in every cycle: the copy gets half of them, and takes it."""
    fields = (
        IMMEDIATELY, "cores=1", "core.sram.banks=2", "core.dma.port_bytes_per_cycle=128",
        "shared_sram.bytes_per_cycle=4096",
    )  # fmt: skip
    idle, busy = bench(*fields), bench(*fields)

    def load(b) -> int:
        return b.copy(b.sram(1 << 18, kind="uint8"), b.shared(1 << 18, kind="uint8"))

    alone = load(idle)
    first = busy.mma(65536, 128, 128)
    beside = load(busy)
    second = busy.mma(1024, 128, 128)
    free, shared = idle.run(), busy.run()
    assert free.share(alone, CycleClass.BANK_CONFLICT) == 0
    assert shared.ticks(beside) / free.ticks(alone) == pytest.approx(2, rel=0.05)
    waited = shared.share(beside, CycleClass.BANK_CONFLICT)
    assert waited > 0.8 * shared.ticks(beside)
    lost = int(shared.timeline.stretch[second]) - (2 * 1024 + 2 * 128 - 1024)
    assert lost == pytest.approx((1 << 18) / 128, rel=0.1)
    assert shared.timeline.end[first] > shared.timeline.end[beside]


def test_no_copy_goes_faster_than_its_port(bench):
    b = bench(IMMEDIATELY)
    copy = b.copy(b.sram(1 << 20, kind="uint8"), b.shared(1 << 20, kind="uint8"))
    seen = b.run()
    assert (1 << 20) * seen.cycle / seen.ticks(copy) <= 512


@pytest.mark.parametrize(
    ("row_bytes", "pitch", "cycles"),
    [
        (64, 64, 1),  # eight words in eight banks
        (64, 512, 2),  # eight words in every eighth bank, of which there are four
        (32, 512, 4),  # half of each word is wasted besides
        (16, 512, 8),
        (16, 64, 4),  # words wasted, but no bank twice
        (16, 576, 4),  # padded by a word: nine banks apart
        (64, 2048, 8),  # all in one bank
    ],
)
def test_rows_of_a_copy_waste_words_and_meet_in_banks(bench, row_bytes, pitch, cycles):
    """Cycles per request of 512 B from shared SRAM into rows that lie `pitch` apart."""
    b = bench(IMMEDIATELY)
    count = 4096 // row_bytes
    far = b.shared(count, row_bytes, kind="uint8")
    room = b.buffer(Space.SRAM, 0, pitch * count, "uint8")
    near = b.box(room, (count, row_bytes), "uint8", steps=(pitch, 1))
    copy = b.copy(near, far)
    seen = b.run()
    assert seen.timeline.requests[copy] == 8
    shared_sram = seen.cycle  # 512 B from four slices of 128 B per cycle
    around = 16 + 20 + 12 + 20 + 1 + 4  # descriptor, network, its latency, network, port, banks
    assert seen.ticks(copy) == shared_sram + (around + 8 * cycles) * seen.cycle
