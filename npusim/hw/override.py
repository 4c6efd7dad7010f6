"""`--hw-set core.sram.banks=64`: fields changed on top of a file, checked as if written in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import yaml

from npusim.core.errors import InputError, Place, Problem
from npusim.hw.loader import LoadedMachine, build
from npusim.hw.yaml_tree import Item, read

FLAG = "--hw-set"


def override(loaded: LoadedMachine, texts: Sequence[str]) -> LoadedMachine:
    """The machine with each `KEY=VALUE` applied in turn.

    KEY is a dotted path of fields, VALUE any YAML: `core.clock_hz=2 GHz`, `shared_sram=null`,
    `core.matrix.rates={int8: 4}`. What is set is assumed, unless VALUE states its provenance.
    Raises InputError that points into the text of the flag.
    """
    try:
        return _applied(loaded, texts)
    except InputError as error:
        raise InputError(*(_blamed(p, loaded, texts) for p in error.problems)) from None


def _applied(loaded: LoadedMachine, texts: Sequence[str]) -> LoadedMachine:
    problems: list[Problem] = []
    tree = loaded.tree
    for text in texts:
        key, equals, value = text.partition("=")
        if not key.strip() or not equals or not value.strip():
            message = f"expected KEY=VALUE, such as core.sram.banks=64, found {text!r}"
            problems.append(Problem(message, Place(FLAG)))
            continue
        try:
            item = _value(text, len(key) + 1, problems)
        except InputError as error:
            problems += error.problems
        else:
            tree = _with(tree, _steps(key), _assumed(item), text)
    applied = (*loaded.overrides, *texts)
    return build(tree, loaded.source, problems=problems, overrides=applied)


def _blamed(problem: Problem, loaded: LoadedMachine, texts: Sequence[str]) -> Problem:
    """The problem at the text that brought it about, where it lies in what the text met.

    That is the last text without which the machine so far has no problem at this place.
    """
    met = problem.place
    if met is None or met.file == FLAG:
        return problem
    without = (k for k in reversed(range(len(texts))) if met not in _places(loaded, texts[:k]))
    text = texts[next(without, 0)]
    stands = f"see {met}" + (f": {met.text.strip()}" if met.text else "")
    place = Place(FLAG, None, len(text.partition("=")[0]) + 2, text)
    return replace(problem, place=place, hints=(*problem.hints, stands))


def _places(loaded: LoadedMachine, texts: Sequence[str]) -> set[Place]:
    """Where the file goes wrong with these texts on top of it, if it does."""
    try:
        _applied(loaded, texts)
    except InputError as error:
        return {problem.place for problem in error.problems if problem.place}
    return set()


def given_twice(texts: Sequence[str]) -> list[Problem]:
    """A problem for each text that sets again, alone or with its block, what an earlier one set."""
    found, before = [], list[tuple[list[str], str]]()
    for text in texts:
        key = text.partition("=")[0]
        path = [name for name, _ in _steps(key)]
        for earlier, first in before:
            if earlier[: len(path)] == path:
                what = "is given twice" if earlier == path else "replaces what was given before it"
                place = Place(FLAG, None, _steps(key)[0][1], text)
                found.append(Problem(f"{'.'.join(path)} {what}", place, (f"first: {first}",)))
                break
        before.append((path, text))
    return found


def _value(text: str, start: int, problems: list[Problem]) -> Item:
    """The item that the text after the equals sign means."""

    def locate(mark: yaml.Mark) -> Place:
        column = start + mark.column + 1 if mark.line == 0 else start + 1
        return Place(FLAG, None, column, text)

    item = read(text[start:], locate, problems)
    if item is None:  # a comment only
        raise InputError(Problem("expected a value", Place(FLAG, None, start + 1, text)))
    return item


def _assumed(item: Item) -> Item:
    """The item with a provenance of its own, so that it does not inherit the file's."""
    if isinstance(item.value, dict) and {"value", "provenance", "source"} & item.value.keys():
        return item
    source = replace(item, value=FLAG, text=FLAG)
    if isinstance(item.value, dict):
        return replace(item, value={**item.value, "source": source})
    return replace(item, value={"value": item, "source": source})


def _steps(key: str) -> list[tuple[str, int]]:
    """The names in a dotted key, each with the column at which it stands."""
    steps, column = [], 1
    for part in key.split("."):
        steps.append((part.strip(), column + len(part) - len(part.lstrip())))
        column += len(part) + 1
    return steps


def _with(tree: Item, steps: list[tuple[str, int]], new: Item, text: str) -> Item:
    """The tree with `new` at the end of the path; blocks on the way that are not there are made."""
    (name, column), *rest = steps
    key_place = Place(FLAG, None, column, text)
    fields = tree.value if isinstance(tree.value, dict) else {}
    if not rest:
        return replace(tree, value={**fields, name: replace(new, key_place=key_place)})
    inner = fields.get(name)
    if inner is None or not isinstance(inner.value, dict):
        inner = Item({}, key_place, key_place, "")
    return replace(tree, value={**fields, name: _with(inner, rest, new, text)})
