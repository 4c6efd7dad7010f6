"""The plan that a text names, and the kernels it may choose from."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from npusim.core.catalog import find_file
from npusim.core.errors import InputError, Place, Problem
from npusim.core.modules import load_module, member
from npusim.plan.kernel import Kernel, kernels
from npusim.plan.language import AUTO, Plan

_KERNELS = "npusim.library.mapping.kernels"


@dataclass(frozen=True)
class LoadedPlan:
    """A plan, every kernel that may run what it leaves open, and notes on the look-up."""

    plan: Plan
    kernels: tuple[Kernel, ...]
    notes: tuple[str, ...] = ()


def load_plan(text: str) -> LoadedPlan:
    """The plan called `auto`, one of the catalogue, or the `plan` of a Python file.

    Kernels that the file defines stand beside the catalogue's; of two with one name its own.
    """
    if text == AUTO.name:
        return LoadedPlan(AUTO, tuple(kernels(kernel_modules())))
    found = find_file("plans", text, (".py",))
    module = load_module(found.path)
    plan = member(module, "plan", "holds the mapping: plan = Plan(...)")
    if not isinstance(plan, Plan):
        message = f"plan is a {type(plan).__name__}, not a Plan"
        raise InputError(Problem(message, Place(str(found.path))))
    known = kernels([*kernel_modules(), module])
    return LoadedPlan(plan, tuple(known), (found.note,) if found.note else ())


def kernel_modules() -> list[ModuleType]:
    """The catalogue's kernel modules by name; one that begins with an underscore is for them."""
    package = importlib.import_module(_KERNELS)
    folder = Path(package.__path__[0])
    names = sorted(info.name for info in pkgutil.iter_modules(package.__path__))
    return [load_module(folder / f"{name}.py") for name in names if name[0] != "_"]
