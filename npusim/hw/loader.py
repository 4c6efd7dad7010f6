"""A machine from YAML, with errors that point at the line, say what is allowed, all at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from pydantic import ValidationError

from npusim.core.errors import InputError, Place, Problem
from npusim.hw import provenance
from npusim.hw.machine import Machine
from npusim.hw.mistakes import deepest, problems_of
from npusim.hw.provenance import Provenance
from npusim.hw.quantities import describe
from npusim.hw.standards import filled_in
from npusim.hw.yaml_tree import Item, read


@dataclass(frozen=True, slots=True)
class LoadedMachine:
    """A machine, where each of its figures comes from (by dotted path), and what was read.

    `overrides` are the KEY=VALUE texts put on top of the file; `tree` is what they change.
    """

    machine: Machine
    provenance: Mapping[str, Provenance]
    source: str
    tree: Item = field(repr=False, compare=False)
    overrides: tuple[str, ...] = ()


def load_machine(path: str | Path) -> LoadedMachine:
    """The machine in a YAML file. Raises InputError with every problem and its place."""
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(Problem(error.strerror or str(error), Place(str(path)))) from error
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte {error.start} is {error.object[error.start]:#x}"
        raise InputError(Problem(message, Place(str(path)))) from error
    return parse_machine(text, str(path))


def parse_machine(text: str, source: str = "<text>") -> LoadedMachine:
    """The machine in a YAML text; `source` names it in errors."""
    lines = text.splitlines()

    def locate(mark: yaml.Mark) -> Place:
        line = lines[mark.line] if mark.line < len(lines) else ""
        return Place(source, mark.line + 1, mark.column + 1, line)

    problems: list[Problem] = []
    tree = read(text, locate, problems)
    if tree is None or not isinstance(tree.value, dict):
        found = "the file is empty" if tree is None else f"found {describe(tree.value)}"
        fields = ", ".join(Machine.model_fields)
        message = f"expected the fields of a machine, {found}"
        raise InputError(Problem(message, Place(source), (f"fields: {fields}",)))
    return build(tree, source, problems=problems)


def build(
    tree: Item, source: str, *, problems: list[Problem], overrides: tuple[str, ...] = ()
) -> LoadedMachine:
    """The machine that a tree describes; `problems` are those already found in it."""
    bare, stated = provenance.split(tree, problems)
    bare, table_read = filled_in(bare, stated, problems)
    try:
        machine = Machine.model_validate(bare.plain(), context={"folder": _folder(bare, source)})
    except ValidationError as error:
        found = problems_of(error, bare, open_blocks=() if table_read else ("dram",))
        raise InputError(*_in_order([*problems, *found])) from None
    if problems:
        raise InputError(*_in_order(problems))
    return LoadedMachine(machine, provenance.of_leaves(machine, stated), source, tree, overrides)


def _folder(tree: Item, source: str) -> Path:
    """Where the path of a timing table starts: beside the file that names it, for a flag here."""
    named = deepest(tree, ("core", "matrix", "timing_table")).place.file
    return Path(source).parent if named == source else Path()


def _in_order(problems: list[Problem]) -> list[Problem]:
    """By place, as a reader of the file meets them."""

    def key(problem: Problem) -> tuple[str, int, int]:
        place = problem.place
        return (place.file, place.line or 0, place.column or 0) if place else ("", 0, 0)

    return sorted(problems, key=key)
