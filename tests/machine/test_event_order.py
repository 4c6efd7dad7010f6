"""Order of events: (time, completions before starts, stream), never that of insertion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.machine.heap import key_of, pop, push, sift_down
from npusim.machine.timing import time_program

NO_DISPATCH = ("core.sequencer.dispatch_cycles=0", "core.sequencer.queue_depth=1000")
KEYS = st.lists(st.integers(0, 10_000), min_size=1, max_size=60, unique=True)


def test_a_key_orders_by_time_then_completions_then_stream():
    keys = [key_of(t, phase, stream) for t in (0, 1, 99) for phase in (0, 1) for stream in (0, 7)]
    assert keys == sorted(keys)


@given(KEYS, st.permutations(range(60)))
def test_the_heap_gives_back_keys_in_order_however_they_came(keys, order):
    heap, count = np.zeros(64, np.int64), 0
    for position in order:
        if position < len(keys):
            count = push(heap, count, keys[position])
    found = []
    while count:
        found.append(int(heap[0]))
        count = pop(heap, count)
    assert found == sorted(keys)


@given(KEYS, st.integers(10_001, 20_000))
def test_replacing_the_top_keeps_the_order(keys, new):
    heap, count = np.zeros(64, np.int64), 0
    for key in keys:
        count = push(heap, count, key)
    sift_down(heap, count, new)
    left = sorted([*sorted(keys)[1:], new])
    for expected in left:
        assert int(heap[0]) == expected
        count = pop(heap, count)


def test_of_simultaneous_requests_the_lower_stream_goes_first(bench):
    """Four cores ask one DRAM channel for the same granule in the same cycle."""
    b = bench("dram.channels=1", "dram.size_bytes=2 GiB", *NO_DISPATCH)
    granule = b.dram(1024, kind="uint8")
    loads = [
        b.copy(b.sram(1024, kind="uint8", core=core), granule, core=core) for core in (2, 0, 3, 1)
    ]
    ends = b.run().timeline.end[loads]
    by_core = ends[[1, 3, 0, 2]]
    assert (np.diff(by_core) > 0).all()


def test_a_completion_frees_its_unit_for_a_start_at_the_same_tick(bench):
    """Completions come before starts, whatever the stream."""
    b = bench(*NO_DISPATCH, "core.sequencer.signal_cycles=0", "core.sequencer.wait_cycles=0")
    product = b.mma(128, 128, 128)
    sums = b.add(1, 128, after=product)
    load = b.load(512, after=product)
    seen = b.run()
    assert seen.starts(sums) == seen.starts(load) == seen.ends(product)


# what a step does: 0 load, 1 load on another queue, 2 product, 3 addition, 4 store
STEPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=24)


def emit(b, places, order):
    """Emit steps in an order, each with the memory that belongs to it; by step its instruction."""
    numbers = {}
    for step in order:
        core, what, regions = places[step]
        if what in (0, 1, 4):
            queue = 3 if what == 4 else what
            numbers[step] = b.copy(*regions, core=core, queue=queue)
        elif what == 2:
            c, left, right = regions
            numbers[step] = b.mma(64, 64, 128, core=core, a=left, b=right, c=c)
        else:
            z, x, y = regions
            tree = ("add", ("source", 0), ("source", 1))
            numbers[step] = b.vec(tree, z, x, y, core=core)
    return numbers


def memory(b, steps):
    """Operands for every step, all apart; the same addresses whatever is emitted when."""
    places = []
    for core, what in steps:
        if what in (0, 1):
            regions = (b.sram(4096, kind="uint8", core=core), b.dram(4096, kind="uint8"))
        elif what == 4:
            regions = (b.dram(4096, kind="uint8"), b.sram(4096, kind="uint8", core=core))
        elif what == 2:
            regions = (
                b.acc(64, 64, core=core), b.sram(64, 128, core=core), b.sram(128, 64, core=core)
            )  # fmt: skip
        else:
            regions = tuple(b.sram(8, 128, kind="fp32", core=core) for _ in range(3))
        places.append((core, what, regions))
    return places


def times(rig, machine, steps, order):
    b = rig.Bench(machine)
    numbers = emit(b, memory(b, steps), order)
    timeline = time_program(b.program(), machine)
    rows = [numbers[step] for step in range(len(steps))]
    return timeline.start[rows], timeline.end[rows], timeline.ticks


def kept_order(steps, order, of):
    """`order` changed so that the steps with the same `of` keep their given order."""
    queues = {}
    for step in range(len(steps)):
        queues.setdefault(of(steps[step]), []).append(step)
    return [queues[of(steps[step])].pop(0) for step in order]


def same(one, other):
    return all(np.array_equal(x, y) for x, y in zip(one, other, strict=True))


@settings(max_examples=40)
@given(STEPS, st.data())
def test_emission_order_between_cores_does_not_matter(rig, npu, steps, data):
    """Sequencers are the cores' own: interleaving the cores otherwise changes nothing."""
    order = data.draw(st.permutations(range(len(steps))))
    order = kept_order(steps, order, lambda step: step[0])
    plain = times(rig, npu(), steps, range(len(steps)))
    assert same(times(rig, npu(), steps, order), plain)


