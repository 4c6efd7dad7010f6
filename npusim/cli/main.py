"""The `npusim` command: arguments in, exit code out."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from npusim import __version__
from npusim.cli.parser import make_parser
from npusim.core.errors import (
    BAD_INPUT,
    INTERNAL,
    INTERRUPTED,
    OK,
    InputError,
    NpusimError,
    Problem,
    source_place,
)

if TYPE_CHECKING:
    from argparse import Namespace

#: Set to 1, an internal error prints its traceback instead of saving it.
TRACEBACK_VARIABLE = "NPUSIM_TRACEBACK"
#: How the names of modules begin that were loaded from files of the user's.
OWN = "npusim_user_"


def entry() -> None:
    """What the installed command runs."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started this
            setattr(sys, name, io.StringIO())
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(main())


def _terminated(number: int, _: object) -> None:
    """End as after an error, so that nothing half-written is left."""
    sys.exit(128 + number)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(given)
    except NpusimError as error:
        _tell(*(f"error: {problem}" for problem in error.problems))
        return error.exit_code
    except MemoryError as error:
        _tell(f"error: {_too_large(error)}")
        return BAD_INPUT
    except KeyboardInterrupt:
        _tell("interrupted: nothing half-written is left")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read stdout has gone, and has what it wanted; keep the exit from failing again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return OK
    except SystemExit as stop:  # argparse has printed its help
        return stop.code if isinstance(stop.code, int) else OK
    except Exception as error:
        return _unforeseen(error, given)


def _too_large(error: MemoryError) -> Problem:
    """What was asked for does not fit into this computer."""
    told = str(error).partition("\n")[0] or "no more can be had"
    hints = ("smaller sizes (--set) need less; so does a run with --timing-only",)
    return Problem(f"the memory of this computer does not suffice: {told}", hints=hints)


def _run(given: Sequence[str]) -> int:
    args = make_parser().parse_args(given)
    if args.version:
        print(f"npusim {__version__}")
        return OK
    return _dispatch(args, given)


def _dispatch(args: Namespace, given: Sequence[str]) -> int:
    match args.verb:
        case "run":
            from npusim.cli.run import run

            code = run(args, given)
        case "probe":
            from npusim.cli.probe import probe

            code = probe(args, given)
        case "kernel":
            from npusim.cli.kernel import kernel

            code = kernel(args, given)
        case "show":
            from npusim.cli.show import show

            code = show(args)
        case "list":
            from npusim.cli.listing import list_catalogue

            code = list_catalogue()
        case "export":
            from npusim.cli.export import export

            code = export(args)
        case "warmup":
            from npusim.cli.warmup import warmup

            code = warmup()
        case _:
            hints = ("verbs: run, probe, kernel, show, list, export, warmup", "see npusim --help")
            raise InputError(Problem("a verb is missing", hints=hints))
    from npusim.cli.printer import flush

    flush()
    return code


def _unforeseen(error: Exception, given: Sequence[str]) -> int:
    """The user's to mend if it came out of a file of theirs, else an error of ours."""
    import traceback

    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    lines = [line for _, line in traceback.walk_tb(error.__traceback__)]
    own = [n for n, f in enumerate(frames) if str(f.f_globals.get("__name__")).startswith(OWN)]
    if not own:
        return _internal(error, given)
    place = source_place(frames[own[-1]].f_code.co_filename, lines[own[-1]])
    _tell(f"error: {Problem(f'{type(error).__name__}: {error}', place)}")
    return BAD_INPUT


def _internal(error: Exception, given: Sequence[str]) -> int:
    """One line, and the traceback where it can be found."""
    import traceback

    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{frame.filename}:{frame.lineno}"
    told = str(error).partition("\n")[0]
    text = f"npusim {' '.join(given)}\n{''.join(traceback.format_exception(error))}"
    if os.environ.get(TRACEBACK_VARIABLE) == "1":
        _tell(text.rstrip())
    else:
        where = f"{where}; traceback in {_saved(text)}"
    _tell(f"internal error: {type(error).__name__}: {told} ({where})")
    return INTERNAL


def _saved(text: str) -> str:
    """The file in which the text now is, or how to see it."""
    import tempfile

    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="npusim-traceback-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
            return file.name
    except OSError:
        return f"no file; set {TRACEBACK_VARIABLE}=1 to print it"


def _tell(*lines: str) -> None:
    """On stderr, after all that stands on stdout."""
    for line in lines:
        print(line, file=sys.stderr)
