"""The one numba decorator: compiled functions are cached, and never run stale.

numba keys its cache by the file of the compiled function alone, so it runs old code when a
callee or a constant in another file has changed. Here the cache folder is named by a hash of
every source that compiled code can see; a change anywhere in them starts a new folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")

#: The folder of the package, whose functions alone are cached.
PACKAGE = Path(__file__).resolve().parents[1]
_KEPT_FOLDERS = 16
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w.]+))", re.M
)
_DECORATES = re.compile(
    r"^[ \t]*@(?:\w+\.)*jit(?:_\w+)?\b|\bjit(?:_inline|_allocating)?(?:\(|[ \t]+as\b)", re.MULTILINE
)
_one_at_a_time = threading.Lock()


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile without the GIL, division as numpy does it, no bounds check, cached on disk.

    The function works on the arrays it is given: references to them are not counted, which would
    take half of the time of a hot loop. It cannot make arrays nor take any from what it calls.
    NUMBA_DISABLE_JIT, NUMBA_BOUNDSCHECK and NUMBA_CACHE_DIR work as numba documents them.
    Functions outside this package are compiled, but not cached: nothing watches their callees.
    """
    return _cached(function, counts_references=False)


def jit_allocating(function: Callable[P, R]) -> Callable[P, R]:
    """As `jit`, for functions that make arrays or call others that return some."""
    return _cached(function, counts_references=True)


def jit_inline(function: Callable[P, R]) -> Callable[P, R]:
    """As `jit`, but compiled into each compiled caller; its code is cached with theirs."""
    return _compile(function, forceinline=True)


def _cached(function: Callable[P, R], *, counts_references: bool) -> Callable[P, R]:
    folder = cache_folder()
    if folder is None or not Path(function.__code__.co_filename).resolve().is_relative_to(PACKAGE):
        return _compile(function, counts_references=counts_references)
    config: Any = numba.config
    with _one_at_a_time:
        given = config.CACHE_DIR
        config.CACHE_DIR = str(folder)
        try:
            return _compile(function, cached=True, counts_references=counts_references)
        except (OSError, RuntimeError):  # the folder went away meanwhile
            return _compile(function, counts_references=counts_references)
        finally:
            config.CACHE_DIR = given


def _compile(
    function: Callable[P, R],
    *,
    cached: bool = False,
    forceinline: bool = False,
    counts_references: bool = False,
) -> Callable[P, R]:
    njit: Any = numba.njit
    compiled: Callable[P, R] = njit(
        cache=cached, forceinline=forceinline, nogil=True, error_model="numpy",
        _nrt=counts_references,
    )(function)  # fmt: skip
    return compiled


@cache
def cache_folder() -> Path | None:
    """Where compiled code lies: below NUMBA_CACHE_DIR or the user's cache, else in the temporary
    folder, else None (nothing is cached)."""
    for folder in _candidates(_folder_name()):
        if _usable(folder):
            _forget_oldest(folder)
            return folder
    return None


def is_temporary() -> bool:
    """Whether the cache lies in the temporary folder, for want of a better place."""
    folder = cache_folder()
    return folder is not None and folder == _in_temporary_folder(_folder_name())


def source_hash(package: Path) -> str:
    """Hash of all sources below `package` that compiled code can see, and of numba's settings.

    numba freezes callees and constants alike into the compiled function.
    """
    digest = hashlib.blake2b(digest_size=12)
    for path in sorted(seen_by_compiled_code(package)):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()}\0{len(source)}\0".encode())
        digest.update(source)
    for name, value in sorted(os.environ.items()):
        if name.startswith("NUMBA_") and name != "NUMBA_CACHE_DIR":
            digest.update(f"{name}={value}\0".encode())
    return digest.hexdigest()


def seen_by_compiled_code(package: Path = PACKAGE) -> set[Path]:
    """Modules that use these decorators and, transitively, what they import from the package."""
    sources = {path: path.read_text("utf-8", "replace") for path in package.rglob("*.py")}
    waiting = [path for path, text in sources.items() if _DECORATES.search(text)]
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += (p for p in _imported(sources[path], package) if p in sources)
    return seen


def _imported(source: str, package: Path) -> Iterator[Path]:
    """Files that the import statements of `source` may mean; some of them need not exist."""
    for module, names, plain in _IMPORT.findall(source):
        head, *parts = (module or plain).split(".")
        if head == package.name:
            target = package.joinpath(*parts)
            for candidate in (target, *(target / name for name in re.findall(r"\w+", names))):
                yield candidate.with_suffix(".py")
                yield candidate / "__init__.py"


def _folder_name() -> str:
    return f"npusim-{source_hash(PACKAGE)}"


def _candidates(name: str) -> Iterator[Path]:
    if os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(os.environ["NUMBA_CACHE_DIR"], name)
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    yield Path(home, "npusim", "numba", name)
    temporary = _in_temporary_folder(name)
    if temporary is not None:
        yield temporary


def _in_temporary_folder(name: str) -> Path | None:
    """Where `name` goes if it must lie there; None if there is no temporary folder either."""
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError:
        return None
    return Path(folder, f"{name}-{os.getuid() if hasattr(os, 'getuid') else 'user'}")


def _usable(folder: Path) -> bool:
    """Whether the folder can be written, and by nobody else: numba unpickles what lies there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            status = folder.stat()
        os.utime(folder)
    except OSError:
        return False
    ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return ours and not status.st_mode & 0o022


def _forget_oldest(used: Path) -> None:
    """Remove what was compiled from sources long gone, so that the cache does not grow for ever."""
    try:
        others = (p for p in used.parent.iterdir() if re.fullmatch(r"npusim-[0-9a-f]{24}", p.name))
        by_age = sorted(others, key=lambda p: p.stat().st_mtime, reverse=True)
    except OSError:
        return
    for stale in by_age[_KEPT_FOLDERS:]:
        shutil.rmtree(stale, ignore_errors=True)
