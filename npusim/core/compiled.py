"""What numba has compiled: by name, in the cache and while one watches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

from npusim.core.jit import PACKAGE, cache_folder, seen_by_compiled_code

_ENTRY_POINT = re.compile(r"^@jit\n(?:@.*\n)*def (\w+)", re.M)


def entry_points() -> set[str]:
    """Qualified names of all functions of the package that `jit` compiles."""
    return {
        ".".join((*path.relative_to(PACKAGE.parent).with_suffix("").parts, name))
        for path in seen_by_compiled_code()
        for name in _ENTRY_POINT.findall(path.read_text("utf-8"))
    }


def kept_functions() -> set[str]:
    """Those of the entry points that the cache holds compiled."""
    folder = cache_folder()
    found = set()
    for index in folder.rglob("*.nbi") if folder is not None else ():
        place, code = index.parent.name, index.name  # machine_d41d8cd9, dram.flush-336.py311.nbi
        found.add(f"{place.rpartition('_')[0]}.{code.rpartition('-')[0]}")
    return {name for name in entry_points() if ".".join(name.split(".")[-3:]) in found}


@contextmanager
def first_compilation(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` when the first function of the package begins to be compiled inside."""
    told = False

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            nonlocal told
            dispatcher = event.data["dispatcher"]
            ours = dispatcher.py_func.__module__.partition(".")[0] == PACKAGE.name
            # What is inlined alone is never kept, so numba types it in every process.
            if ours and not told and not dispatcher.targetoptions.get("forceinline"):
                told = True
                tell()

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Listener()):
        yield


@contextmanager
def compilations(tell: Callable[[str], None]) -> Iterator[None]:
    """Tell the qualified name of each function that gets compiled inside, and not loaded.

    A function is told once for every signature, numba's own parts of it too; those of
    `jit_inline` are left out.
    """

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            pass

        def on_end(self, event: Any) -> None:
            dispatcher = event.data["dispatcher"]
            if not dispatcher.targetoptions.get("forceinline"):
                function = dispatcher.py_func
                tell(f"{function.__module__}.{function.__qualname__}")

    with event.install_listener("numba:compile", Listener()):
        yield
