"""The engine against a second implementation of its event logic: the same times, to the tick."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from npusim.api.pipeline import run
from npusim.api.request import Request
from npusim.hw.dram import Dram


@pytest.fixture(scope="session")
def oracle(helper):
    return helper("machine/oracle_simpy.py")


def field(name, *values):
    return st.sampled_from([f"{name}={value}" for value in values])


MACHINES = st.tuples(
    field("cores", 1, 2, 3, 4, 7, 16),
    field("core.clock_hz", "1 GHz", "940 MHz", "1.7 GHz", "375 MHz"),
    field("noc.clock_hz", "1 GHz", "800 MHz"),
    field("core.sequencer.queue_depth", 1, 2, 3, 32),
    field("core.sequencer.dispatch_cycles", 0, 1, 2, 50),
    field("core.sequencer.signal_cycles", 0, 2, 9),
    field("core.dma.outstanding_requests", 1, 2, 5, 128),
    field("core.dma.descriptor_cycles", 0, 16),
    field("core.dma.queues", 2, 4, 6),
    field("core.sram.banks", 1, 4, 32),
    field("core.matrix.fold_overlap", "none", "weights", "pipelined"),
    field("core.dma.arbitration", "round_robin", "fixed_priority", "oldest_first"),
    field("core.vector.latency_cycles", "{}", "{simple: 30}"),
    field("host.launch_ns", "0 ns", "300 ns"),
    field("host.operators_in_flight", 1, 3),
    field("host.link", "full_duplex", "shared"),
    field("dram.model", *get_args(Dram.model_fields["model"].annotation)),
    field("dram.controller_ns", "0 ns", "100 ns"),
    st.just("core.dma.port_bytes_per_cycle=64"),
)


@pytest.mark.parametrize("examples", [150, pytest.param(5000, marks=pytest.mark.nightly)])
def test_any_program_on_any_machine(rig, npu, drawing, oracle, examples):
    """1 to 16 cores, odd clocks, shallow queues, few requests in flight; all that can be drawn."""
    seen = set()

    @settings(max_examples=examples)
    @example(drawing.everything(), ("cores=4",))
    @given(drawing.steps(), MACHINES)
    def holds(drawn, fields):
        b = rig.Bench(npu(*fields))
        drawing.issue(b, drawn)
        program = b.program()
        seen.update(drawing.kinds(program))
        assert oracle.differences(program, b.machine) == []

    holds()
    assert seen == drawing.ALL_KINDS


@settings(max_examples=30)
@given(data=st.data())
def test_the_edge_machine(rig, edge, drawing, oracle, data):
    """Its DRAM is another one, and it has no shared SRAM."""
    moves = tuple(move for move in drawing.MOVES if "shared" not in move)
    drawn = data.draw(drawing.steps(what=("copy", "mma", "vector", "host"), moves=moves))
    b = rig.Bench(edge("host.launch_ns=300 ns"))
    drawing.issue(b, drawn)
    assert oracle.differences(b.program(), b.machine) == []


@settings(max_examples=40)
@given(data=st.data())
def test_a_machine_with_a_cache(rig, cached, drawing, oracle, data):
    """Small enough to evict; what it holds depends on the order in which it is asked."""
    fields = data.draw(
        st.tuples(
            field("cores", 1, 3),
            field("cache.ways", 1, 4),
            field("cache.mshr_entries", 1, 16),
            field("core.dma.outstanding_requests", 2, 64),
            field("dram.model", "run", "detailed"),
            field("dram.controller_ns", "0 ns", "100 ns"),
            st.just("host.launch_ns=300 ns"),
        )
    )
    b = rig.Bench(cached(*fields))
    drawing.issue(b, data.draw(drawing.steps()))
    assert oracle.differences(b.program(), b.machine) == []


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        ("matmul", {"m": "256", "n": "256", "k": "256"}),
        ("softmax", {"rows": "64", "columns": "300"}),
    ],
)
def test_real_layers(oracle, model, sizes):
    made = run(Request(model, sizes=sizes, timing_only=True, stop_after="timing", out=None))
    assert oracle.differences(made.lowered.program, made.machine) == []


def test_row_numbers_that_are_known(rig, npu, oracle):
    """All rows of a gather in one row of DRAM, then each in another."""
    b = rig.Bench(npu())
    table, index = b.dram(1 << 14, 256, kind="uint8"), b.sram(64, kind="int64")
    gathers = [b.copy(b.sram(64, 256, kind="uint8"), table, index) for _ in range(2)]
    program = b.program()
    near, far = np.arange(64), np.arange(64) * 251
    for rows in ({gathers[0]: near, gathers[1]: far}, {gathers[0]: far, gathers[1]: near}):
        assert oracle.differences(program, b.machine, rows) == []


# ---------------------------------------------------------------- what it would notice

SHARP = (
    "core.sequencer.dispatch_cycles=20", "core.sequencer.wait_cycles=0",
    "core.dma.descriptor_cycles=0", "shared_sram.bytes_per_cycle=64",
)  # fmt: skip


def fetch(b, core, after=()):
    """One request to the shared SRAM, which takes eight cycles for it."""
    near, far = b.sram(512, kind="uint8", core=core), b.shared(512, kind="uint8")
    return b.copy(near, far, core=core, after=after)


def notices(oracle, b, monkeypatch, **phases):
    """Whether engine and oracle agree, and no longer do with other phases."""
    program = b.program()
    before = oracle.differences(program, b.machine)
    for name, value in phases.items():
        monkeypatch.setattr(oracle, name, value)
    return before == [] and oracle.differences(program, b.machine) != []


def test_starts_before_completions_would_be_noticed(rig, npu, oracle, monkeypatch):
    """In cycle 20 an addition ends that core 0 waits for, and core 1 is handed a copy."""
    b = rig.Bench(npu(*SHARP, "core.sequencer.signal_cycles=0"))
    sums = [b.add(8, 128, core=core) for core in (0, 1)]
    fetch(b, 0, after=sums[0])
    fetch(b, 1)
    assert notices(oracle, b, monkeypatch, START=0, HAND=1, DONE=2)


def test_hand_outs_behind_starts_would_be_noticed(rig, npu, oracle, monkeypatch):
    """In cycle 20 core 0 is handed a copy, and a signal is seen that core 1 waits for."""
    b = rig.Bench(npu(*SHARP, "core.sequencer.signal_cycles=3"))
    b.add(8, 128, core=0)
    fetch(b, 0)
    fetch(b, 1, after=b.add(5, 128, core=2))
    assert notices(oracle, b, monkeypatch, START=1, HAND=2)


def test_another_order_of_streams_would_be_noticed(rig, npu, oracle, monkeypatch):
    """Four cores that ask the shared SRAM in the same cycle, the highest first."""
    b = rig.Bench(npu(*SHARP))
    for core in range(4):
        fetch(b, core)
    program, forwards = b.program(), oracle.Moment.__init__
    assert oracle.differences(program, b.machine) == []
    monkeypatch.setattr(
        oracle.Moment,
        "__init__",
        lambda self, env, tick, phase, number: forwards(self, env, tick, phase, 999 - number),
    )
    assert oracle.differences(program, b.machine) != []
