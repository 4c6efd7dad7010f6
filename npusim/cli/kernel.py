"""The verb `kernel`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence

from npusim.api.warp_kernel import KernelRun, run_kernel
from npusim.cli import printer
from npusim.cli.compiling import compile_note
from npusim.cli.progress import Bar
from npusim.core.arguments import assignments
from npusim.core.errors import CHECK_FAILED, OK
from npusim.report.text import Part
from npusim.report.warp_kernel import parts as kernel_parts


def kernel(args: Namespace, given: Sequence[str]) -> int:
    """Launch one warp kernel as the flags say; prints the annotated source or the document."""
    with Bar() as bar, compile_note():
        found = run_kernel(
            args.kernel, args.hw, args.hw_set, assignments("--set", args.sizes), args.seed,
            args.order, args.out, bar, ["npusim", *given],
        )  # fmt: skip
    for text in found.notes:
        printer.note(text)
    if args.json:
        printer.write(found.result.to_json())
    else:
        printer.show(_parts(found))
    return OK if found.result.is_right else CHECK_FAILED


def _parts(found: KernelRun) -> Iterator[Part]:
    yield from kernel_parts(found.result)
    yield f"results: {found.folder}"
