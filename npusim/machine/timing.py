"""The timing reader: the functional one's instructions, priced with contention (A1, A2)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from npusim.core.errors import IllegalProgram, InputError
from npusim.hw.machine import Machine
from npusim.machine import dram, host, network, scratchpad, shared, state
from npusim.machine.cache.params import cache_params
from npusim.machine.cache.state import CacheUse, cache_state, cache_use
from npusim.machine.conflicts import Conflicts
from npusim.machine.dma import Walks, walks
from npusim.machine.dram.detailed.layout import counted, detailed_state
from npusim.machine.dram.detailed.params import Controller, controller
from npusim.machine.engine import simulate
from npusim.machine.heap import MAX_STREAMS
from npusim.machine.in_flight import with_results_in_flight
from npusim.machine.layouts import conflicts
from npusim.machine.state import CoreParams, Tables
from npusim.machine.tables import pieces_in_flight, tables_of
from npusim.machine.timeline import Timeline, by_instruction
from npusim.machine.units import Costs, costs
from npusim.program.origin import describe
from npusim.program.program import Edges, Ints, Program

_POLICIES = {
    "round_robin": None,
    "fixed_priority": state.FIXED_PRIORITY,
    "oldest_first": state.OLDEST_FIRST,
}


def time_program(
    program: Program, machine: Machine, rows: Mapping[int, Ints] | None = None
) -> Timeline:
    """When everything happens; `rows` are the facts about indirect copies (None: assumed).

    Raises IllegalProgram if some instructions can never start.
    """
    queues = len(program.streams) + machine.dram.channels
    if queues > MAX_STREAMS:
        raise InputError(f"{queues} streams and DRAM channels; the engine takes {MAX_STREAMS}")
    cost = costs(program, machine)
    layout = conflicts(program, machine, cost.busy)
    walk = walks(program, machine, rows)
    edges = with_results_in_flight(program, machine, cost)
    tables = tables_of(program, machine, cost, layout, walk, edges)
    dram_p, host_p = dram.dram_params(machine), host.host_params(machine)
    dram_s = dram.dram_state(dram_p)
    command_p = _controllers(program, machine)
    command_s = np.zeros(1, np.int64) if command_p is None else detailed_state(command_p)
    cache_p = cache_params(machine)
    cache_s = cache_state(machine, cache_p, len(walk.table))
    shared_p = shared.shared_params(machine)
    ticks = simulate(
        *tables,
        _POLICIES[machine.core.dma.arbitration],
        _core_params(machine),
        dram_p,
        dram_s,
        command_p,
        command_s,
        network.network_params(machine),
        network.network_state(machine),
        shared_p,
        shared.shared_state(shared_p),
        cache_p if cache_p.present else None,
        cache_s,
        scratchpad.scratchpad_params(machine),
        scratchpad.scratchpad_state(machine.cores),
        *layout.tables,
        host_p,
        host.host_state(host_p),
        host.host_phases(program, machine),
    )
    if tables.counts[state.COMPLETED] < len(program):
        stuck = _first_left(tables)
        raise IllegalProgram(f"deadlock: {describe(program, stuck)} can never start")
    used = cache_use(cache_p, cache_s)
    dram_counts = dram_s if command_p is None else counted(command_p, command_s)
    return _timeline(
        program, machine, edges, cost, layout, walk, tables, dram_counts, used, int(ticks)
    )


def _timeline(
    program: Program,
    machine: Machine,
    edges: Edges,
    cost: Costs,
    layout: Conflicts,
    walk: Walks,
    tables: Tables,
    dram_s: Ints,
    used: CacheUse | None,
    ticks: int,
) -> Timeline:
    trace, segments = tables.trace, tables.segments[: tables.counts[state.SEGMENTS]]
    return Timeline(
        program=program,
        edges=edges,
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
        cache=used,
        assumed_rows=walk.assumed_rows,
    )


def _controllers(program: Program, machine: Machine) -> Controller | None:
    """What decides DRAM's commands one by one; None where a model answers at once."""
    if machine.dram.model != "detailed":
        return None
    pieces = pieces_in_flight(len(program.streams), machine)
    return controller(machine.dram, machine.tick_hz // machine.dram.clock_hz, pieces)


def _first_left(tables: Tables) -> int:
    """The first instruction that has not completed."""
    streams = tables.streams
    ends = zip(streams[:, state.S_HEAD].tolist(), streams[:, state.S_END].tolist(), strict=True)
    return min(int(tables.order[head:end].min()) for head, end in ends if head < end)


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
        queues=core.dma.queues,
    )
