"""Hidden folders beside results, named by the process that writes there.

A process that was killed leaves its folder; the next one that writes beside it removes it.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Name inside a scratch folder of what was in the way of the results.
REPLACED = "replaced"


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """An empty hidden folder in `parent` for the time inside; it is removed at the end."""
    remove_left(parent)
    with tempfile.TemporaryDirectory(dir=parent, prefix=f"{_prefix()}{os.getpid()}-") as name:
        yield Path(name)


def remove_left(parent: Path) -> None:
    """Remove the scratch folders of processes of this host that are gone.

    Where a process was killed between moving old results away and putting new ones in their
    place, its folder stays: no other copy may be left.
    """
    pattern = re.compile(rf"{re.escape(_prefix())}(\d+)-\w+")
    for path in parent.iterdir():
        match = pattern.fullmatch(path.name)
        if match and path.is_dir() and not path.is_symlink() and not _runs(int(match[1])):
            _remove(path)


def _remove(folder: Path) -> None:
    """Remove one, unless results lie in it whose place is empty; another run may be quicker."""
    with suppress(OSError):
        inside = [entry.name for entry in folder.iterdir() if entry.is_dir()]
        if REPLACED not in inside or len(inside) == 1:
            shutil.rmtree(folder, ignore_errors=True)


def _prefix() -> str:
    """What the names of this host's begin with; a number means a process on one host only."""
    return f".npusim-{re.sub(r'[^A-Za-z0-9.]', '_', socket.gethostname())[:64]}-"


def _runs(process: int) -> bool:
    """Whether a process is there; True where one cannot ask."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # somebody else's
        return True
    return True
