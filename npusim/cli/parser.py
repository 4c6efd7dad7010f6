"""Verbs and flags; nothing heavy is imported to explain them."""

from __future__ import annotations

import argparse

from npusim.cli.arguments import Parser, whole_number

_EXIT_CODES = """\
exit codes:
  0    all went well
  1    it ran, and a check failed (the result is written)
  2    bad input: a flag, file, model, machine or plan
  3    the checker refused a program
  4    nothing legal: sizes outside a plan's bounds, or a host fall-back under --no-host
  70   internal error
  130  interrupted
"""
STAGES = ("plan", "program", "functional", "timing")
_RAW = argparse.RawDescriptionHelpFormatter


def make_parser() -> Parser:
    """The parser of the whole command line; `verb` and `what` name what was asked for."""
    parser = Parser(
        prog="npusim",
        description="A software NPU: execute, validate and time a mapping plan.",
        epilog=_EXIT_CODES,
        formatter_class=_RAW,
    )
    parser.allow_abbrev = False
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    _run(verbs)
    _probe(verbs)
    _kernel(verbs)
    _show(verbs)
    _verb(verbs, "list", "machines, models, plans and kernels of the catalogue")
    _export(verbs)
    _verb(verbs, "warmup", "compile all of npusim's loops ahead, and say where they are kept")
    return parser


def _run(verbs: argparse._SubParsersAction[Parser]) -> None:
    run = _verb(verbs, "run", "map, execute, validate and time a model")
    _subject(run, machine=True, plan=True)
    run.add_argument("--seed", type=whole_number, default=0, metavar="N", help="of all data (0)")
    run.add_argument(
        "--input", action="extend", nargs="+", default=[], metavar="NAME=HOW",
        help="values of an input: zeros, ones, arange[:START], normal, randint:LO:HI (both "
        "belong), FILE.npy",
    )  # fmt: skip
    run.add_argument("--out", default="results", metavar="DIR", help="results go there (results)")
    run.add_argument("--json", action="store_true", help="print the whole result and nothing else")
    run.add_argument(
        "--timing-only", action="store_true", help="compute no values, so validate nothing"
    )
    run.add_argument(
        "--order", metavar="random:SEED",
        help="execute in another legal order too, and report what that changes",
    )  # fmt: skip
    run.add_argument("--stop-after", choices=STAGES, metavar="STAGE", help=", ".join(STAGES))
    run.add_argument(
        "--sensitivity", nargs="?", const="fixed", choices=("fixed", "replan"), metavar="HOW",
        help="time it again with each number of the machine doubled and halved: fixed (the same "
        "plan) or replan (fixed)",
    )  # fmt: skip
    run.add_argument(
        "--confirm", action="store_true",
        help="time it again with twice what each of the largest layers lacks: does it follow?",
    )  # fmt: skip


def _probe(verbs: argparse._SubParsersAction[Parser]) -> None:
    probe = _verb(verbs, "probe", "measure the modelled machine by small programs")
    _subject(probe, model=False, machine=True)
    probe.add_argument(
        "--only", action="extend", nargs="+", default=[], metavar="GROUP",
        help="only these groups of micro-benchmarks, e.g. bandwidth latency",
    )  # fmt: skip
    probe.add_argument(
        "--noc-trace", action="extend", nargs="+", default=[], metavar="FILE",
        help="replay measured network reads instead, and compare (CSV or .csv.gz: trace, proc, "
        "noc, sx, sy, dx, dy, bytes, event, cycle)",
    )  # fmt: skip
    probe.add_argument(
        "--golden", metavar="FILE", help="measured totals of traces: CSV with trace, golden_cycles"
    )
    probe.add_argument("--links", metavar="TRACE", help="draw the load of all links in a trace")
    probe.add_argument("--out", default="results", metavar="DIR", help="results go there (results)")
    probe.add_argument("--json", action="store_true", help="print the document and nothing else")


