"""The verb `probe`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence

from npusim.api.probe import Probed
from npusim.api.probe import probe as probe_machine
from npusim.cli import printer
from npusim.cli.compiling import compile_note
from npusim.cli.progress import Bar
from npusim.core.errors import OK, InputError, Place, Problem
from npusim.report.probe import parts as probe_parts
from npusim.report.text import Part


def probe(args: Namespace, given: Sequence[str]) -> int:
    """Measure a machine as the flags say; prints the tables or the document."""
    if args.noc_trace:
        from npusim.cli.noc_trace import probe_traces

        return probe_traces(args, given)
    for flag in ("golden", "links"):
        if getattr(args, flag) is not None:
            raise InputError(Problem("goes with --noc-trace only", Place(f"--{flag}")))
    with Bar() as bar, compile_note():
        found = probe_machine(args.hw, args.hw_set, args.only, args.out, bar, ["npusim", *given])
    for text in found.notes:
        printer.note(text)
    if args.json:
        printer.write(found.result.to_json())
    else:
        printer.show(_parts(found))
    return OK


def _parts(found: Probed) -> Iterator[Part]:
    yield from probe_parts(found.result)
    yield f"results: {found.folder}"
