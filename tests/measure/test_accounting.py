"""Accounting: every core-cycle in one class and one layer, by the rules and against an oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from npusim.machine.classes import CycleClass as C
from npusim.machine.timeline import Timeline
from npusim.machine.timing import time_program
from npusim.measure.accounting import Accounting, account


@pytest.fixture(scope="session")
def rig(helper):
    """The bench of the machine's tests."""
    return helper("machine/bench.py")


@pytest.fixture(scope="session")
def drawing(helper):
    """Programs of every kind of work, drawn."""
    return helper("machine/any_program.py")


def accounted(b) -> tuple[Timeline, Accounting]:
    timeline = time_program(b.program(), b.machine)
    return timeline, account(timeline)


def classes(accounting: Accounting, core: int) -> dict[C, int]:
    """What one core's cycles were spent on."""
    return {C(k): int(n) for k, n in enumerate(accounting.of_core(core)) if n}


def field(name: str, *values: object) -> st.SearchStrategy[str]:
    return st.sampled_from([f"{name}={value}" for value in values])


#: Roomy machines and narrow ones; clocks whose ratios are odd, so that copies end inside cycles.
MACHINES = st.tuples(
    field("cores", 1, 2, 4, 5),
    field("core.clock_hz", "1 GHz", "940 MHz", "375 MHz"),
    field("core.sequencer.queue_depth", 1, 2, 32),
    field("core.sequencer.dispatch_cycles", 0, 2, 30),
    field("core.dma.outstanding_requests", 3, 128),
    field("core.dma.port_bytes_per_cycle", 64, 128),
    field("core.sram.banks", 2, 32),
    field("noc.port_bytes_per_cycle", 96, 512),
    field("core.matrix.fold_overlap", "none", "weights", "pipelined"),
    field("core.dma.arbitration", "round_robin", "oldest_first"),
    field("core.vector.latency_cycles", "{}", "{simple: 30}"),
    field("host.launch_ns", "0 ns", "200 ns"),
    field("host.operators_in_flight", 1, 3),
)


def check_sums(timeline: Timeline, accounting: Accounting) -> None:
    """Every cycle of every core once: per core, and so per layer and in total."""
    cycles, cores = accounting.cycles, timeline.program.cores
    assert accounting.total == timeline.cycles
    assert (cycles >= 0).all()
    assert cycles.shape == (cores, max(len(timeline.program.layers), 1), len(C))
    for core in range(cores):
        assert accounting.of_core(core).sum() == timeline.cycles
    layers = [accounting.of_layer(n).sum() for n in range(cycles.shape[1])]
    assert sum(layers) == cycles.sum() == timeline.cycles * cores


@pytest.mark.parametrize("examples", [200, pytest.param(1500, marks=pytest.mark.nightly)])
def test_every_cycle_of_every_core_is_what_the_oracle_says(helper, rig, npu, drawing, examples):
    """Classes and layers of all cores, idle ones too, for programs of every kind of work."""
    work, classes_met = set(), set()

    @settings(max_examples=examples)
    @example(drawing.everything(), ("cores=4", "host.launch_ns=0 ns"))
    @given(drawing.steps(most=16, most_rows=12, most_bytes=400), MACHINES)
    def holds(drawn, fields):
        b = rig.Bench(npu(*fields))
        drawing.issue(b, drawn)
        timeline, accounting = accounted(b)
        work.update(drawing.kinds(timeline.program))
        classes_met.update(c for c in C if accounting.cycles[:, :, c].any())
        check_sums(timeline, accounting)
        oracle = helper("measure/oracle.py").Oracle(timeline)
        for core in range(b.machine.cores):
            assert np.array_equal(accounting.cycles[core], oracle.core(core)), core

    holds()
    assert work == drawing.ALL_KINDS
    assert classes_met == set(C) - {C.WARP}


@settings(max_examples=150)
@given(st.data(), MACHINES)
def test_classes_sum_per_core_per_layer_and_in_total(rig, npu, drawing, data, fields):
    """Programs longer than the oracle has patience for."""
    b = rig.Bench(npu(*fields))
    drawing.issue(b, data.draw(drawing.steps(most=60)))
    check_sums(*accounted(b))


