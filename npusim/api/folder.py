"""The results folder of a run: written beside its place, then renamed into it."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from npusim.api.identity import folder_name
from npusim.api.run import Run
from npusim.api.scratch import REPLACED, scratch_folder
from npusim.api.stages import Stopwatch
from npusim.core.errors import InputError, Place, Problem
from npusim.hw.dump import dump_yaml
from npusim.measure.result import Result
from npusim.plan.pinned import names_beside, pinned
from npusim.report.layers_csv import layers_csv
from npusim.report.text import plain_report
from npusim.report.whatif import picture

LATEST = "latest"
PICTURE = "sensitivity.svg"


def check_writable(out: str) -> None:
    """InputError if results cannot be written below `out`; nothing is made."""
    folder = Path(out).absolute()
    try:
        while not folder.exists():
            folder = folder.parent
    except OSError as error:
        raise InputError(Problem(f"{out}: {error.strerror or error}", Place("--out"))) from None
    if not folder.is_dir():
        raise InputError(Problem(f"{folder} is not a folder", Place("--out")))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(Problem(f"{folder} cannot be written to", Place("--out")))


def write_folder(made: Run, result: Result, command: Sequence[str]) -> Path:
    """Write OUT/MODEL@HARDWARE/HASH and point `latest` at it; returns the folder.

    It appears whole or not at all. Raises InputError if it cannot be written.
    """
    assert made.request.out is not None
    target = place_of(made.request.out, result.model, result.hardware, folder_name(result.manifest))
    write_whole(target, lambda: _files(made, result, target, command))
    return target


def place_of(out: str, subject: str, hardware: str, name: str) -> Path:
    """OUT/SUBJECT@HARDWARE/NAME."""
    return Path(out) / f"{_safe(subject)}@{_safe(hardware)}" / name


def write_whole(target: Path, files: Callable[[], Mapping[str, str]]) -> None:
    """Write a folder of texts beside its place, rename it, and point its parent's `latest` at it.

    Raises InputError if it cannot be written; then whatever was there is still there.
    """
    parent = target.parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(parent) as scratch:
            fresh = scratch / target.name
            fresh.mkdir()
            for name, text in files().items():
                (fresh / name).write_text(text, encoding="utf-8", newline="\n")
            _swap(fresh, target, scratch / REPLACED)
            _point(parent / LATEST, target.name, scratch / LATEST)
    except OSError as error:
        message = f"cannot write results: {error.strerror or error}"
        raise InputError(Problem(message, Place(str(target)))) from None


def _files(made: Run, result: Result, target: Path, command: Sequence[str]) -> Mapping[str, str]:
    beside, table = names_beside(made.decisions), made.machine.core.matrix.timing_table
    pictures = {} if result.sensitivity is None else {PICTURE: picture(result.sensitivity)}
    return {
        **pictures,
        "result.json": result.to_json(),
        "layers.csv": layers_csv(result),
        "report.txt": plain_report(result),
        "machine.yaml": dump_yaml(made.machine),
        **({table.file: table.text()} if table else {}),
        "plan.py": pinned(made.graph, made.plan.plan, made.decisions, beside),
        **{name: file.read_text("utf-8") for file, name in beside.items()},
        "run.json": json.dumps(
            circumstances(target, command, made.loaded.source, made.watch), indent=2
        )
        + "\n",
    }


def circumstances(
    target: Path, command: Sequence[str], machine_file: str, watch: Stopwatch
) -> dict[str, object]:
    """What may differ between two runs of the same: when, where and how fast."""
    return {
        "command": list(command),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "python": sys.version.split()[0],
        "platform": sys.platform,
        "working_directory": str(Path.cwd()),
        "folder": str(target.absolute()),
        "machine_file": machine_file,
        "stages": watch.seconds,
        "cpu_s": watch.cpu_s,
    }


def _swap(fresh: Path, target: Path, replaced: Path) -> None:
    """Put `fresh` where `target` is; what was there goes to `replaced`."""
    try:
        os.rename(fresh, target)
    except OSError:
        if not target.exists():
            raise
        os.rename(target, replaced)
        try:
            os.rename(fresh, target)
        except OSError:
            os.rename(replaced, target)
            raise


def _point(link: Path, name: str, scratch: Path) -> None:
    """Make `link` lead to its sibling `name`: a link, or a file with the name where none can be."""
    try:
        os.symlink(name, scratch)
    except OSError:
        scratch.write_text(f"{name}\n", encoding="utf-8")
    os.replace(scratch, link)


def _safe(name: str) -> str:
    """A name that is one folder's on every system."""
    return re.sub(r"[^\w.+-]+", "_", name, flags=re.ASCII).strip(".")[:80] or "unnamed"
