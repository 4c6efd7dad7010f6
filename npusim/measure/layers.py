"""From a timeline and its accounting to one record per layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from npusim.core.dtypes import names
from npusim.graph.ir import Graph
from npusim.hw.machine import Machine
from npusim.machine.classes import MEMORY_STALLS, CycleClass
from npusim.machine.timeline import Timeline
from npusim.measure.accounting import Accounting
from npusim.measure.caching import caching, dram_bytes, record
from npusim.measure.operands import operand_conflicts
from npusim.measure.precision import matrix_rows, multiplied_dtype
from npusim.measure.result import (
    Caching,
    Choice,
    Claim,
    LayerResult,
    OperandConflict,
    Roofline,
    Traffic,
)
from npusim.measure.traffic import MEMORIES, traffic
from npusim.measure.verdicts import Verdict
from npusim.measure.work import Work, minimum_bytes, work_of
from npusim.plan.lower import Lowered
from npusim.plan.select import Decision
from npusim.program.kinds import Kind
from npusim.program.program import Ints, Program


@dataclass(frozen=True)
class Run:
    """What a finished run left behind; `verdicts` is None if no values were computed."""

    graph: Graph
    machine: Machine
    lowered: Lowered
    timeline: Timeline
    accounting: Accounting
    verdicts: Sequence[Verdict] | None

    @property
    def core_cycles(self) -> int:
        """Cycles of all cores together."""
        return self.timeline.cycles * self.machine.cores

    def seconds(self, cycles: float) -> float:
        """Core cycles as time."""
        return cycles / self.machine.core.clock_hz


def works(run: Run) -> list[Work]:
    """What each layer has to do; an operator that two layers repeat counts in the first."""
    counted: set[str] = set()
    found = []
    for number, decision in enumerate(run.lowered.decisions):
        rows = matrix_rows(run.lowered.program, number)
        fed = multiplied_dtype(run.lowered.program, rows)
        nodes = [node for node in decision.unit.nodes if node.name not in counted]
        counted.update(node.name for node in nodes)
        multiplied = fed.name if fed else None
        found.append(work_of(run.graph, run.machine, nodes, multiplied, decision.unit.name))
    return found


def layer_results(run: Run, work: Sequence[Work]) -> list[LayerResult]:
    """One record per decision of the plan, in program order."""
    moved, used = traffic(run.lowered.program, run.timeline.costs), caching(run.timeline)
    by_dram = dram_bytes(run.machine, moved, used)
    spans = _spans(run.timeline)
    macs = _mac_cycles(run.lowered.program, run.machine, run.timeline)
    met = operand_conflicts(run.timeline, run.machine)
    return [
        _layer(
            run,
            number,
            work[number],
            moved[number],
            int(by_dram[number]),
            None if used is None else record(used[number]),
            spans[number],
            float(macs[number]),
            met.get(number, ()),
        )
        for number in range(len(run.lowered.decisions))
    ]


def _layer(
    run: Run,
    number: int,
    work: Work,
    moved: Ints,
    by_dram: int,
    cache: Caching | None,
    span: tuple[int, int] | None,
    mac_cycles: float,
    met: tuple[OperandConflict, ...],
) -> LayerResult:
    decision = run.lowered.decisions[number]
    classes = run.accounting.of_layer(number)
    total, busy = int(classes.sum()), array_busy(classes)
    cycles = total / run.machine.cores
    first, second = _largest(classes)
    validated, max_error, ratio = _verdict(run, number)
    on_host = decision.how == "host"
    return LayerResult(
        name=decision.unit.name,
        operator=decision.unit.operators,
        kernel=decision.kernel_name,
        how=decision.how,
        nodes=tuple(node.name for node in decision.unit.nodes),
        choices=_choices(decision),
        step=run.lowered.program.layers[number].step,
        reason=decision.reason,
        cycles=cycles,
        core_cycles=total,
        time_s=run.seconds(cycles),
        span=span,
        flops=work.flops,
        compute_dtype=work.compute_dtype,
        flop_fraction=None if on_host else fraction(work.ideal_cycles, cycles),
        array_busy_fraction=fraction(busy, total),
        pe_utilization=fraction(mac_cycles, busy),
        memory_stall_fraction=fraction(memory_stall(classes), total),
        stall_cycles={c.label: int(classes[c]) for c in CycleClass if classes[c]},
        operand_conflicts=met,
        bottleneck=first,
        runner_up=second,
        bytes=memory_traffic(moved),
        minimum_bytes=minimum_bytes(run.graph, decision.unit.nodes, run.lowered.program.tensors),
        dram_bandwidth_fraction=_dram_share(run, by_dram, span),
        cache=cache,
        claim=_claim(decision),
        roofline=None if on_host else _roofline(run, work, by_dram, cycles),
        max_error=max_error,
        tolerance_ratio=ratio,
        nonfinite_elements=_nonfinite(run, number),
        validated=validated,
    )


def fraction(part: float, whole: float) -> float | None:
    """part / whole, None of nothing."""
    return float(part / whole) if whole else None


def array_busy(classes: Ints) -> int:
    """Core-cycles in which the array worked."""
    return int(classes[CycleClass.MATRIX] + classes[CycleClass.FILL_DRAIN])


def memory_stall(classes: Ints) -> int:
    """Core-cycles that waited for memory."""
    return int(classes[list(MEMORY_STALLS)].sum())


def memory_traffic(moved: Ints) -> dict[str, Traffic]:
    """Bytes by memory from a [memories, 2] array."""
    return {
        space.name.lower(): Traffic(read=int(moved[space, 0]), write=int(moved[space, 1]))
        for space in MEMORIES
    }


def _choices(decision: Decision) -> dict[str, Choice]:
    """Choices of the kernel, and padding that the plan asked for."""
    pads = {f"{name}.pad_bytes": size for name, size in decision.pads.items()}
    return {name: _plain(value) for name, value in decision.choices.items()} | pads


def _plain(value: Any) -> Choice:
    return value if isinstance(value, bool | int | float | str) else repr(value)


def _largest(classes: Ints) -> tuple[str | None, str | None]:
    """Names of the largest class and of the next, None where there is none."""
    order = sorted((c for c in CycleClass if classes[c]), key=lambda c: (-int(classes[c]), c))
    labels = [c.label for c in order[:2]]
    return (labels + [None, None])[0], (labels + [None, None])[1]


def _claim(decision: Decision) -> Claim | None:
    if decision.choice is None:
        return None
    choice = decision.choice
    return Claim(cycles=choice.cycles, bytes=choice.dram_bytes, bottleneck=choice.bottleneck)


def _roofline(run: Run, work: Work, moved_bytes: int, cycles: float) -> Roofline | None:
    """The lower of peak FLOP/s and intensity x DRAM bandwidth; None where there are no FLOPs."""
    if not work.flops or not cycles:
        return None
    machine = run.machine
    peak = work.peak_flops_per_cycle * machine.core.clock_hz
    intensity = fraction(work.flops, moved_bytes)
    by_dram = peak if intensity is None else intensity * machine.dram.peak_bytes_per_s
    return Roofline(
        intensity=intensity,
        attainable_flops_per_s=min(peak, by_dram),
        sustained_flops_per_s=work.flops / run.seconds(cycles),
        roof="compute" if peak <= by_dram else "dram",
    )


def _dram_share(run: Run, moved_bytes: int, span: tuple[int, int] | None) -> float | None:
    """DRAM bytes of a layer over what DRAM could move from its first start to its last end."""
    if span is None:
        return None
    most = (span[1] - span[0]) * run.machine.dram_bytes_per_cycle
    return fraction(moved_bytes, most)


def _nonfinite(run: Run, number: int) -> int | None:
    """NaN and infinite elements of a layer's checked results."""
    if run.verdicts is None:
        return None
    return sum(v.check.nonfinite for v in run.verdicts if v.layer == number)


