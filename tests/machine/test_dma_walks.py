"""What a descriptor visits: requests, bursts and addresses against a brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.machine import dma
from npusim.machine.requests import _locate, advance
from npusim.machine.state import S_AT, S_FAR, S_NEAR, S_OFFSET, S_WIDTH
from npusim.program.kinds import RANK, Space


@pytest.mark.parametrize(
    ("burst", "at", "sizes", "pitches", "bursts"),
    [
        (32, 0, (64, 100), (8192, 1), 256),
        (32, 30, (64, 100), (8192, 1), 320),
        (64, 0, (64, 128), (8192, 1), 128),
        (64, 16, (16, 64), (100, 1), 31),
        (64, 0, (3, 5, 200), (65536, 1024, 1), 60),
    ],
)
def test_bursts_of_known_descriptors(bench, burst, at, sizes, pitches, bursts):
    """M31 to M36: the sum over rows of the aligned bursts that each touches."""
    b = bench(f"dram.burst_length={burst // 8}")
    room = b.buffer(Space.DRAM, -1, 1 << 20, "uint8")
    far = b.box(room, sizes, "uint8", steps=pitches, at=at)
    b.copy(b.sram(*sizes, kind="uint8"), far)
    assert b.run().timeline.dram_bursts == bursts


def test_share_of_bursts_that_is_of_use(bench):
    """M35: rows of 100 B in bursts of 32 B: 100 of 128."""
    b = bench("dram.burst_length=4")
    room = b.buffer(Space.DRAM, -1, 1 << 20, "uint8")
    b.copy(b.sram(64, 100, kind="uint8"), b.box(room, (64, 100), "uint8", steps=(8192, 1)))
    assert 64 * 100 / (32 * b.run().timeline.dram_bursts) == 0.78125


@st.composite
def boxes(draw):
    """(offset, sizes, strides in bytes, item): a box without overlaps, dimensions in any order."""
    item = draw(st.sampled_from([1, 2, 4]))
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=RANK))
    strides, step = [], item
    for size in reversed(sizes):
        step += item * draw(st.sampled_from([0, 0, 1, 7, 40, 300]))
        strides.insert(0, step)
        step *= size
    order = draw(st.permutations(range(len(sizes))))
    offset = item * draw(st.integers(0, 700))
    return offset, [sizes[d] for d in order], [strides[d] for d in order], item


def addresses(offset, sizes, strides) -> np.ndarray:
    """Byte addresses of all elements, row-major."""
    grid = np.indices(sizes).reshape(len(sizes), -1)
    return offset + np.asarray(strides, np.int64) @ grid


def runs(offset, sizes, strides, item) -> list[tuple[int, int]]:
    """Maximal contiguous byte ranges [low, high) of a box, upwards."""
    found: list[tuple[int, int]] = []
    for address in np.sort(addresses(offset, sizes, strides)).tolist():
        if found and found[-1][1] == address:
            found[-1] = (found[-1][0], address + item)
        else:
            found.append((address, address + item))
    return found


KINDS = {1: "uint8", 2: "bf16", 4: "fp32"}


def boxed(b, space, core, box):
    offset, sizes, strides, item = box
    reach = offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) + item
    room = b.buffer(space, core, reach, KINDS[item])
    return b.builder.region(room, offset, sizes, strides, max(len(sizes) - 1, 0)), room


@settings(max_examples=80)
@given(boxes(), st.booleans())
def test_requests_and_bursts_are_those_of_a_brute_force(rig, npu, box, stores):
    """Runs cut at multiples of 512 B; every burst that a piece touches is moved, ends included."""
    b = rig.Bench(npu())
    far, _ = boxed(b, Space.DRAM, -1, box)
    near = b.sram(*box[1], kind=KINDS[box[3]])
    copy = b.copy(far, near, queue=3) if stores else b.copy(near, far)
    seen = b.run()
    pieces = runs(*box)
    assert seen.timeline.requests[copy] == sum(
        (high - 1) // 512 - low // 512 + 1 for low, high in pieces
    )
    assert seen.timeline.dram_bursts == sum(
        (high - 1) // 32 - low // 32 + 1 for low, high in pieces
    )


class Walker:
    """Steps through a descriptor as a queue does, by the engine's own functions."""

    def __init__(self, walks: dma.Walks, row: int) -> None:
        self.table, self.rows, self.row = walks.table, walks.rows, row
        self.streams = np.zeros((1, S_WIDTH), np.int64)
        self.streams[0, S_AT : S_AT + RANK] = 0

    def visits(self) -> list[tuple[int, int, int]]:
        """(far address, near address, bytes) of every contiguous run."""
        found = []
        rows = self.rows
        while True:
            _locate(0, self.row, self.table, rows, self.streams)
            run = int(self.table[self.row, dma.RUN])
            found.append((int(self.streams[0, S_FAR]), int(self.streams[0, S_NEAR]), run))
            self.streams[0, S_OFFSET] = run
            if not advance(0, self.row, self.table, self.streams):
                return found


