"""The verb `warmup`."""

from __future__ import annotations

from npusim.api.warmup import Warmth, warm_up
from npusim.cli import printer
from npusim.cli.progress import Bar
from npusim.core.errors import OK
from npusim.report.numbers import count


def warmup() -> int:
    """Compile ahead; prints what was compiled and where it is kept."""
    with Bar() as bar:
        warmth = warm_up(bar)
    printer.write(
        f"compiled {count(len(warmth.compiled), 'function')} of {len(warmth.all_of)} "
        f"in {warmth.cpu_s:.1f} CPU seconds\n"
    )
    _where(warmth)
    return OK


def _where(warmth: Warmth) -> None:
    """Where compiled code is kept, and whether it will be there next time."""
    if warmth.folder is None:
        printer.note(
            "no folder can be written, so nothing is kept and every run compiles again; "
            "NUMBA_CACHE_DIR names one"
        )
        return
    printer.write(f"kept: {count(len(warmth.kept), 'function')} in {warmth.folder}\n")
    if warmth.temporary:
        printer.note(
            "that is the temporary folder, since the user's cache cannot be written: what is "
            "kept lasts until it is emptied; NUMBA_CACHE_DIR names another place"
        )