def _verdict(run: Run, number: int) -> tuple[bool | None, float | None, float | None]:
    """(validated, error and tolerance ratio of the worst float output) of a layer."""
    if run.verdicts is None:
        return None, None, None
    mine = [v for v in run.verdicts if v.layer == number]
    validated = all(v.check.validated for v in mine)
    floats = [v.check for v in mine if v.is_float]
    if not floats:
        return validated, None, None
    worst = max(floats, key=lambda check: check.tolerance_ratio)
    return validated, _finite(worst.max_error), _finite(worst.tolerance_ratio)


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _spans(timeline: Timeline) -> list[tuple[int, int] | None]:
    """First start and last end of each layer's instructions, in whole core cycles outwards."""
    layer, cycle = timeline.program.instructions.layer, timeline.ticks_per_cycle
    count = len(timeline.program.layers)
    start = np.full(count, np.iinfo(np.int64).max)
    end = np.full(count, -1)
    np.minimum.at(start, layer, timeline.start)
    np.maximum.at(end, layer, timeline.end)
    return [
        (int(low) // cycle, -(-int(high) // cycle)) if high >= 0 else None
        for low, high in zip(start, end, strict=True)
    ]


def _mac_cycles(program: Program, machine: Machine, timeline: Timeline) -> np.ndarray[Any, Any]:
    """Core-cycles in which all elements of the arrays would do each layer's multiply-adds."""
    matrix, all_names = machine.core.matrix, names()
    who = program.rows_of(Kind.MMA)
    codes = program.regions.dtype[program.mmas.a]
    rate = np.array([matrix.rates.get(name, 1.0) for name in all_names])[codes]
    cycles = timeline.costs.macs[who] / (rate * matrix.elements)
    out = np.zeros(max(len(program.layers), 1))
    np.add.at(out, program.instructions.layer[who], cycles)
    return out
