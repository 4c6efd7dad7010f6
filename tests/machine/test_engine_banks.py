"""Data sheet of banks below several arrays, tensor cores and copies between two cores."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.core.catalog import folder
from npusim.hw.loader import load_machine
from npusim.machine.classes import CycleClass
from npusim.program.kinds import Space

IMMEDIATELY = "core.sequencer.dispatch_cycles=0"
TWO = "core.matrix.arrays=2"
#: Shared memory of a GPU: 32 banks of 4 bytes.
GPU = ("core.sram.bank_width_bytes=4", "core.dma.port_bytes_per_cycle=64")


def tensor_cores(cores: int, registers: str = "") -> str:
    """Cores that multiply 8 x 8 by 8 x 4 elements per cycle."""
    return (
        f"core.matrix={{style: tensor_core, rows: 8, columns: 4, depth: 8, arrays: {cores},"
        f"{registers} rates: {{bf16: 1, int8: 2}}, accumulate: {{bf16: fp32, int8: int32}}}}"
    )


REGISTERS = "register_rows: 64, register_columns: 64,"


def matrix(b, rows: int, columns: int, pitch: int, at: int = 0, kind: str = "bf16") -> int:
    """A matrix in the scratchpad, rows `pitch` bytes apart, its first byte in bank at / width."""
    item = {"bf16": 2, "int8": 1}[kind]
    room = b.buffer(Space.SRAM, 0, at + (rows - 1) * pitch + columns * item, kind)
    return b.box(room, (rows, columns), kind, steps=(pitch // item, 1), at=at // item)


def fetch(seen, operand: str):
    """What an operand of the only instruction that has such takes."""
    (use,) = (use for use in seen.timeline.conflicts.uses if use.operand == operand)
    return seen.timeline.conflicts.fetches[int(use.fetch[0])], float(use.times[0])


# ---------------------------------------------------------------- several arrays


@pytest.mark.parametrize(("fields", "busy", "waits"), [((), 2 * 512, 0), ((TWO,), 512, 512)])
def test_arrays_that_read_the_same_banks_are_no_faster_together(bench, fields, busy, waits):
    """Rows 2 KiB apart are all in banks 0 to 3; each of two arrays reads each of them."""
    b = bench(IMMEDIATELY, *fields)
    rows, tile = matrix(b, 512, 128, 2048), matrix(b, 128, 256, 2048, 1024)
    product = b.mma(512, 256, 128, a=rows, b=tile)
    seen = b.run()
    assert seen.timeline.costs.busy[product] == busy
    assert seen.timeline.stretch[product] == pytest.approx(waits, rel=0.01)


def test_padded_rows_let_two_arrays_pass_each_other(bench):
    """Each row four banks further than the last: one array is a row behind the other."""
    b = bench(IMMEDIATELY, TWO)
    product = b.mma(512, 256, 128, a=matrix(b, 512, 128, 2048 + 256))
    assert b.run().timeline.stretch[product] <= 0.02 * 512


def test_arrays_that_share_rows_begin_apart(bench):
    """One fold of columns: each array takes half of the rows, of which both lie in one bank."""
    taken = {}
    for pitch in (2048, 2048 + 256):
        b = bench(IMMEDIATELY, TWO)
        product = b.mma(512, 128, 128, a=matrix(b, 512, 128, pitch))
        seen = b.run()
        assert fetch(seen, "A")[1] == 1 / 2
        assert fetch(seen, "B")[1] == 1
        taken[pitch] = int(seen.timeline.stretch[product])
    assert taken[2048] >= 256 > 10 * taken[2048 + 256]


def test_own_conflicts_are_those_of_the_busiest_array(bench):
    """Three folds of A^T in one bank; of two arrays the busier takes two, the other as many.

    How streams begin is followed for some rows only (A48), hence a few per cent.
    """
    for fields, folds, asked in (((), 3, 3), ((TWO,), 2, 4)):
        b = bench(IMMEDIATELY, "core.matrix.transposer=false", "core.sram.size_bytes=32 MiB",
                  "core.sram.stream_entries=1", *fields)  # fmt: skip
        room = b.buffer(Space.SRAM, 0, 128 * 2048)
        turned = b.box(room, (512, 128), steps=(1, 1024), split=1)
        product = b.mma(512, 384, 128, a=turned)
        seen = b.run()
        found, share = fetch(seen, "A")
        assert (found.cycles, share) == (512 * 128, folds)
        taken = seen.timeline.costs.busy[product] + seen.timeline.stretch[product]
        assert taken == pytest.approx(asked * found.cycles, rel=0.05)


# ---------------------------------------------------------------- tensor cores


@pytest.mark.parametrize(
    ("pitch", "field", "cycles"),
    [
        (128, "", 8),  # eight rows of 16 B in the same four of 32 banks
        (256, "", 8),
        (64, "", 4),  # two rows in 128 B: eight banks
        (144, "", 1),  # padded by 16 B: all banks
        (128, "core.sram.swizzle=true", 4),  # rows of banks differ by one, blocks are four wide
    ],
)
def test_a_block_of_eight_rows_meets_itself(bench, pitch, field, cycles):
    """The known conflict of loading 8 x 8 matrices of 16-bit elements from shared memory."""
    more = ("core.sram.stream_entries=1", *([field] if field else []))
    b = bench(IMMEDIATELY, *GPU, tensor_cores(1), *more)
    b.mma(64, 64, 32 if pitch == 64 else 64, a=matrix(b, 64, 32 if pitch == 64 else 64, pitch))
    found, _ = fetch(b.run(), "A")
    assert found.slot == 1
    assert found.cycles == found.accesses * cycles


def test_registers_hide_what_blocks_cost(bench):
    """64 x 64 sums: a block of A serves 16 blocks of B, so that eight cycles are early enough."""
    for registers, slot, lost in (("", 1, 64 * 7), (REGISTERS, 16, 0)):
        b = bench(IMMEDIATELY, *GPU, "core.sram.stream_entries=1", tensor_cores(1, registers))
        product = b.mma(64, 64, 64, a=matrix(b, 64, 64, 128), b=matrix(b, 64, 64, 144))
        seen = b.run()
        found, times = fetch(seen, "A")
        assert (found.accesses, found.slot, found.lost) == (64, slot, lost)
        assert times == (1 if registers else 16)
        assert seen.timeline.costs.busy[product] == 8 * 16 * 8
        assert seen.timeline.stretch[product] >= lost * times


def test_twice_the_rate_is_twice_the_depth(bench):
    """int8: blocks of 8 x 16 elements are the same bytes."""
    for kind, columns in (("bf16", 64), ("int8", 128)):
        b = bench(IMMEDIATELY, *GPU, "core.sram.stream_entries=1", tensor_cores(1))
        b.mma(64, 64, columns, kind, a=matrix(b, 64, columns, 128, kind=kind))
        found, _ = fetch(b.run(), "A")
        assert (found.accesses, found.cycles) == (64, 64 * 8)


def test_cores_take_register_tiles_in_turn(bench):
    """Four tiles on four cores: each fetches its rows and its columns, a quarter of all."""
    b = bench(IMMEDIATELY, *GPU, tensor_cores(4, REGISTERS))
    product = b.mma(128, 128, 64)
    seen = b.run()
    for operand, blocks, times in (("A", 16 * 8, 2 / 4), ("B", 32 * 8, 2 / 4)):
        found, share = fetch(seen, operand)
        assert (found.accesses, share) == (blocks, times)
    found = seen.timeline.conflicts
    pattern = found.tables.patterns[found.pattern[product]]
    assert pattern[1] - pattern[0] == 8  # streams: four of A and four of B


# ---------------------------------------------------------------- any engine


@settings(max_examples=25)
@given(
    sizes=st.tuples(*[st.sampled_from([1, 8, 40, 64, 128, 200, 300])] * 3),
    fields=st.sampled_from([(TWO,), (tensor_cores(4),), (tensor_cores(3, REGISTERS),)]),
    banks=st.sampled_from([8, 32]),
)
def test_no_engine_fetches_more_than_the_banks_give(bench, sizes, fields, banks):
    b = bench(IMMEDIATELY, f"core.sram.banks={banks}", *fields)
    product = b.mma(*sizes)
    seen = b.run()
    peak = b.machine.core.sram.bandwidth_bytes_per_cycle
    assert seen.timeline.costs.fetch[product] <= peak * (seen.took(product) + 1)


@pytest.mark.parametrize("name", ["tpu_v3_core", "gpu_a100_like", "wormhole_n150"])
def test_machines_of_the_catalogue_fetch_whole_tiles_without_much_waiting(rig, name):
    b = rig.Bench(load_machine(folder("hwconfigs") / f"{name}.yaml").machine)
    for _ in range(3):
        product = b.mma(128, 128, 64)
    timeline = b.run().timeline
    assert timeline.stretch[product] <= 0.1 * timeline.costs.busy[product]


# ---------------------------------------------------------------- vector units, far scratchpads


def test_a_pipelined_unit_pays_its_start_once_and_each_wait(bench):
    """Columns of 128 numbers 2 KiB apart, all in one bank."""
    b = bench(IMMEDIATELY, "core.vector.pipelined=true")
    moves = []
    for _ in range(2):
        room = b.buffer(Space.SRAM, 0, 127 * 2048 + 4, "fp32")
        source, target = b.box(room, (128, 1), "fp32", steps=(512, 1)), b.sram(128, 1, kind="fp32")
        moves.append(b.vec(("neg", ("source", 0)), target, source))
    seen = b.run()
    assert seen.timeline.stretch[moves].tolist() == [127, 127]
    assert seen.frees(moves[0]) - seen.starts(moves[0]) == 12 + 1 + 127
    assert seen.frees(moves[1]) - seen.frees(moves[0]) == 1 + 127


@pytest.mark.parametrize("inwards", [False, True])
def test_a_copy_meets_the_array_of_the_other_core(bench, inwards):
    """Two banks that the other core's array wants in every cycle: half of them are left."""
    fields = (
        IMMEDIATELY, "core.sram.banks=2", "core.dma.port_bytes_per_cycle=128",
        "noc.port_bytes_per_cycle=512",
    )  # fmt: skip
    ticks, size = {}, 1 << 18
    for busy in (False, True):
        b = bench(*fields)
        if busy:
            b.mma(65536, 128, 128, core=1)
        near, far = b.sram(size, kind="uint8"), b.sram(size, kind="uint8", core=1)
        copy = b.copy(near, far) if inwards else b.copy(far, near)
        after = b.mma(1024, 128, 128, core=1) if busy else -1
        seen = b.run()
        ticks[busy] = seen.ticks(copy)
        waits = seen.share(copy, CycleClass.BANK_CONFLICT)
        assert waits > 0.3 * seen.ticks(copy) if busy else waits == 0
    assert ticks[True] == pytest.approx(2 * ticks[False], rel=0.1)
    lost = int(seen.timeline.stretch[after]) - (2 * 1024 + 2 * 128 - 1024)
    assert lost == pytest.approx(ceil(size / 128), rel=0.1)
