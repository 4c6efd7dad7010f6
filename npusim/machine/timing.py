"""The timing reader: the functional one's instructions, priced with contention (A1, A2)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from npusim.core.dtypes import dtype, names
from npusim.core.errors import IllegalProgram, InputError
from npusim.hw.machine import Machine
from npusim.machine import dram, network, scratchpad, shared, state
from npusim.machine.conflicts import Conflicts
from npusim.machine.dma import Walks, walks
from npusim.machine.engine import simulate
from npusim.machine.heap import MAX_STREAMS
from npusim.machine.layouts import conflicts
from npusim.machine.order import stream_rows
from npusim.machine.state import CoreParams, Tables
from npusim.machine.timeline import Timeline, by_instruction
from npusim.machine.units import Costs, costs
from npusim.program.kinds import Kind
from npusim.program.origin import describe
from npusim.program.program import Ints, Program


def time_program(
    program: Program, machine: Machine, rows: Mapping[int, Ints] | None = None
) -> Timeline:
    """When everything happens; `rows` are the facts about indirect copies (None: assumed).

    Raises IllegalProgram if some instructions can never start.
    """
    if len(program.streams) > MAX_STREAMS:
        raise InputError(f"{len(program.streams)} streams; the engine takes {MAX_STREAMS}")
    cost = costs(program, machine)
    layout = conflicts(program, machine, cost.busy)
    walk = walks(program, machine, rows)
    tables = _tables(program, machine, cost, layout, walk)
    dram_p = dram.dram_params(machine)
    dram_s = dram.dram_state(dram_p)
    ticks = simulate(
        *tables,
        _core_params(machine),
        dram_p,
        dram_s,
        network.network_params(machine),
        network.network_state(machine.cores),
        shared.shared_params(machine),
        shared.shared_state(),
        scratchpad.scratchpad_params(machine),
        scratchpad.scratchpad_state(machine.cores),
        *layout.tables,
    )
    if tables.counts[state.COMPLETED] < len(program):
        stuck = int(np.flatnonzero(tables.trace[:, state.T_END] == 0)[0])
        raise IllegalProgram(f"deadlock: {describe(program, stuck)} can never start")
    return _timeline(program, machine, cost, layout, walk, tables, dram_s, int(ticks))


def _timeline(
    program: Program,
    machine: Machine,
    cost: Costs,
    layout: Conflicts,
    walk: Walks,
    tables: Tables,
    dram_s: Ints,
    ticks: int,
) -> Timeline:
    trace, segments = tables.trace, tables.segments[: tables.counts[state.SEGMENTS]]
    return Timeline(
        program=program,
        costs=cost,
        conflicts=layout,
        dispatched=trace[:, state.T_DISPATCHED].copy(),
        ready=trace[:, state.T_READY].copy(),
        start=trace[:, state.T_START].copy(),
        free=trace[:, state.T_FREE].copy(),
        end=trace[:, state.T_END].copy(),
        stretch=trace[:, state.T_STRETCH].copy(),
        requests=trace[:, state.T_REQUESTS].copy(),
        segments=by_instruction(
            segments[:, state.G_INSTRUCTION],
            segments[:, state.G_UNTIL],
            segments[:, state.G_WHY],
            len(program),
        ),
        ticks=ticks,
        ticks_per_cycle=machine.ticks_per_cycle,
        dispatch_ticks=_core_params(machine).dispatch,
        events=int(tables.counts[state.EVENTS]),
        dram_bursts=int(dram_s[dram.BURSTS]),
        dram_activates=int(dram_s[dram.ACTIVATES]),
        dram_refreshes=int(dram_s[dram.REFRESHES]),
        assumed_rows=walk.assumed_rows,
    )


def _tables(
    program: Program, machine: Machine, cost: Costs, layout: Conflicts, walk: Walks
) -> Tables:
    instructions, count = program.instructions, len(program)
    work = np.zeros((count, state.W_WIDTH), np.int64)
    work[:, state.W_STREAM] = instructions.stream
    work[:, state.W_KIND] = instructions.kind
    work[:, state.W_ROW] = instructions.row
    for column, values in (
        (state.W_FILL, cost.fill),
        (state.W_BUSY, cost.busy),
        (state.W_TAIL, cost.tail),
        (state.W_STRETCH, layout.stretch),
        (state.W_LOAD_STRETCH, layout.load_stretch),
        (state.W_PATTERN, layout.pattern),
    ):
        work[:, column] = values
    hosts = program.rows_of(Kind.HOST)
    work[hosts, state.W_HOST] = _host_ticks(program, machine)[instructions.row[hosts]]
    users = _users(program, work)
    streams, cores, order = _queues(program)
    requests = int(walk.requests(machine.core.dma.request_bytes).sum())
    return Tables(
        work=work,
        users=users,
        order=order,
        walk=walk.table,
        rows=walk.rows if len(walk.rows) else np.zeros(1, np.int64),
        trace=_trace(program),
        streams=streams,
        cores=cores,
        rings=np.zeros((len(program.streams), machine.core.dma.outstanding_requests), np.int64),
        segments=np.empty((2 * requests + 3 * len(walk.table) + 1, state.G_WIDTH), np.int64),
        heap=np.empty(2 * len(program.streams) + 2, np.int64),
        counts=np.zeros(4, np.int64),
    )


def _trace(program: Program) -> Ints:
    """Nothing has happened; host work needs no dispatcher."""
    trace = state.empty_trace(len(program), np.diff(program.edges.ptr))
    core = np.array([stream.core for stream in program.streams], np.int64)
    trace[core[program.instructions.stream] < 0, state.T_DISPATCHED] = 0
    return trace


def _users(program: Program, work: Ints) -> Ints:
    """Who waits for each instruction, grouped; writes the bounds into `work`."""
    edges, count = program.edges, len(program)
    target = np.repeat(np.arange(count), np.diff(edges.ptr))
    bounds = np.concatenate([[0], np.cumsum(np.bincount(edges.source, minlength=count))])
    work[:, state.W_USER], work[:, state.W_USER_END] = bounds[:-1], bounds[1:]
    return target[np.argsort(edges.source, kind="stable")]


def _queues(program: Program) -> tuple[Ints, Ints, Ints]:
    """Stream and core tables, and the instructions by stream, then by core."""
    by_stream = stream_rows(program)
    streams = np.zeros((len(program.streams), state.S_WIDTH), np.int64)
    streams[:, state.S_CORE] = [stream.core for stream in program.streams]
    streams[:, state.S_UNIT] = [int(stream.unit) for stream in program.streams]
    ends = np.cumsum([len(rows) for rows in by_stream])
    begins = ends - [len(rows) for rows in by_stream]
    for column in (state.S_BEGIN, state.S_HEAD, state.S_NEXT):
        streams[:, column] = begins
    streams[:, state.S_END] = ends
    owner = streams[program.instructions.stream, state.S_CORE]
    by_core = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[by_core], np.arange(program.cores + 1)) + len(program)
    cores = np.zeros((program.cores, state.C_WIDTH), np.int64)
    cores[:, state.C_NEXT], cores[:, state.C_LAST] = bounds[:-1], bounds[1:]
    cores[:, state.C_BLOCKED] = -1
    return streams, cores, np.concatenate([*by_stream, by_core])


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
        ahead=core.sram.stream_entries,
        port_bytes_per_cycle=core.dma.port_bytes_per_cycle,
    )


def _host_ticks(program: Program, machine: Machine) -> Ints:
    """Price of each host operator: launch, both ways over the link, and its arithmetic (A29)."""
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
