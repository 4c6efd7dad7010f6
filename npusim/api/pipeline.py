"""One run from texts to a frozen result: the stages one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from npusim.api.execute import Execution, execute
from npusim.api.folder import check_writable, write_folder
from npusim.api.hardware import load_hardware
from npusim.api.identity import manifest_of
from npusim.api.inputs import require_values, with_inputs
from npusim.api.models import load_model
from npusim.api.plans import load_plan
from npusim.api.request import Request
from npusim.api.run import Run
from npusim.api.stages import Stopwatch, Watcher, nobody
from npusim.api.whatif import with_whatif
from npusim.machine.timeline import Timeline
from npusim.machine.timing import time_program
from npusim.measure import layers
from npusim.measure.accounting import Accounting, account
from npusim.measure.build import result_of
from npusim.measure.result import Result
from npusim.plan.lower import Lowered, lower
from npusim.plan.pinned import names_beside, pinned
from npusim.plan.select import Decision, select
from npusim.program.checker import check


def run(request: Request, watcher: Watcher = nobody, command: Sequence[str] = ()) -> Run:
    """Map, check, execute, compare, time and measure a model, as far as `request` asks.

    A run that goes to its end writes its results folder, if one is asked for; `command` is noted
    there. Raises InputError, NoPlan or IllegalProgram; failed checks are in the result.
    """
    made = prepare(request, watcher)
    if request.stop_after == "plan":
        return replace(made, decisions=tuple(decide(made)))
    lowered = build_program(made)
    made = replace(made, lowered=lowered, decisions=lowered.decisions)
    if request.stop_after == "program":
        return made
    if request.computes:
        made = replace(made, execution=_computed(made, lowered))
    if request.stop_after == "functional":
        return made
    timeline, accounting = _timed(made, lowered)
    made = replace(made, timeline=timeline, accounting=accounting)
    if request.stop_after == "timing":
        return made
    result = with_whatif(made, lowered, _measured(made, lowered, timeline, accounting))
    made = replace(made, result=result)
    if request.out is None:
        return made
    return replace(made, folder=write_folder(made, result, command))


def prepare(request: Request, watcher: Watcher = nobody) -> Run:
    """Load model, machine and plan. Raises InputError with what is wrong."""
    watch = Stopwatch(watcher)
    with watch.stage("load"):
        if request.out is not None and request.stop_after is None:
            check_writable(request.out)
        loaded, hw_notes = load_hardware(request.hw, request.hw_set)
        plan = load_plan(request.plan)
        graph, model_notes = load_model(request.model, request.sizes)
        graph = with_inputs(graph, request.input)
        if request.computes:
            require_values(graph)
    return Run(request, loaded, graph, plan, (*hw_notes, *model_notes, *plan.notes), watch)


def decide(made: Run) -> list[Decision]:
    """A kernel and tiles for every operator."""
    plan, allow_host = made.plan, made.request.allow_host
    with made.watch.stage("plan"):
        return select(made.graph, made.machine, plan.plan, plan.kernels, allow_host)


def lower_plan(made: Run) -> Lowered:
    """The plan as a tile program, legal or not."""
    plan, allow_host = made.plan, made.request.allow_host
    with made.watch.stage("plan"):
        return lower(made.graph, made.machine, plan.plan, plan.kernels, allow_host)


def build_program(made: Run) -> Lowered:
    """The plan as a tile program that the checker accepts; IllegalProgram if it does not."""
    lowered = lower_plan(made)
    with made.watch.stage("check the program"):
        check(lowered.program, made.machine)
    return lowered


def _computed(made: Run, lowered: Lowered) -> Execution:
    request = made.request
    return execute(made.graph, made.machine, lowered, request.seed, request.order_seed, made.watch)


def _timed(made: Run, lowered: Lowered) -> tuple[Timeline, Accounting]:
    rows = made.execution.executed.facts.rows if made.execution else None
    with made.watch.stage("time"):
        timeline = time_program(lowered.program, made.machine, rows)
        return timeline, account(timeline)


def _measured(made: Run, lowered: Lowered, timeline: Timeline, accounting: Accounting) -> Result:
    execution = made.execution
    with made.watch.stage("measure"):
        beside = names_beside(made.decisions)
        text = pinned(made.graph, made.plan.plan, made.decisions, beside)
        inputs = made.request.inputs()
        manifest = manifest_of(made.graph, made.machine, lowered.program.hash, text, inputs)
        verdicts = execution.verdicts if execution else None
        finished = layers.Run(made.graph, made.machine, lowered, timeline, accounting, verdicts)
        differences = execution.differences if execution else ()
        return result_of(finished, manifest, made.loaded.provenance, made.notes, differences)
