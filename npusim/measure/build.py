"""Puts the frozen result together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from npusim.hw.provenance import Provenance
from npusim.machine.classes import CycleClass
from npusim.machine.host import ARITHMETIC, INWARDS, LAUNCH, OUTWARDS, host_phases
from npusim.measure.assumptions import assumptions
from npusim.measure.bands import models, time_range
from npusim.measure.caching import caching, flushed, record
from npusim.measure.layers import (
    Run,
    array_busy,
    fraction,
    layer_results,
    memory_stall,
    memory_traffic,
    works,
)
from npusim.measure.result import (
    SCHEMA_VERSION,
    Accounting,
    Failure,
    Fallback,
    Manifest,
    Result,
    Totals,
)
from npusim.measure.traffic import region_bytes, traffic
from npusim.measure.work import Work, compulsory_bytes
from npusim.program.kinds import Kind
from npusim.program.program import Ints, Program


def result_of(
    run: Run,
    manifest: Manifest,
    provenance: Mapping[str, Provenance],
    notes: Sequence[str] = (),
    failures: Sequence[Failure] = (),
) -> Result:
    """The result of a finished run; `notes` join its assumptions, `failures` its failed checks."""
    work = works(run)
    failed = (*failures, *_failures(run))
    return Result(
        schema_version=SCHEMA_VERSION,
        hardware=run.machine.name,
        model=run.graph.name,
        plan=run.lowered.plan.name,
        seed=manifest.inputs.seed,
        totals=_totals(run, work, None if run.verdicts is None else not failed),
        layers=tuple(layer_results(run, work)),
        accounting=_accounting(run),
        fallbacks=tuple(_fallbacks(run)),
        failures=failed,
        models=models(run.machine),
        assumptions=assumptions(run, work, provenance, notes),
        manifest=manifest,
    )


def _totals(run: Run, work: Sequence[Work], validated: bool | None) -> Totals:
    cycles, machine = run.timeline.cycles, run.machine
    classes = run.accounting.cycles.sum(axis=(0, 1))
    busy = array_busy(classes)
    mapped = [d.how != "host" for d in run.lowered.decisions]
    ideal = sum(w.ideal_cycles for w, here in zip(work, mapped, strict=True) if here)
    done = sum(w.flops for w in work)
    by_dram = compulsory_bytes(run.graph) / machine.dram_bytes_per_cycle
    used = caching(run.timeline)
    bursts = run.timeline.dram_bursts * machine.dram.burst_bytes
    low, high = time_range(run.seconds(cycles), classes, models(machine))
    return Totals(
        cycles=cycles,
        time_s=run.seconds(cycles),
        time_low_s=low,
        time_high_s=high,
        flops=done,
        flop_fraction=fraction(ideal, cycles) or 0.0,
        flops_per_s=fraction(done, run.seconds(cycles)) or 0.0,
        array_busy_fraction=fraction(busy, run.core_cycles) or 0.0,
        memory_stall_fraction=fraction(memory_stall(classes), run.core_cycles) or 0.0,
        validated=validated,
        bytes=memory_traffic(traffic(run.lowered.program, run.timeline.costs).sum(axis=0)),
        dram_burst_bytes=bursts,
        dram_bandwidth_fraction=fraction(bursts, cycles * machine.dram_bytes_per_cycle) or 0.0,
        cache=None if used is None else record(used.sum(axis=0)),
        flush=flushed(run.timeline),
        floor_cycles=float(max(ideal, by_dram)),
        instructions=len(run.lowered.program),
    )


def _accounting(run: Run) -> Accounting:
    cores = {}
    for core in range(run.machine.cores):
        classes = run.accounting.of_core(core)
        cores[str(core)] = {c.label: int(classes[c]) for c in CycleClass}
    return Accounting(cores=cores)


def _failures(run: Run) -> list[Failure]:
    layers = run.lowered.program.layers
    return [
        Failure(layer=layers[v.layer].name, output=v.check.output, message=v.check.message)
        for v in run.verdicts or ()
        if not v.check.validated
    ]


def _fallbacks(run: Run) -> list[Fallback]:
    """The host's layers; their price is the host's own time, whoever waited for it."""
    program, timeline = run.lowered.program, run.timeline
    who = program.rows_of(Kind.HOST)
    ticks, moved = (timeline.end - timeline.start)[who], _link_bytes(program)
    phases = host_phases(program, run.machine)[program.instructions.row[who]]
    found = []
    for number, decision in enumerate(run.lowered.decisions):
        if decision.how == "host":
            mine = program.instructions.layer[who] == number
            total = float(ticks[mine].sum() / timeline.ticks_per_cycle)
            part = phases[mine].sum(axis=0) / timeline.ticks_per_cycle
            found.append(
                Fallback(
                    layer=decision.unit.name,
                    operator=decision.unit.operators,
                    reason=decision.reason,
                    cycles=total,
                    launch_cycles=float(part[LAUNCH]),
                    link_cycles=float(part[INWARDS] + part[OUTWARDS]),
                    arithmetic_cycles=float(part[ARITHMETIC]),
                    waiting_cycles=float(total - part.sum()),
                    time_s=run.seconds(total),
                    bytes=int(moved[mine].sum()),
                )
            )
    return found


def _link_bytes(program: Program) -> Ints:
    """Bytes that each host operator takes over the link and back."""
    hosts, size = program.hosts, region_bytes(program)
    return _sums(size[hosts.read], hosts.read_ptr) + _sums(size[hosts.write], hosts.write_ptr)


def _sums(values: Ints, ptr: Ints) -> Ints:
    """The sum of each CSR row."""
    upto = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(upto[ptr[1:]] - upto[ptr[:-1]])
