"""Where each figure of a machine comes from: published, measured, or assumed by design.

A value says so as `{value: 1 GHz, provenance: public, source: "data sheet"}`, a whole block by
the keys `provenance` and `source` beside its fields; what is inside speaks for itself first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from npusim.core.errors import Problem, choose_from
from npusim.hw.fields import leaves
from npusim.hw.machine import Machine
from npusim.hw.yaml_tree import Item

Kind = Literal["public", "measured", "assumed"]
KINDS: tuple[Kind, ...] = get_args(Kind)
#: Words of the file that are no fields of a machine.
KEYS = ("value", "provenance", "source")


@dataclass(frozen=True, slots=True)
class Provenance:
    """How a figure is known, and from where."""

    kind: Kind = "assumed"
    source: str = ""

    def __str__(self) -> str:
        """Both in words."""
        return f"{self.kind}: {self.source}" if self.source else self.kind


def split(root: Item, problems: list[Problem]) -> tuple[Item, dict[str, Provenance]]:
    """The tree without statements of provenance, and those statements by dotted path.

    The path of a block stands for all that is inside it; the whole machine's is "".
    """
    stated: dict[str, Provenance] = {}
    return _strip(root, "", stated, problems), stated


def _strip(item: Item, path: str, stated: dict[str, Provenance], problems: list[Problem]) -> Item:
    if not isinstance(item.value, dict):
        return item
    fields = dict(item.value)
    kind, source = fields.pop("provenance", None), fields.pop("source", None)
    if kind or source:
        stated[path] = _statement(kind, source, problems)
    if "value" in fields:
        value = fields.pop("value")
        for name, extra in fields.items():
            message = f"{path}: {name!r} cannot stand beside a value"
            problems.append(Problem(message, extra.key_place, choose_from(name, KEYS)))
        return _strip(replace(value, key_place=item.key_place), path, stated, problems)
    below = f"{path}." if path else ""
    stripped = {
        name: _strip(inner, f"{below}{name}", stated, problems) for name, inner in fields.items()
    }
    return replace(item, value=stripped)


def _statement(kind: Item | None, source: Item | None, problems: list[Problem]) -> Provenance:
    if kind and kind.value not in KINDS:
        message = f"provenance: unknown kind {kind.text!r}"
        problems.append(Problem(message, kind.place, choose_from(kind.text, KINDS)))
        return Provenance()
    if source and not isinstance(source.value, str):
        problems.append(Problem("source: must be a text", source.place))
        return Provenance()
    return Provenance(cast(Kind, kind.value) if kind else "assumed", source.text if source else "")


def of_leaves(machine: Machine, stated: Mapping[str, Provenance]) -> dict[str, Provenance]:
    """Every leaf's provenance: its own, else that of the nearest block around it, else assumed."""
    return {leaf.path: nearest(leaf.path, stated) for leaf in leaves(machine)}


def nearest(path: str, stated: Mapping[str, Provenance]) -> Provenance:
    """What is stated of a path, or of the innermost block around it."""
    return next((stated[p] for p in _outwards(path) if p in stated), Provenance())


def _outwards(path: str) -> Iterator[str]:
    """The path, then the path of each block around it, "" last."""
    while path:
        yield path
        path = path.rpartition(".")[0]
    yield ""
