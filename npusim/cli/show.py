"""The verb `show`: a machine, model, plan, program or result in readable form."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from npusim.api.hardware import load_hardware
from npusim.api.models import load_model
from npusim.api.pipeline import decide, lower_plan, prepare
from npusim.api.request import Request
from npusim.api.run import Run
from npusim.api.stored import find_result, read_result
from npusim.cli import printer
from npusim.cli.show_hw import hardware_parts
from npusim.cli.show_model import model_parts
from npusim.core.arguments import assignments
from npusim.core.errors import OK, InputError, Problem
from npusim.hw.dump import dump_yaml
from npusim.hw.schema import json_schema
from npusim.plan.pinned import pinned
from npusim.program.printer import listing, summary
from npusim.report.text import Part
from npusim.report.text import parts as report_parts

WHAT = ("hw", "model", "plan", "program", "result")


def show(args: Namespace) -> int:
    """Print what was asked for."""
    match args.what:
        case "hw":
            _hw(args)
        case "model":
            graph, notes = load_model(args.model, assignments("--set", args.set))
            _notes(notes)
            printer.show(model_parts(graph))
        case "plan":
            made = _prepared(args, "plan")
            printer.write(pinned(made.graph, made.plan.plan, decide(made)))
        case "program":
            printer.show(_program(args))
        case "result":
            _result(args)
        case _:
            raise InputError(Problem("show what?", hints=(f"allowed: {', '.join(WHAT)}",)))
    return OK


def _notes(notes: list[str] | tuple[str, ...]) -> None:
    for text in notes:
        printer.note(text)


def _hw(args: Namespace) -> None:
    if args.schema:
        printer.write(json.dumps(json_schema(), indent=2))
        return
    loaded, notes = load_hardware(args.hw, args.hw_set)
    _notes(notes)
    if args.yaml:
        printer.write(dump_yaml(loaded.machine))
    else:
        printer.show(hardware_parts(loaded))


def _prepared(args: Namespace, stage: str) -> Run:
    made = prepare(
        Request(
            model=args.model,
            hw=args.hw,
            plan=args.plan,
            sizes=assignments("--set", args.set),
            hw_set=tuple(args.hw_set),
            allow_host=not args.no_host,
            stop_after="program" if stage == "program" else "plan",
            out=None,
        )
    )
    _notes(made.notes)
    return made


def _program(args: Namespace) -> Iterator[Part]:
    # Not checked: a program that is refused is the one most worth looking at.
    lowered = lower_plan(_prepared(args, "program"))
    rows = listing(lowered.program, args.layer, args.core, None if args.all else 40)
    yield from (*summary(lowered.program), "", *rows)  # all there, or nothing is printed


def _result(args: Namespace) -> None:
    path = Path(args.path) if args.path else find_result(Path(args.out))
    result = read_result(path)
    if args.json:
        printer.write(result.to_json())
        return
    printer.show([*report_parts(result, full=True), f"results: {path}"])