@settings(max_examples=40)
@given(STEPS, st.data())
def test_emission_order_between_streams_matters_through_dispatch_alone(rig, npu, steps, data):
    """With a sequencer that costs nothing, any interleaving of independent streams is the same."""
    order = data.draw(st.permutations(range(len(steps))))
    order = kept_order(steps, order, lambda step: step)
    machine = npu(*NO_DISPATCH)
    plain = times(rig, machine, steps, range(len(steps)))
    assert same(times(rig, machine, steps, order), plain)


@settings(max_examples=80)
@given(st.data(), st.sampled_from([1, 2, 5, 16]), st.integers(0, 1 << 30))
def test_any_legal_order_of_emission_is_the_same(rig, npu, drawing, data, cores, seed):
    """Copies of all ways, products, vector and host work that wait for each other: what is written
    when means nothing, but for the order within a stream."""
    drawn = data.draw(drawing.steps())
    found = []
    for order in (None, seed):
        b = rig.Bench(npu(*NO_DISPATCH, f"cores={cores}", "host.launch_ns=300 ns"))
        numbers = drawing.issue(b, drawn, order)
        timeline = time_program(b.program(), b.machine)
        found.append((timeline.start[numbers], timeline.end[numbers], timeline.ticks))
    assert same(*found)


@settings(max_examples=40)
@given(STEPS)
def test_a_program_has_one_timeline(rig, npu, steps):
    first, second = (times(rig, npu(), steps, range(len(steps))) for _ in range(2))
    assert same(first, second)


@settings(max_examples=40)
@given(STEPS, st.integers(1, 1000))
def test_numbers_of_streams_only_break_ties(rig, npu, steps, seed):
    """Streams listed in another order that keeps the one among cores: the same timeline.

    Between streams of one core, and between cores that never ask for one thing in one cycle,
    numbers mean nothing; here units of one core change places, queues keep theirs.
    """
    b = rig.Bench(npu())
    emit(b, memory(b, steps), range(len(steps)))
    program = b.program()
    draw = np.random.Generator(np.random.Philox(key=seed))
    order = []
    for core in range(4):
        first = core * 6
        queues = [first + 2, first + 3, first + 4, first + 5]
        for unit in (first, first + 1):
            queues.insert(int(draw.integers(len(queues) + 1)), unit)
        order += queues
    plain = time_program(program, b.machine)
    renumbered = time_program(rig.renumbered(program, [*order, 24]), b.machine)
    for name in ("dispatched", "ready", "start", "free", "end", "stretch", "requests"):
        assert np.array_equal(getattr(plain, name), getattr(renumbered, name)), name


@pytest.mark.parametrize("reverse", [False, True])
def test_cores_without_contention_may_be_numbered_at_will(rig, npu, reverse):
    """Each core in its own part of the shared SRAM's bandwidth: no ties, no effect of numbers."""
    machine = npu("shared_sram.bytes_per_cycle=1 KiB/cycle", *NO_DISPATCH)
    b = rig.Bench(machine)
    for core in range(4):
        head = b.add(1, 128 * (core + 1) * 300, core=core)
        b.copy(
            b.sram(4096, kind="uint8", core=core), b.shared(4096, kind="uint8"), core=core,
            after=head,
        )  # fmt: skip
    program = b.program()
    blocks = [list(range(core * 6, core * 6 + 6)) for core in range(4)]
    order = [s for block in (reversed(blocks) if reverse else blocks) for s in block]
    plain = time_program(program, machine)
    renumbered = time_program(rig.renumbered(program, [*order, 24]), machine)
    assert np.array_equal(plain.end, renumbered.end)
