"""Groups of micro-benchmarks, one module each, found by scanning the modules beside this.

The first line of a module's docstring is its question; `measure(rig)` asks it.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from npusim.core.errors import InputError, Place, Problem, choose_from
from npusim.hw.machine import Machine
from npusim.validate.rig import Rig


def names() -> list[str]:
    """The names of all groups, sorted."""
    return sorted(info.name for info in pkgutil.iter_modules(__path__) if info.name[0] != "_")


def chosen(only: Sequence[str]) -> list[str]:
    """The groups asked for, each once, in the order of `names`; all where none is.

    Raises InputError with the nearest name for what is none.
    """
    known = names()
    wrong = [name for name in only if name not in known]
    if wrong:
        raise InputError(
            *(
                Problem(f"unknown group {name!r}", Place("--only"), choose_from(name, known))
                for name in wrong
            )
        )
    return [name for name in known if not only or name in only]


def question(name: str) -> str:
    """What a group asks, in one line."""
    return (_module(name).__doc__ or "").strip().partition("\n")[0].rstrip(".")


def measured(name: str, machine: Machine) -> Rig:
    """What a group finds out about a machine; what that cannot run is left out, with the reason."""
    rig = Rig(machine, name)
    with rig.asking("the rest of the group"):
        _module(name).measure(rig)
    return rig


def _module(name: str) -> ModuleType:
    return import_module(f"{__name__}.{name}")
