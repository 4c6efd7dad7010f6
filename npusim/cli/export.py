"""The verb `export`."""

from __future__ import annotations

from argparse import Namespace

from npusim.api.export import export as write_model
from npusim.cli import printer
from npusim.core.arguments import assignments
from npusim.core.errors import OK, InputError, Place, Problem
from npusim.report.numbers import count


def export(args: Namespace) -> int:
    """Write the model to the file that -o names."""
    if not args.output:
        raise InputError(Problem("say which file to write, e.g. -o model.onnx", Place("-o")))
    sizes = assignments("--set", args.set)
    graph, notes = write_model(args.model, sizes, args.output, args.dtype, args.seed)
    for text in notes:
        printer.note(text)
    printer.write(f"wrote {graph.name} ({count(len(graph.nodes), 'operator')}) to {args.output}\n")
    return OK
