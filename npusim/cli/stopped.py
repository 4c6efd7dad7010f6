"""What a run that was stopped after a stage has to show."""

from __future__ import annotations

from collections.abc import Iterator

from npusim.api.execute import Execution
from npusim.api.run import Run
from npusim.core.units import seconds
from npusim.measure.verdicts import Verdict
from npusim.plan.select import Decision
from npusim.report import numbers
from npusim.report.layers import verdict
from npusim.report.table import Column, Table
from npusim.report.text import Part


def parts(made: Run) -> Iterator[Part]:
    """What the last stage made: decisions, a summary of the program, checks, or cycles."""
    if made.timeline is not None:
        cycles = made.timeline.cycles
        time = seconds(cycles / made.machine.core.clock_hz)
        yield f"timed: {numbers.cycles(cycles)} cycles = {time}"
    elif made.execution is not None:
        yield check_table(made, made.execution)
    elif made.lowered is not None:
        from npusim.program.printer import summary

        yield from summary(made.lowered.program)
        yield "the checker accepts it"
    else:
        yield decision_table(made.decisions)
    yield f"stopped after {made.request.stop_after}; no result is written"


def decision_table(decisions: tuple[Decision, ...]) -> Table:
    """What was decided for each layer, and why."""
    columns = (
        Column("layer", 10),
        Column("operator", 10),
        Column("kernel and tile", 20, head=True),
        Column("claimed cycles"),
        Column("claimed DRAM"),
        Column("why", 30, head=True),
    )
    return Table(columns, tuple(_decision(d) for d in decisions))


def _decision(decision: Decision) -> tuple[str, ...]:
    choice = decision.choice
    made = [f"{name}={value}" for name, value in decision.choices.items()]
    return (
        decision.unit.name,
        decision.unit.operators,
        " ".join([decision.kernel_name, *made]),
        numbers.cycles(choice.cycles) if choice else numbers.NONE,
        numbers.size(choice.dram_bytes) if choice else numbers.NONE,
        decision.reason,
    )


def check_table(made: Run, execution: Execution) -> Table:
    """Every check, in order; failed ones with their messages."""
    columns = (
        Column("layer", 10),
        Column("output", 10),
        Column("error"),
        Column("of tol."),
        Column("check"),
        Column("what was found", 30, head=True),
    )
    rows = [_verdict(made, found) for found in execution.verdicts]
    rows += [
        (d.layer, d.output, numbers.NONE, numbers.NONE, verdict(False), d.message)
        for d in execution.differences
    ]
    marks = tuple("failed" if row[4] == verdict(False) else "" for row in rows)
    return Table(columns, tuple(rows), marks=marks)


def _verdict(made: Run, found: Verdict) -> tuple[str, ...]:
    check = found.check
    return (
        made.decisions[found.layer].unit.name,
        check.output,
        numbers.error(check.max_error),
        numbers.error(check.tolerance_ratio),
        verdict(check.validated),
        check.message,
    )
