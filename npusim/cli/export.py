"""The verb `export`."""

from __future__ import annotations

from argparse import Namespace

from npusim.api.models import load_model
from npusim.cli import printer
from npusim.core.arguments import assignments
from npusim.core.errors import OK, InputError, Place, Problem
from npusim.graph.onnx_export import export_onnx


def export(args: Namespace) -> int:
    """Write the model to the file that -o names."""
    if not args.output:
        raise InputError(Problem("say which file to write, e.g. -o model.onnx", Place("-o")))
    graph, notes = load_model(args.model, assignments("--set", args.set))
    for text in notes:
        printer.note(text)
    export_onnx(graph, args.output, args.dtype, args.seed)
    print(f"wrote {graph.name} ({len(graph.nodes)} operators) to {args.output}")
    return OK
