"""Laws that hold for whatever program: conservation, peaks, and what more of a resource may do."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.machine.timing import time_program
from npusim.program.kinds import Kind, Space

#: What a copy moves: (from, to) as seen from its core.
MOVES = (
    ("dram", "sram"), ("sram", "dram"), ("shared", "sram"), ("sram", "shared"),
    ("remote", "sram"), ("sram", "remote"), ("dram", "dram"),
)  # fmt: skip
COPY = st.tuples(
    st.integers(0, 3), st.integers(0, 3), st.sampled_from(MOVES), st.integers(1, 40),
    st.integers(1, 900), st.integers(0, 3),
)  # fmt: skip
COMPUTE = st.tuples(st.integers(0, 3), st.sampled_from(["mma", "add"]), st.integers(1, 300))
STEPS = st.lists(st.one_of(COPY, COMPUTE), min_size=1, max_size=25)


def far_place(b, name, rows, width, core):
    """Rows with a gap of one row between them in far memories."""
    if name in ("dram", "shared"):
        space = Space.DRAM if name == "dram" else Space.SHARED
        room = b.buffer(space, -1, 2 * rows * width, "uint8")
        return b.box(room, (rows, width), "uint8", steps=(2 * width, 1))
    return b.sram(rows, width, kind="uint8", core=core if name == "sram" else (core + 1) % 4)


def issue(b, steps):
    """Emit random steps; every third waits for the one before it."""
    last = None
    for number, step in enumerate(steps):
        after = last if last is not None and number % 3 == 2 else ()
        if len(step) == 6:
            core, queue, (source, target), rows, width, _ = step
            last = b.copy(
                far_place(b, target, rows, width, core), far_place(b, source, rows, width, core),
                core=core, queue=queue, after=after,
            )  # fmt: skip
        elif step[1] == "mma":
            last = b.mma(step[2], 128, 128, core=step[0], after=after)
        else:
            last = b.add(step[2], 64, core=step[0], after=after)
    return b.program()


def copy_bytes(program, space):
    """Bytes that the copies of a program move from or to a memory."""
    sizes = program.regions.elements  # of uint8
    total = 0
    for end in (program.copies.source, program.copies.destination):
        total += int(sizes[end][program.space_of(end) == space].sum())
    return total


@settings(max_examples=60)
@given(STEPS)
def test_what_copies_move_has_crossed_the_pins_and_no_more_than_bursts_round_up(rig, npu, steps):
    """Every row's first and last burst may be partly useful."""
    b = rig.Bench(npu())
    program = issue(b, steps)
    timeline = time_program(program, b.machine)
    burst = b.machine.dram.burst_bytes
    moved = copy_bytes(program, Space.DRAM)
    rows = sum(
        int(program.regions.rows[end[program.space_of(end) == Space.DRAM]].sum())
        for end in (program.copies.source, program.copies.destination)
    )
    assert moved <= timeline.dram_bursts * burst <= moved + 2 * rows * (burst - 1)


@settings(max_examples=60)
@given(STEPS)
def test_no_memory_is_faster_than_its_peak(rig, npu, steps):
    """DRAM by bursts, shared SRAM and each core's DMA port by bytes, over the whole run."""
    b = rig.Bench(npu())
    program = issue(b, steps)
    timeline = time_program(program, b.machine)
    machine, seconds = b.machine, timeline.ticks / b.machine.tick_hz
    dram_bytes = timeline.dram_bursts * machine.dram.burst_bytes
    assert dram_bytes <= machine.dram.peak_bytes_per_s * seconds * (1 + 1e-12)
    shared = machine.shared_sram.bytes_per_cycle * machine.noc.clock_hz
    assert copy_bytes(program, Space.SHARED) <= shared * seconds + 1
    port = machine.core.dma.port_bytes_per_cycle * machine.core.clock_hz
    for core in range(machine.cores):
        mine = copy_bytes_of_core(program, core)
        assert mine <= port * seconds * (1 + 1e-12)


def copy_bytes_of_core(program, core):
    """Bytes that one core's own copies move in or out of its scratchpad."""
    streams = np.array([stream.core for stream in program.streams])
    who = program.rows_of(Kind.COPY)
    mine = streams[program.instructions.stream[who]] == core
    total = 0
    for end in (program.copies.source, program.copies.destination):
        buffers = program.regions.buffer[end]
        here = (program.buffers.space[buffers] == Space.SRAM) & (
            program.buffers.core[buffers] == core
        )
        total += int(program.regions.elements[end][here & mine].sum())
    return total


@settings(max_examples=60)
@given(STEPS)
def test_times_of_an_instruction_are_in_order(rig, npu, steps):
    """Dispatched, ready, started, unit free, done; in stream order; after what it waits for."""
    b = rig.Bench(npu())
    program = issue(b, steps)
    t = time_program(program, b.machine)
    assert (t.dispatched <= t.start).all()
    assert (t.ready <= t.start).all()
    assert (t.start <= t.free).all()
    assert (t.free <= np.maximum(t.end, t.free)).all()
    assert t.ticks >= t.end.max()
    for stream in range(len(program.streams)):
        rows = np.flatnonzero(program.instructions.stream == stream)
        assert (t.start[rows[1:]] >= t.free[rows[:-1]]).all()
        assert (np.diff(t.end[rows]) >= 0).all()
    waits = np.repeat(np.arange(len(program)), np.diff(program.edges.ptr))
    assert (t.start[waits] >= t.end[program.edges.source]).all()


