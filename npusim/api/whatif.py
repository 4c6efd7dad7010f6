"""A finished run on other machines: what it is sensitive to, and whether its bottlenecks are."""

from __future__ import annotations

from npusim.api.run import Run
from npusim.hw.machine import Machine
from npusim.measure.confirm import confirm
from npusim.measure.result import Result
from npusim.measure.retime import Retimed, retime
from npusim.measure.sensitivity import sensitivity
from npusim.plan.lower import Lowered, lower

#: The stages that time a run again.
AGAIN = ("confirm bottlenecks", "sensitivity, fixed", "sensitivity, replan")


def with_whatif(made: Run, lowered: Lowered, result: Result) -> Result:
    """The result with what the request asks to know about other machines."""
    request, watch = made.request, made.watch
    if not request.confirm and request.sensitivity is None:
        return result
    assert made.timeline is not None and made.accounting is not None
    base = Retimed(lowered.program, made.machine, made.timeline.cycles, made.accounting)
    rows = made.execution.executed.facts.rows if made.execution else None

    def again(machine: Machine) -> Retimed:
        return retime(lowered.program, machine, rows)

    def planned(machine: Machine) -> Retimed:
        kernels, allow_host = made.plan.kernels, request.allow_host
        program = lower(made.graph, machine, made.plan.plan, kernels, allow_host).program
        return retime(program, machine, rows if program.hash == lowered.program.hash else None)

    found: dict[str, object] = {}
    if request.confirm:
        name = AGAIN[0]
        with watch.stage(name):
            found["confirmations"] = confirm(
                base, result.layers, again, lambda d, n: watch.watcher(name, d, n)
            )
    if request.sensitivity is not None:
        stage, mode = f"sensitivity, {request.sensitivity}", request.sensitivity
        with watch.stage(stage):
            found["sensitivity"] = sensitivity(
                base, again if mode == "fixed" else planned, mode,
                lambda d, n: watch.watcher(stage, d, n),
            )  # fmt: skip
    return result.model_copy(update=found)
