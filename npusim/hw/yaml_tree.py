"""YAML text as a tree of values that each know where they stand.

Plain scalars mean what a person expects: `1e9` is a number, only true and false are booleans,
`yes`, `010` and `1:30` are texts. Duplicate keys are refused; aliases and `<<` merges work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from npusim.core.errors import InputError, Place, Problem

Scalar = None | bool | int | float | str
Locate = Callable[[yaml.Mark], Place]

_KEYWORDS: Mapping[str, Scalar] = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_REAL = re.compile(r"[-+]?([0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?")
_KINDS = ("str", "int", "float", "bool", "null", "timestamp", "value", "map", "seq")
_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in _KINDS}


@dataclass(frozen=True, slots=True)
class Item:
    """One value: a scalar, a block of fields, or a list (which no field of a machine is)."""

    value: Scalar | list[Any] | dict[str, Item]
    place: Place
    key_place: Place
    text: str

    def plain(self) -> Any:
        """The value without places, as pydantic takes it."""
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        return self.value


def read(text: str, locate: Locate, problems: list[Problem]) -> Item | None:
    """The tree of one YAML document; None if it is empty.

    Appends to `problems` what is wrong with keys, tags and aliases; raises InputError where the
    text is no YAML.
    """
    try:
        node = yaml.compose(text, yaml.CSafeLoader)
        return None if node is None else _Reader(locate, problems).item(node, node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark or _mark(text, 0)
        context = f", {error.context}" if error.context else ""
        raise _no_yaml(f"{error.problem or 'unreadable'}{context}", locate(mark)) from error
    except yaml.reader.ReaderError as error:
        before = text.encode("utf-8", "replace")[: error.position].decode("utf-8", "ignore")
        raise _no_yaml(error.reason, locate(_mark(text, len(before)))) from error
    except UnicodeError as error:
        raise _no_yaml("not UTF-8", locate(_mark(text, 0))) from error
    except RecursionError as error:
        raise _no_yaml("nested too deeply", locate(_mark(text, 0))) from error


def _no_yaml(message: str, place: Place) -> InputError:
    tabs = ("indent with spaces, not with tabs",) if "\t" in (place.text or "") else ()
    return InputError(Problem(f"no valid YAML: {message}", place, tabs))


def _mark(text: str, index: int) -> yaml.Mark:
    line, column = text.count("\n", 0, index), index - text.rfind("\n", 0, index) - 1
    return yaml.Mark("", index, line, column, None, 0)


@dataclass
class _Reader:
    """Turns nodes into items; each node once, however many aliases it has."""

    locate: Locate
    problems: list[Problem]
    done: dict[int, Item] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)

    def item(self, node: yaml.Node, key: yaml.Node) -> Item:
        if id(node) in self.open:
            self.problem("an alias must not stand inside its own anchor", key)
            return self.made(None, node, key)
        if id(node) not in self.done:
            self.open.add(id(node))
            self.done[id(node)] = self.made(self.value(node), node, key)
            self.open.remove(id(node))
        known = self.done[id(node)]
        return Item(known.value, known.place, self.locate(key.start_mark), known.text)

    def made(self, value: Any, node: yaml.Node, key: yaml.Node) -> Item:
        text = str(node.value) if isinstance(node, yaml.ScalarNode) else ""
        return Item(value, self.locate(node.start_mark), self.locate(key.start_mark), text)

    def value(self, node: yaml.Node) -> Any:
        if node.tag not in _TAGS:
            self.problem(f"tags are not used here: {node.tag}", node)
        if isinstance(node, yaml.MappingNode):
            return self.block(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.item(entry, entry).plain() for entry in node.value]
        plain = isinstance(node, yaml.ScalarNode) and not node.style
        return scalar(node.value) if plain else node.value

    def block(self, node: yaml.MappingNode) -> dict[str, Item]:
        own: dict[str, Item] = {}
        merged: dict[str, Item] = {}
        for key, entry in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.problem("the name of a field must be a plain text", key)
            elif key.tag == "tag:yaml.org,2002:merge":
                for name, item in self.merged(entry):
                    merged.setdefault(name, item)
            elif key.value in own:
                first = own[key.value].key_place
                self.problem(f"{key.value} is given twice", key, f"first: {first}")
            else:
                own[key.value] = self.item(entry, key)
        return {**merged, **own}

    def merged(self, node: yaml.Node) -> Iterator[tuple[str, Item]]:
        """Fields that `<<` brings in: of one block, or of a list of blocks, the first ones win."""
        blocks = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for block in blocks:
            if isinstance(block, yaml.MappingNode):
                item = self.item(block, block)
                yield from item.value.items() if isinstance(item.value, dict) else ()
            else:
                self.problem("<< merges a block or a list of blocks", block)

    def problem(self, message: str, node: yaml.Node, *hints: str) -> None:
        self.problems.append(Problem(message, self.locate(node.start_mark), hints))


def scalar(text: str) -> Scalar:
    """What an unquoted text means."""
    if text.lower() in _KEYWORDS:
        return _KEYWORDS[text.lower()]
    if _INTEGER.fullmatch(text) and len(text) < 40:
        return int(text.replace("_", ""))
    if _REAL.fullmatch(text) and not re.fullmatch(r"[-+]?0[0-9]+", text):
        return float(text.replace("_", ""))
    return text