@settings(max_examples=80)
@given(boxes())
def test_a_strided_walk_visits_exactly_the_addresses_of_its_region(rig, npu, box):
    b = rig.Bench(npu())
    far, room = boxed(b, Space.DRAM, -1, box)
    b.copy(b.sram(*box[1], kind=KINDS[box[3]]), far)
    program = b.program()
    base = int(program.buffers.offset[room])
    visited = Walker(dma.walks(program, b.machine, None), 0).visits()
    touched = np.concatenate([np.arange(at, at + size) for at, _, size in visited])
    elements = base + addresses(*box[:3])
    expected = (elements[:, None] + np.arange(box[3])).reshape(-1)
    assert np.array_equal(np.sort(touched), np.sort(expected))


@settings(max_examples=80)
@given(st.data())
def test_a_copy_between_far_memories_walks_both_sides_in_step(rig, npu, data):
    """DRAM to DRAM: the n-th byte of one side goes to the n-th of the other."""
    source = data.draw(boxes())
    sizes, item = source[1], source[3]
    order = data.draw(st.permutations(range(len(sizes))))
    strides, step = [0] * len(sizes), item
    for d in order:
        strides[d], step = step, step * sizes[d]
    b = rig.Bench(npu())
    far, a_room = boxed(b, Space.DRAM, -1, source)
    other, b_room = boxed(b, Space.DRAM, -1, (0, sizes, strides, item))
    b.copy(other, far)
    program = b.program()
    bases = program.buffers.offset[[a_room, b_room]].tolist()
    pairs = {
        (at + k, near + k)
        for at, near, size in Walker(dma.walks(program, b.machine, None), 0).visits()
        for k in range(size)
    }
    here, there = addresses(*source[:3]), addresses(0, sizes, strides)
    assert pairs == {
        (bases[0] + x + k, bases[1] + y + k)
        for x, y in zip(here.tolist(), there.tolist(), strict=True)
        for k in range(item)
    }


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=12), st.integers(1, 700),
    st.integers(0, 600), st.sampled_from([1, 2, 4]),
)  # fmt: skip
def test_an_indirect_walk_visits_the_rows_that_were_named(rig, npu, numbers, width, gap, item):
    b = rig.Bench(npu())
    kind = KINDS[item]
    room = b.buffer(Space.DRAM, -1, 31 * (width + gap) * item, kind)
    table = b.box(room, (31, width), kind, steps=(width + gap, 1))
    index = b.sram(len(numbers), kind="int64")
    copy = b.copy(b.sram(len(numbers), width, kind=kind), table, index)
    program = b.program()
    rows = {copy: np.array(numbers, np.int64)}
    base = int(program.buffers.offset[room])
    pitch = (width + gap) * item
    visited = Walker(dma.walks(program, b.machine, rows), 0).visits()
    assert [(at - base, size) for at, _, size in visited] == [
        (number * pitch, width * item) for number in numbers
    ]
    seen = rig.probe(program, b.machine, rows)
    low = [base + number * pitch for number in numbers]
    assert seen.timeline.dram_bursts == sum(
        (at + width * item - 1) // 32 - at // 32 + 1 for at in low
    )
    assert seen.timeline.assumed_rows == 0


def test_rows_that_nobody_knows_are_assumed_evenly_spread(rig, npu):
    """4 of 100 rows: 0, 25, 50 and 75; the timeline says how many copies were assumed."""
    b = rig.Bench(npu())
    table = b.dram(100, 64)
    b.copy(b.sram(4, 64), table, b.sram(4, kind="int64"))
    program = b.program()
    walks = dma.walks(program, b.machine, None)
    first = walks.table[0, dma.ROWS]
    assert walks.rows[first:].tolist() == [0, 25, 50, 75]
    assert rig.probe(program, b.machine).timeline.assumed_rows == 1


def test_the_request_estimate_is_never_short(rig, npu):
    """Room for the segments of copies is reserved by it."""
    for at in (0, 1, 500, 511):
        for size in (1, 2, 511, 512, 513, 1024, 1025, 5000):
            b = rig.Bench(npu())
            room = b.buffer(Space.DRAM, -1, 1 << 14, "uint8")
            copy = b.copy(b.sram(size, kind="uint8"), b.box(room, (size,), "uint8", at=at))
            program = b.program()
            most = int(dma.walks(program, b.machine, None).requests(512)[0])
            assert rig.probe(program, b.machine).timeline.requests[copy] <= most
