"""The verb `run`."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence

from npusim.api.pipeline import run as run_model
from npusim.api.request import Request
from npusim.api.run import Run
from npusim.api.whatif import AGAIN
from npusim.cli import printer, stopped
from npusim.cli.compiling import compile_note
from npusim.cli.progress import Bar
from npusim.core.arguments import assignments
from npusim.core.errors import CHECK_FAILED, OK, InputError, Place, Problem
from npusim.report.text import Part
from npusim.report.text import parts as report_parts


def run(args: Namespace, given: Sequence[str]) -> int:
    """Run a model as the flags say; prints the report or the result."""
    if args.json and args.stop_after:
        text = "prints the whole result, and --stop-after ends before there is one"
        raise InputError(Problem(text, Place("--json")))
    with Bar() as bar, compile_note():
        made = run_model(request_of(args), bar, ["npusim", *given])
    for text in made.notes:
        printer.note(text)
    if made.result is not None and args.json:
        printer.write(made.result.to_json())
        for failure in made.result.failures:
            print(f"FAILED {failure.layer}: {failure.message}", file=sys.stderr)
    else:
        printer.show(_parts(made))
    if made.request.sensitivity is not None or made.request.confirm:
        printer.note(
            f"{made.watch.cpu_s:.1f} CPU s, of these {_again_s(made):.1f} to time it again"
        )
    return OK if made.valid else CHECK_FAILED


def _again_s(made: Run) -> float:
    """CPU seconds of the stages that timed the run on other machines."""
    return sum(spent["cpu_s"] for stage, spent in made.watch.seconds.items() if stage in AGAIN)


def request_of(args: Namespace) -> Request:
    """The flags as a request."""
    return Request(
        model=args.model,
        hw=args.hw,
        plan=args.plan,
        sizes=assignments("--set", args.set),
        hw_set=tuple(args.hw_set),
        seed=args.seed,
        input=assignments("--input", args.input),
        timing_only=args.timing_only,
        allow_host=not args.no_host,
        order=args.order,
        stop_after=args.stop_after,
        sensitivity=args.sensitivity,
        confirm=args.confirm,
        out=args.out,
    )


def _parts(made: Run) -> Iterator[Part]:
    if made.result is None:
        yield from stopped.parts(made)
        return
    yield from report_parts(made.result, full=False)
    yield f"results: {made.folder}"