def _kernel(verbs: argparse._SubParsersAction[Parser]) -> None:
    kernel = _verb(verbs, "kernel", "launch one warp kernel with its example, count and check")
    kernel.add_argument(
        "kernel", metavar="NAME|FILE:NAME", help="warp kernel of the catalogue, or of a .py file"
    )
    _subject(kernel, model=False, machine=True)
    kernel.add_argument(
        "--set", action="extend", nargs="+", default=[], metavar="KEY=VALUE", dest="sizes",
        help="size of the example or choice of the kernel, e.g. n=512 pad=0",
    )  # fmt: skip
    kernel.add_argument("--seed", type=whole_number, default=0, metavar="N", help="of all data (0)")
    kernel.add_argument(
        "--order", type=whole_number, metavar="SEED",
        help="let warps take their turns in an order drawn from it",
    )  # fmt: skip
    kernel.add_argument(
        "--out", default="results", metavar="DIR", help="results go there (results)"
    )
    kernel.add_argument("--json", action="store_true", help="print the document and nothing else")


def _show(verbs: argparse._SubParsersAction[Parser]) -> None:
    show = _verb(verbs, "show", "print a machine, model, plan, program or result")
    things = show.add_subparsers(dest="what", metavar="WHAT", parser_class=Parser)
    hw = _verb(things, "hw", "the machine: every field, its provenance, its peaks")
    _subject(hw, model=False, machine=True)
    hw.add_argument(
        "--schema", action="store_true", help="the JSON schema of machine files, for editors"
    )
    hw.add_argument("--yaml", action="store_true", help="the resolved machine as a file to edit")
    _subject(_verb(things, "model", "operators, shapes, FLOPs, bytes, what the import changed"))
    plan = _verb(things, "plan", "the plan with every choice made, as a plan file")
    _subject(plan, machine=True, plan=True)
    program = _verb(things, "program", "the tile program: a summary and 40 instructions")
    _subject(program, machine=True, plan=True)
    program.add_argument("--layer", metavar="NAME", help="only this layer's instructions")
    program.add_argument("--core", type=whole_number, metavar="N", help="only this core's")
    program.add_argument("--all", action="store_true", help="all of them instead of 40")
    result = _verb(things, "result", "a stored result, by default the latest one")
    result.add_argument("path", nargs="?", metavar="PATH", help="results folder or result.json")
    result.add_argument("--out", default="results", metavar="DIR", help="where to look (results)")
    result.add_argument("--json", action="store_true", help="the document itself")


def _export(verbs: argparse._SubParsersAction[Parser]) -> None:
    export = _verb(verbs, "export", "write a model as an ONNX file")
    _subject(export)
    export.add_argument("-o", "--output", metavar="F.onnx", help="the file to write")
    export.add_argument("--dtype", metavar="DTYPE", help="store all floats so, e.g. float32")
    export.add_argument("--seed", type=whole_number, default=0, metavar="N", help="of weights (0)")


def _verb(verbs: argparse._SubParsersAction[Parser], name: str, text: str) -> Parser:
    """A verb whose flags are written in full."""
    verb = verbs.add_parser(
        name, help=text, description=text, epilog=_EXIT_CODES, formatter_class=_RAW
    )
    verb.allow_abbrev = False
    return verb


def _subject(
    parser: Parser, *, model: bool = True, machine: bool = False, plan: bool = False
) -> None:
    """The flags that say what a verb is about, the same everywhere."""
    if machine:
        parser.add_argument(
            "--hw", default="npu_a", metavar="NAME|FILE", help="machine, YAML (npu_a)"
        )
        parser.add_argument(
            "--hw-set", action="extend", nargs="+", default=[], metavar="KEY=VALUE",
            help="change a field of the machine, e.g. core.sram.banks=64",
        )  # fmt: skip
    if model:
        parser.add_argument(
            "--model", default="llama_block", metavar="NAME|FILE",
            help="model of the catalogue, .py or .onnx file (llama_block)",
        )  # fmt: skip
        parser.add_argument(
            "--set", action="extend", nargs="+", default=[], metavar="KEY=VALUE",
            help="size of the model, e.g. phase=decode past=2048",
        )  # fmt: skip
    if plan:
        parser.add_argument(
            "--plan", default="auto", metavar="NAME|FILE",
            help="plan of the catalogue or .py file; auto: by claims (auto)",
        )  # fmt: skip
        parser.add_argument(
            "--no-host", action="store_true", help="refuse operators that only the host can run"
        )