def test_a_program_of_host_work_alone(rig, npu):
    """No core has anything to wait for: all idle, in the host's layer."""
    b = rig.Bench(npu())
    b.host([b.dram(8)], [b.dram(8)])
    timeline, accounting = accounted(b)
    assert accounting.of_layer(0)[C.IDLE] == 4 * timeline.cycles


def test_an_empty_program(rig, npu):
    _, accounting = accounted(rig.Bench(npu()))
    assert accounting.total == 0
    assert accounting.cycles.sum() == 0


# ---------------------------------------------------------------- rule 1, by hand

NO_DISPATCH = ("core.sequencer.dispatch_cycles=0", "dram.timings_ns.refi=1 s")


def test_rule_1_matrix_before_vector_and_the_rest_of_the_vector_s_time(rig, npu):
    """A product of 128 + 200 + 254 cycles; beside it an addition of 12 + 1000."""
    b = rig.Bench(npu(*NO_DISPATCH, "core.sram.ports=unlimited"))
    b.mma(200, 128, 128)
    b.add(1000, 128)
    timeline, accounting = accounted(b)
    assert timeline.cycles == 1012
    assert classes(accounting, 0) == {
        C.MATRIX: 200, C.FILL_DRAIN: 128 + 254, C.VECTOR: 1012 - 582
    }  # fmt: skip


def test_rule_1_folds_that_stream_less_than_they_load(rig, npu):
    """32 rows per fold of two: the array takes 128 cycles for each, 32 of them useful."""
    b = rig.Bench(npu(*NO_DISPATCH))
    b.mma(32, 256, 128)
    timeline, accounting = accounted(b)
    assert timeline.cycles == 128 + 2 * 128 + 254
    assert classes(accounting, 0) == {C.MATRIX: 64, C.FILL_DRAIN: timeline.cycles - 64}


def test_rule_1_drain_belongs_to_the_next_product_once_that_starts(rig, npu):
    """Back to back: 128 + 512 + 512 + 254, two layers, no cycle twice."""
    b = rig.Bench(npu(*NO_DISPATCH))
    b.mma(512, 128, 128)
    b.layer("second")
    b.mma(512, 128, 128)
    timeline, accounting = accounted(b)
    assert timeline.cycles == 128 + 512 + 512 + 254
    assert accounting.cycles[0, 0, C.FILL_DRAIN] == 128
    assert accounting.cycles[0, 1, C.FILL_DRAIN] == 254
    assert accounting.cycles[0, :, C.MATRIX].tolist() == [512, 512]


def test_rule_1_stretch_is_bank_conflict(rig, npu):
    """Rows of 256 B from banks that give 128 per cycle: those of B first, then of both."""
    b = rig.Bench(npu(*NO_DISPATCH, "core.sram.banks=2", "core.dma.port_bytes_per_cycle=128"))
    b.mma(1024, 128, 128)
    b.layer("second")
    b.add(16, 128, after=0)
    timeline, accounting = accounted(b)
    stretch = timeline.stretch.tolist()
    assert stretch[0] == 128 + (1024 + 2 * 128)
    assert accounting.cycles[0, 0, C.BANK_CONFLICT] == stretch[0]
    assert accounting.cycles[0, 0, C.MATRIX] == 1024
    assert accounting.cycles[0, 1, C.BANK_CONFLICT] == stretch[1] > 0
    assert accounting.cycles[0, 1, C.VECTOR] == 12 + 16


# ---------------------------------------------------------------- rule 2, by hand


def test_rule_2_a_load_is_descriptor_latency_and_the_wait_for_the_signal(rig, npu):
    """16 cycles of dispatch, 92 of latency (91.6 rounded up by the cycle's start), 2 + 1."""
    b = rig.Bench(npu(*NO_DISPATCH))
    load = b.load(512)
    b.add(8, 128, after=load)
    timeline, accounting = accounted(b)
    latency = (20 + 20 + 1 + 1 + 4) + (23 + 25 + 23 + 2) / 1.6
    waited = int(np.ceil(16 + latency))
    assert classes(accounting, 0) == {
        C.DISPATCH: 16, C.DRAM_LATENCY: waited - 16, C.SYNCHRONISATION: 3, C.VECTOR: 20
    }  # fmt: skip
    assert timeline.cycles == waited + 3 + 20


