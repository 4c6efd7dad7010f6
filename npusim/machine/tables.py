"""The timing engine's tables, filled from a program before its run."""

from __future__ import annotations

import numpy as np

from npusim.core import host_memory
from npusim.hw.machine import Machine
from npusim.machine import state
from npusim.machine.cache.params import lines_of_request
from npusim.machine.conflicts import Conflicts
from npusim.machine.dma import Walks
from npusim.machine.order import stream_rows
from npusim.machine.state import Tables
from npusim.machine.units import Costs
from npusim.program.program import Edges, Ints, Program

#: What makes a run of fewer requests.
_FEWER = ("smaller sizes (--set), or a larger core.dma.request_bytes, make fewer",)


def pieces_in_flight(streams: int, machine: Machine) -> int:
    """Most parts of accesses, each in one DRAM channel, that can be under way at a time.

    Behind a cache these are its fills, and what its lines give up for each request.
    """
    dma, cache = machine.core.dma, machine.cache
    if cache is not None:
        in_line = cache.sectors + cache.line_bytes // machine.dram.granule_bytes
        replaced = machine.requests_in_flight * lines_of_request(machine, cache)
        return in_line * (cache.slices * cache.mshr_entries + replaced)
    in_request = dma.request_bytes // machine.dram.granule_bytes + 2
    return streams * dma.outstanding_requests * in_request


def tables_of(
    program: Program,
    machine: Machine,
    cost: Costs,
    layout: Conflicts,
    walk: Walks,
    edges: Edges,
) -> Tables:
    """Nothing has happened yet; arrays are as large as the program can need."""
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
    users = _users(edges, work)
    streams, cores, order = _queues(program)
    per_request = 2 if machine.cache is None else 3
    outstanding = machine.core.dma.outstanding_requests
    late = machine.dram.model == "detailed"  # nobody else needs the tables of what is under way
    pieces = pieces_in_flight(len(program.streams), machine) if late else 0
    requests = int(walk.requests(machine.core.dma.request_bytes).sum())
    segments = per_request * requests + 3 * len(walk.table) + 1
    host_memory.require(8 * state.G_WIDTH * segments, f"timing {requests:,} requests", *_FEWER)
    return Tables(
        work=work,
        users=users,
        order=order,
        walk=walk.table,
        rows=walk.rows,
        trace=_trace(program, edges),
        streams=streams,
        cores=cores,
        rings=np.zeros((len(program.streams), outstanding), np.int64),
        segments=np.empty((segments, state.G_WIDTH), np.int64),
        flying=np.zeros((late * len(program.streams) * outstanding, state.F_WIDTH), np.int64),
        agenda=np.full(machine.dram.channels, state.UNKNOWN, np.int64),
        done=np.empty((pieces, 2), np.int64),
        heap=np.empty(2 * len(program.streams) + 2 + machine.dram.channels, np.int64),
        counts=np.zeros(4, np.int64),
    )


def _trace(program: Program, edges: Edges) -> Ints:
    """Nothing has happened; host work needs no dispatcher."""
    trace = state.empty_trace(len(program), np.diff(edges.ptr))
    core = np.array([stream.core for stream in program.streams], np.int64)
    trace[core[program.instructions.stream] < 0, state.T_DISPATCHED] = 0
    return trace


def _users(edges: Edges, work: Ints) -> Ints:
    """Who waits for each instruction, grouped; writes the bounds into `work`."""
    count = len(work)
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
    streams[:, state.S_QUEUE] = [stream.queue for stream in program.streams]
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