@settings(max_examples=60)
@given(STEPS)
def test_the_reasons_of_a_copy_cover_its_time(rig, npu, steps):
    """Segments rise from its start to the arrival of its own last byte, without holes."""
    b = rig.Bench(npu())
    program = issue(b, steps)
    seen = rig.probe(program, b.machine)
    segments, t = seen.timeline.segments, seen.timeline
    for i in program.rows_of(Kind.COPY):
        until = segments.until[segments.ptr[i] : segments.ptr[i + 1]]
        assert len(until)
        assert (np.diff(until) > 0).all()
        assert until[0] > t.start[i]
        assert until[-1] <= t.end[i]


# ---------------------------------------------------------------- monotony

#: A write to DRAM may be drained before a read or behind it, whichever way a batch fills: with
#: both in one stream, a program may lose by being early.
ONE_WAY = tuple(move for move in MOVES if move[1] != "dram")
ONE_STREAM = st.lists(
    st.tuples(
        st.just(0), st.just(0), st.sampled_from(ONE_WAY), st.integers(1, 40), st.integers(1, 900),
        st.just(0),
    ),
    min_size=1, max_size=12,
)  # fmt: skip
BETTER = {
    "twice the DRAM bandwidth": ("dram.transfers_per_s=6.4 GT/s",),
    "twice the requests in flight": ("core.dma.outstanding_requests=16",),
    "a faster core": ("core.clock_hz=2 GHz",),
    "a faster network": ("noc.clock_hz=2 GHz",),
    "a wider port": ("noc.port_bytes_per_cycle=1024",),
    "no network latency": ("noc.latency_cycles=0",),
    "a faster DRAM array": ("dram.timings_ns.rcd=7 ns", "dram.timings_ns.cl=7 ns"),
}
#: A single queue is bound by its requests in flight; refreshes come by the calendar, so that a
#: faster request may meet one that a slower request would have missed.
BASE = ("core.dma.outstanding_requests=8", "dram.timings_ns.refi=1 s")


def seconds(rig, machine, steps):
    b = rig.Bench(machine)
    return time_program(issue(b, steps), machine).ticks / machine.tick_hz


@pytest.mark.parametrize("what", BETTER)
@settings(max_examples=100)
@given(steps=ONE_STREAM)
def test_more_of_a_resource_never_slows_a_single_stream(rig, npu, what, steps):
    """One queue of copies that do not write to DRAM."""
    plain = seconds(rig, npu(*BASE), steps)
    better = seconds(rig, npu(*BASE, *BETTER[what]), steps)
    assert better <= plain * (1 + 1e-9)


#: Nothing is shared but the waits; a run of products that is torn apart would pay its fill again.
ALONE = ("core.matrix.fold_overlap=none", "core.sram.banks=1024", "host.launch_ns=300 ns")
FASTER = {
    "a faster core": ("core.clock_hz=2 GHz",),
    "twice the rate": ("core.matrix.rates.bf16=2",),
    "twice the lanes": ("core.vector.lanes=256",),
    "no start-up": ("core.vector.start_cycles=0",),
    "no signals": ("core.sequencer.signal_cycles=0", "core.sequencer.wait_cycles=0"),
    "no hand-out": ("core.sequencer.dispatch_cycles=0",),
    "longer queues": ("core.sequencer.queue_depth=64",),
    "a faster host": ("host.launch_ns=100 ns", "host.flops_per_s=100 GFLOP/s"),
}


@pytest.mark.parametrize("what", FASTER)
@settings(max_examples=60)
@given(data=st.data())
def test_more_of_a_resource_never_slows_work_that_shares_nothing(rig, npu, drawing, what, data):
    """Products, vector and host work of all cores that wait for each other: no contention."""
    drawn = data.draw(drawing.steps(most=40, what=("mma", "vector", "host")))
    times = []
    for fields in ((), FASTER[what]):
        b = rig.Bench(npu(*ALONE, "core.sequencer.queue_depth=2", *fields))
        drawing.issue(b, drawn)
        times.append(time_program(b.program(), b.machine).ticks / b.machine.tick_hz)
    assert times[1] <= times[0] * (1 + 1e-12)


@pytest.mark.parametrize("what", BETTER)
def test_more_of_a_resource_helps_contending_cores_on_the_whole(rig, npu, what):
    """Another order of requests may cost one program something; `pytest -rP` tells how many."""
    draw = np.random.Generator(np.random.Philox(key=7))
    ratios = []
    for _ in range(40):
        steps = [
            (int(draw.integers(4)), int(draw.integers(4)), MOVES[draw.integers(len(MOVES))],
             int(draw.integers(1, 40)), int(draw.integers(1, 900)), 0)
            for _ in range(int(draw.integers(2, 24)))
        ]  # fmt: skip
        ratios.append(
            seconds(rig, npu(*BASE, *BETTER[what]), steps) / seconds(rig, npu(*BASE), steps)
        )
    lost = sum(ratio > 1 for ratio in ratios)
    print(f"{what}: {lost} of {len(ratios)} programs lose, at most {max(ratios) - 1:.2%}")
    assert np.mean(ratios) <= 1


def test_compute_alone_scales_with_the_clock(rig, npu):
    steps = [(core, what, 100) for core in range(4) for what in ("mma", "add")]
    assert seconds(rig, npu("core.clock_hz=2 GHz"), steps) == seconds(rig, npu(), steps) / 2


def test_cycles_are_the_ticks_rounded_up(rig, npu):
    b = rig.Bench(npu())
    b.load(512)
    timeline = b.run().timeline
    assert timeline.ticks % timeline.ticks_per_cycle != 0
    assert timeline.cycles == ceil(timeline.ticks / timeline.ticks_per_cycle)