def test_rule_2_follows_the_dependency_that_completes_last(rig, npu):
    """A core that waits for DRAM and for another core: the later one explains the whole wait."""
    b = rig.Bench(npu(*NO_DISPATCH))
    load = b.load(512)
    product = b.mma(1024, 128, 128, core=1)
    b.add(8, 128, after=[load, product])
    _, accounting = accounted(b)
    assert classes(accounting, 0) == {C.SYNCHRONISATION: 128 + 1024 + 254 + 3, C.VECTOR: 20}


def test_rule_2_follows_a_chain_to_its_root(rig, npu):
    """The addition waits for a load that waits for another core's product."""
    b = rig.Bench(npu(*NO_DISPATCH))
    product = b.mma(512, 128, 128, core=1)
    load = b.load(512, after=product)
    b.add(8, 128, after=load)
    _, accounting = accounted(b)
    found = classes(accounting, 0)
    assert found[C.SYNCHRONISATION] == (128 + 512 + 254) + 3 + 3
    assert found[C.DISPATCH] == 16


def test_rule_2_behind_others_in_its_queue(rig, npu):
    """A load behind a long one on the same queue: what passes until its turn is dma_queue."""
    b = rig.Bench(npu(*NO_DISPATCH))
    long = b.load(1 << 16)
    short = b.load(512)
    b.add(8, 128, after=short)
    timeline, accounting = accounted(b)
    turn = int(timeline.start[short]) // timeline.ticks_per_cycle
    assert turn == 16 + (1 << 16) // 512
    found = classes(accounting, 0)
    assert found[C.DMA_QUEUE] >= turn
    assert found[C.DISPATCH] == 16
    assert timeline.end[short] == timeline.end[long] or timeline.end[short] > timeline.end[long]


def test_rule_2_host_work(rig, npu):
    """The wait for an operator on the host is `host`, in the host's own layer."""
    b = rig.Bench(npu(*NO_DISPATCH))
    host = b.host([b.dram(8)], [b.dram(8)], elements=1)
    b.layer("second")
    b.add(8, 128, after=host)
    timeline, accounting = accounted(b)
    price = int(np.ceil(timeline.end[host] / timeline.ticks_per_cycle))
    assert accounting.cycles[0, 0, C.HOST] == price >= 20_000
    assert accounting.cycles[0, 1, C.SYNCHRONISATION] == 3


def test_rule_2_not_handed_out_yet(rig, npu):
    """The fourth instruction of a core is dispatched 3 x 100 cycles after the first."""
    b = rig.Bench(npu("core.sequencer.dispatch_cycles=100"))
    for queue in range(3):
        b.load(64, queue=queue)
    b.add(8, 128)
    _, accounting = accounted(b)
    found = classes(accounting, 0)
    assert (found[C.DISPATCH], found[C.VECTOR]) == (300, 20)


