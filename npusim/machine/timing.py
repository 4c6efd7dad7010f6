"""The timing reader: the same instructions as the functional one, priced with contention."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from npusim.core.dtypes import dtype, names
from npusim.core.errors import IllegalProgram, InputError
from npusim.hw.machine import Machine
from npusim.machine import dram, noc
from npusim.machine.dma import walks
from npusim.machine.engine import CoreParams, Trace, Work, simulate
from npusim.machine.heap import MAX_STREAMS
from npusim.machine.order import stream_rows
from npusim.machine.timeline import Timeline, by_instruction
from npusim.machine.units import Costs, costs
from npusim.program.program import Ints, Program


def time_program(
    program: Program, machine: Machine, rows: Mapping[int, Ints] | None = None
) -> Timeline:
    """When everything happens; `rows` are the facts about indirect copies (None: assumed).

    Raises IllegalProgram if some instructions can never start.
    """
    if len(program.streams) > MAX_STREAMS:
        raise InputError(f"{len(program.streams)} streams; the engine takes {MAX_STREAMS}")
    count = len(program)
    cost = costs(program, machine)
    walk = walks(program, machine, rows)
    work = _work(program, cost, walk.table, walk.rows)
    trace = Trace(*(np.zeros(count, np.int64) for _ in range(7)))
    trace.dispatched[:] = -1
    dram_p, net_p = dram.dram_params(machine), noc.network_params(machine)
    dram_s, net_s = dram.dram_state(dram_p), noc.network_state(machine.cores)
    host = _host_ticks(program, machine)
    seg_i, until, why, ticks, completed = simulate(
        work, _core_params(machine), dram_p, dram_s, net_p, net_s, trace, host
    )
    if completed < count:
        stuck = int(np.flatnonzero(trace.end == 0)[0])
        raise IllegalProgram(f"deadlock: {program.describe(stuck)} can never start")
    return Timeline(
        program=program,
        costs=cost,
        dispatched=trace.dispatched,
        ready=trace.ready,
        start=trace.start,
        free=trace.free,
        end=trace.end,
        stretch=trace.stretch,
        requests=trace.requests,
        segments=by_instruction(seg_i, until, why, count),
        ticks=int(ticks),
        ticks_per_cycle=machine.ticks_per_cycle,
        dram_bursts=int(dram_s[dram.BURSTS]),
        dram_activates=int(dram_s[dram.ACTIVATES]),
        dram_refreshes=int(dram_s[dram.REFRESHES]),
        assumed_rows=walk.assumed_rows,
    )


def _work(program: Program, cost: Costs, walk: Ints, rows: Ints) -> Work:
    instructions, edges = program.instructions, program.edges
    count = len(program)
    target = np.repeat(np.arange(count), np.diff(edges.ptr))
    by_source = np.argsort(edges.source, kind="stable")
    user_ptr = np.concatenate([[0], np.cumsum(np.bincount(edges.source, minlength=count))])
    orders = stream_rows(program)
    core = np.array([s.core for s in program.streams], np.int64)
    owner = core[instructions.stream]
    dispatch = np.argsort(owner, kind="stable")
    dispatch_ptr = np.searchsorted(owner[dispatch], np.arange(program.cores + 1))
    return Work(
        stream=instructions.stream,
        kind=instructions.kind,
        row=instructions.row,
        left=np.diff(edges.ptr),
        user_ptr=user_ptr.astype(np.int64),
        user=target[by_source],
        order_ptr=np.concatenate([[0], np.cumsum([len(o) for o in orders])]).astype(np.int64),
        order=np.concatenate(orders),
        dispatch_ptr=dispatch_ptr.astype(np.int64),
        dispatch=dispatch,
        stream_core=core,
        stream_unit=np.array([int(s.unit) for s in program.streams], np.int64),
        fill=cost.fill,
        busy=cost.busy,
        tail=cost.tail,
        fetch=cost.fetch,
        walk=walk,
        rows=rows if len(rows) else np.zeros(1, np.int64),
    )


def _core_params(machine: Machine) -> CoreParams:
    core, cycle = machine.core, machine.ticks_per_cycle
    return CoreParams(
        cycle=cycle,
        outstanding=core.dma.outstanding_requests,
        request_bytes=core.dma.request_bytes,
        descriptor=core.dma.descriptor_cycles * cycle,
        dispatch=core.sequencer.dispatch_cycles * cycle,
        depth=core.sequencer.queue_depth,
        signal=core.sequencer.signal_cycles * cycle,
        wait=core.sequencer.wait_cycles * cycle,
        sram_bytes_per_cycle=core.sram.bandwidth_bytes_per_cycle,
    )


def _host_ticks(program: Program, machine: Machine) -> Ints:
    """Price of each host operator: launch, both ways over the link, and its arithmetic."""
    hosts, regions = program.hosts, program.regions
    item = np.array([dtype(name).itemsize for name in names()], np.int64)[regions.dtype]
    size = regions.elements * item
    ticks = np.zeros(max(len(hosts.node), 1), np.int64)
    for row in range(len(hosts.node)):
        moved = size[hosts.read[hosts.read_ptr[row] : hosts.read_ptr[row + 1]]].sum()
        moved += size[hosts.write[hosts.write_ptr[row] : hosts.write_ptr[row + 1]]].sum()
        seconds = machine.host.launch_ns * 1e-9 + moved / machine.host.link_bytes_per_s
        seconds += hosts.elements[row] / machine.host.flops_per_s
        ticks[row] = int(np.ceil(seconds * machine.tick_hz))
    return ticks
