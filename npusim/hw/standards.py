"""`dram: {standard: HBM2E_3200, ...}`: fields that a machine leaves to a table of its DRAM."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import yaml

from npusim.core.catalog import find_file
from npusim.core.errors import InputError, Place, Problem
from npusim.hw import provenance
from npusim.hw.dram import Dram
from npusim.hw.dram_timings import DramTimings
from npusim.hw.provenance import Provenance
from npusim.hw.quantities import describe
from npusim.hw.yaml_tree import Item, read

_SUFFIXES = (".yaml", ".yml")


def filled_in(
    tree: Item, stated: dict[str, Provenance], problems: list[Problem]
) -> tuple[Item, bool]:
    """The tree of a machine, statements of provenance taken out, with its DRAM's table below it.

    What the machine writes itself stays; what comes from the table brings its own provenance,
    which is added to `stated`. A block that has every field, as a written-out machine does, needs
    no table and its name is not looked up. Appends to `problems` what is wrong with the table or
    its keys; the second value is False if there is a name of a table and no table.
    """
    machine = tree.value if isinstance(tree.value, dict) else {}
    block = machine.get("dram")
    if block is None or not isinstance(block.value, dict) or _complete(block.value):
        return tree, True
    named = block.value.get("standard")
    if named is None or named.value is None:
        return tree, True
    if not isinstance(named.value, str):
        return tree, False
    try:
        table = _table(named, problems)
    except InputError as error:
        problems += error.problems
        return tree, False
    bare, theirs = provenance.split(table, problems)
    merged = _merged(block, bare, "", theirs, stated)
    return replace(tree, value={**machine, "dram": merged}), True


def dram_of(name: str, **fields: object) -> Dram:
    """The DRAM of a table, without a machine; `fields` stand above the table's.

    Raises InputError where there is no such table, ValidationError for what cannot be.
    """
    problems: list[Problem] = []
    here = Place("dram.standard")
    bare, _ = provenance.split(_table(Item(name, here, here, name), problems), problems)
    if problems:
        raise InputError(*problems)
    table: dict[str, object] = bare.plain()
    return Dram.model_validate({"standard": name, **table, **fields})


def _complete(fields: Mapping[str, Item]) -> bool:
    """Whether a block has all that a table could give."""
    timings = fields.get("timings_ns")
    inner = timings.value if timings and isinstance(timings.value, dict) else {}
    return Dram.model_fields.keys() <= fields.keys() and (
        DramTimings.model_fields.keys() <= inner.keys()
    )


def _table(named: Item, problems: list[Problem]) -> Item:
    """The tree of the table that an item names."""
    text = str(named.value)
    try:
        path = find_file("dram", _from_its_file(text, named.place), _SUFFIXES).path
        lines = path.read_text("utf-8").splitlines()
    except InputError as error:
        raise InputError(
            *(replace(p, place=p.place or named.place) for p in error.problems)
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            Problem(f"dram.standard: cannot read {text}: {error}", named.place)
        ) from None

    def locate(mark: yaml.Mark) -> Place:
        line = lines[mark.line] if mark.line < len(lines) else ""
        return Place(str(path), mark.line + 1, mark.column + 1, line)

    tree = read("\n".join(lines) + "\n", locate, problems)
    if tree is None or not isinstance(tree.value, dict):
        found = "an empty file" if tree is None else describe(tree.value)
        raise InputError(Problem(f"expected the fields of a DRAM, found {found}", Place(str(path))))
    if "standard" in tree.value:
        message = "standard: a table cannot stand on another one"
        raise InputError(Problem(message, tree.value["standard"].key_place))
    return tree


def _from_its_file(text: str, place: Place) -> str:
    """A path is relative to the file that names it; of a flag, to the working directory."""
    is_path = "/" in text or os.sep in text or bool(Path(text).suffix)
    beside = Path(place.file).parent / text
    return str(beside) if is_path and place.line is not None and beside.is_file() else text


def _merged(
    own: Item,
    table: Item,
    path: str,
    theirs: Mapping[str, Provenance],
    stated: dict[str, Provenance],
) -> Item:
    """The table's block with the machine's own fields on top."""
    below = f"{path}." if path else ""
    fields: dict[str, Item] = dict(own.value) if isinstance(own.value, dict) else {}
    for name, item in table.value.items() if isinstance(table.value, dict) else ():
        inner = f"{below}{name}"
        if isinstance(item.value, dict) and (
            name not in fields or isinstance(fields[name].value, dict)
        ):
            empty = replace(item, value={})
            fields[name] = _merged(fields.get(name, empty), item, inner, theirs, stated)
        elif name not in fields:
            fields[name] = item
            stated[f"dram.{inner}"] = provenance.nearest(inner, theirs)
    return replace(own, value=fields)