def test_rule_2_a_queue_without_room_holds_up_what_comes_behind_it(rig, npu):
    """The third load finds no room in its queue of two: what is behind waits for that queue."""
    b = rig.Bench(npu(*NO_DISPATCH, "core.sequencer.queue_depth=2"))
    for _ in range(3):
        b.load(1 << 16)
    b.add(1 << 9, 1 << 9)  # longer than the third load
    timeline, accounting = accounted(b)
    handed = -(-int(timeline.dispatched[3]) // timeline.ticks_per_cycle)
    assert handed > (1 << 16) // 512
    found = classes(accounting, 0)
    assert (found[C.DMA_QUEUE], found[C.VECTOR]) == (handed, timeline.cycles - handed)


def test_rule_2_a_layer_of_copies_owns_the_queue_that_it_fills(rig, npu):
    """A load behind those of a layer that only copies waits in that layer's time."""
    b = rig.Bench(npu(*NO_DISPATCH))
    b.load(1 << 20)
    b.layer("second")
    load = b.load(512)
    b.add(8, 128, after=load)
    timeline, accounting = accounted(b)
    turn = int(timeline.start[load]) // timeline.ticks_per_cycle
    assert turn > (1 << 20) // 512
    assert accounting.cycles[0, 0, C.DMA_QUEUE] == turn
    assert accounting.cycles[0, 1].sum() == timeline.cycles - turn


def test_rule_2_the_layer_is_that_of_the_instruction_waited_for(rig, npu):
    """A layer that computes waits for its own operands, whoever copied them before."""
    b = rig.Bench(npu(*NO_DISPATCH))
    b.add(1, 128, core=1)
    load = b.load(1 << 18)
    b.layer("second")
    b.add(8, 128, after=load)
    timeline, accounting = accounted(b)
    assert accounting.cycles[0, 0].sum() == 0
    assert accounting.cycles[0, 1].sum() == timeline.cycles


def test_rule_2_a_layer_of_copies_owns_the_wait_for_them(rig, npu):
    """Two layers of copies between two of additions: each has its own transfers."""
    b = rig.Bench(npu(*NO_DISPATCH))
    first = b.add(8, 128)
    b.layer("copies")
    store = b.store(1 << 16, after=first)
    b.layer("more copies")
    load = b.load(1 << 16, after=store)
    b.layer("second")
    b.add(8, 128, after=load)
    timeline, accounting = accounted(b)
    cycle = timeline.ticks_per_cycle
    mine = accounting.cycles[0].sum(axis=1)
    assert mine[1] == -(-int(timeline.end[store]) // cycle) - 20
    assert mine[2] == -(-int(timeline.end[load]) // cycle) - mine[1] - 20
    assert mine[3] == timeline.cycles - mine[:3].sum() == 20 + 3
    assert accounting.cycles[0, 2, C.SYNCHRONISATION] == 3  # for the signal of the store


def test_rule_3_a_last_copy_behind_others_waits_for_its_queue(rig, npu):
    """Three copies of one queue and nothing else; the last one starts when the others have."""
    b = rig.Bench(npu(*NO_DISPATCH, "cores=1"))
    for _ in range(3):
        last = b.load(1 << 16)
    timeline, accounting = accounted(b)
    found = classes(accounting, 0)
    turn = int(timeline.start[last]) // timeline.ticks_per_cycle
    assert turn > 2 * (1 << 16) // 512
    assert found[C.DMA_QUEUE] >= turn and found[C.DISPATCH] == 16


def test_rule_3_the_last_copies_are_their_layers(rig, npu):
    b = rig.Bench(npu(*NO_DISPATCH))
    first = b.add(8, 128)
    b.layer("copies")
    store = b.store(1 << 16, after=first)
    b.layer("long")
    b.mma(1 << 16, 128, 128, core=1)
    timeline, accounting = accounted(b)
    end = -(-int(timeline.end[store]) // timeline.ticks_per_cycle)
    assert accounting.cycles[0, 1].sum() == end - 20
    assert accounting.cycles[0, 2, C.IDLE] == timeline.cycles - end


# ---------------------------------------------------------------- rule 3, by hand


def test_rule_3_the_last_store_then_idle(rig, npu):
    """Core 0 ends with a store, core 1 is done early, core 2 never had anything."""
    b = rig.Bench(npu(*NO_DISPATCH))
    sums = b.add(8, 128)
    b.add(4, 128, core=1)
    b.layer("store")
    store = b.store(512, after=sums)
    timeline, accounting = accounted(b)
    end = int(np.ceil(timeline.end[store] / timeline.ticks_per_cycle))
    latency = 5 + 1 + 20 + 5  # banks, port, network, CWL
    assert end == 20 + 3 + 16 + latency
    assert accounting.cycles[0, 0, C.VECTOR] == 20
    assert {C(k): int(n) for k, n in enumerate(accounting.cycles[0, 1]) if n} == {
        C.SYNCHRONISATION: 3, C.DISPATCH: 16, C.DRAM_LATENCY: latency, C.IDLE: timeline.cycles - end
    }  # fmt: skip
    assert classes(accounting, 1) == {C.VECTOR: 16, C.IDLE: timeline.cycles - 16}
    assert classes(accounting, 2) == {C.IDLE: timeline.cycles}
    assert accounting.cycles[2, 1, C.IDLE] == timeline.cycles


def test_rule_3_idle_belongs_to_the_layer_that_ends_last(rig, npu):
    b = rig.Bench(npu(*NO_DISPATCH))
    b.add(8, 128)
    b.layer("long")
    b.mma(4096, 128, 128, core=1)
    b.layer("short")
    b.add(4, 128, core=2)
    timeline, accounting = accounted(b)
    assert accounting.of_layer(1)[C.IDLE] == 4 * timeline.cycles - timeline.cycles - 20 - 16
    assert accounting.of_layer(0)[C.IDLE] == accounting.of_layer(2)[C.IDLE] == 0
