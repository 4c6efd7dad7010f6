"""What it costs to start things: instructions, descriptors, signals, the host."""

from __future__ import annotations

from statistics import median

import numpy as np

from npusim.program.kinds import Space
from npusim.validate.peaks import HOST, LINK
from npusim.validate.rig import Rig

X = ("source", 0)
#: Instructions of one kind in a row.
RUN = 16


def measure(rig: Rig) -> None:
    """In core cycles, but the host's in seconds."""
    dispatches(rig)
    descriptors(rig)
    signals(rig)
    host(rig)


def dispatches(rig: Rig) -> None:
    """Between two instructions that the sequencer hands out, while every queue has room."""
    bench = rig.bench()
    tile = bench.tile(Space.SRAM, (1,), "fp32", 0)
    to = bench.tile(Space.SRAM, (1,), "fp32", 0, filled=False)
    count = min(RUN, rig.machine.core.sequencer.queue_depth)
    made = [bench.vector(0, ("neg", X), to, tile) for _ in range(count)]
    run = bench.timed()
    handed = np.diff(run.timeline.dispatched[made]) / run.timeline.ticks_per_cycle
    stated = float(rig.machine.core.sequencer.dispatch_cycles)
    if len(handed):
        rig.number("hand-out of an instruction", float(np.median(handed)), "cycles", stated)
    else:
        rig.leave_out("hand-out of an instruction", "queues hold a single one")


def descriptors(rig: Rig) -> None:
    """From descriptor to descriptor in one queue, each of a single request."""
    bench, size = rig.bench(), rig.machine.dram.burst_bytes
    source = bench.tile(Space.SRAM, (size,), core=0)
    made = [
        bench.copy(0, bench.tile(Space.SRAM, (size,), core=0, filled=False), source)
        for _ in range(RUN)
    ]
    run = bench.timed()
    starts = np.diff(run.timeline.start[made]) / run.timeline.ticks_per_cycle
    spec = rig.machine.core.dma.descriptor_cycles
    rig.number("descriptor with one request", float(np.median(starts)), "cycles", spec + 1.0,
               run)  # fmt: skip


def signals(rig: Rig) -> None:
    """From the end of an instruction to the start of one that waits for it elsewhere."""
    spec = rig.machine.core.sequencer
    stated = float(spec.signal_cycles + spec.wait_cycles)
    pairs = [("to another unit", 0)]
    if rig.machine.cores > 1:
        pairs.append(("to another core", rig.machine.cores - 1))
    else:
        rig.leave_out("signal to another core", f"{rig.machine.name} has one core")
    for name, core in pairs:
        rig.number(f"signal {name}", _signal(rig, core), "cycles", stated)


def _signal(rig: Rig, core: int) -> float:
    """A copy on core 0 after each of a row of vector instructions on `core`."""
    bench, size = rig.bench(), rig.machine.dram.burst_bytes
    tile = bench.tile(Space.SRAM, (1024,), "fp32", core)
    to = bench.tile(Space.SRAM, (1024,), "fp32", core, filled=False)
    source = bench.tile(Space.SRAM, (size,), core=0)
    gaps = []
    pairs = []
    for _ in range(RUN // 2):
        target = bench.tile(Space.SRAM, (size,), core=0, filled=False)
        done = bench.vector(core, ("neg", X), to, tile)
        pairs.append((done, bench.copy(0, target, source, after=[done])))
    run = bench.timed()
    for done, waiting in pairs:
        gaps.append(float(run.timeline.start[waiting] - run.timeline.end[done]))
    return median(gaps) / run.timeline.ticks_per_cycle


def host(rig: Rig) -> None:
    """An operator on nothing, on many bytes, and of many operations."""
    spec = rig.machine.host
    bench = rig.bench()
    small = bench.tile(Space.DRAM, (1,))
    bench.host([small], [], 0)
    bare = bench.timed()
    rig.number("operator on the host, of nothing", bare.time_s, "s", spec.launch_ns * 1e-9)
    size = 1 << 26
    bench = rig.bench()
    large = bench.tile(Space.DRAM, (size,))
    bench.host([large], [], 0)
    run = bench.timed()
    # What is taken off was rounded up to a tick, which would be missing, and brings a byte as well.
    launch_s = bare.time_s - 1 / rig.machine.tick_hz
    rig.peak("bytes to the host", (size - 1) / (run.time_s - launch_s), LINK, run)
    work = 1 << 32
    bench = rig.bench()
    small = bench.tile(Space.DRAM, (1,))
    bench.host([small], [], work)
    run = bench.timed()
    rig.peak("operations on the host", work / (run.time_s - launch_s), HOST, run)
