"""What pydantic found wrong with a machine, said in the user's words at the user's line."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from npusim.core.errors import Problem, choose_from, nearest
from npusim.hw.fields import allowed_texts, paths, spec_at
from npusim.hw.quantities import Inconsistent, describe
from npusim.hw.timing_table import FileMistakes
from npusim.hw.yaml_tree import Item

Path = tuple[str, ...]
#: Fields of one name in so many blocks are no hint any more.
_FEW = 3
_EXPECTED = {
    "string_type": "a text (numbers in quotes)",
    "bool_type": "true or false",
    "mapping_type": "a block of fields",
    "dict_type": "a block of fields",
}


def problems_of(
    error: ValidationError, root: Item, open_blocks: Collection[str] = ()
) -> Iterator[Problem]:
    """One problem for each mistake behind pydantic's findings on the tree `root`.

    In `open_blocks` nothing is told to be missing: what would fill them could not be read.
    """
    findings = error.errors(include_url=False)
    unknown = [_path(found) for found in findings if found["type"] == "extra_forbidden"]
    misspelt = {meant[: len(path)] for path in unknown for meant in _meant(path, root)}
    for found in findings:
        path = _path(found)
        cause = found.get("ctx", {}).get("error")
        if isinstance(cause, Inconsistent):
            for field, message in cause.found:
                inner = (*path, *field.split("."))
                yield Problem(f"{'.'.join(inner)}: {message}", deepest(root, inner).place)
        elif isinstance(cause, FileMistakes):
            yield from cause.problems
        elif found["type"] != "missing" or not (path in misspelt or path[0] in open_blocks):
            yield _problem(path, found, root)


def _path(found: ErrorDetails) -> Path:
    return tuple(str(part) for part in found["loc"] if part != "[key]")


def _meant(path: Path, root: Item) -> list[Path]:
    """The fields that an unknown name, with what was written below it, was probably meant to be.

    Where another block has a field of just this name, that is the one.
    """
    *block, name = path
    spec = spec_at(block)
    near = nearest(name, spec.model_fields) if spec else None
    elsewhere = [] if spec is None else [place for place in paths() if place[-1] == name]
    found = elsewhere or ([(*block, near)] if near else [])
    return [_below(place, deepest(root, path)) for place in found] if len(found) <= _FEW else []


def _below(path: Path, item: Item) -> Path:
    """The path continued by the nearest of what is written below it, as far as that is one name."""
    while isinstance(item.value, dict) and len(item.value) == 1:
        ((name, item),) = item.value.items()
        spec = spec_at(path)
        near = nearest(name, spec.model_fields) if spec else None
        if near is None:
            break
        path = (*path, near)
    return path


def _problem(path: Path, found: ErrorDetails, root: Item) -> Problem:
    match found["type"]:
        case "missing":
            return _missing(path, root)
        case "extra_forbidden":
            return _unknown(path, root)
        case "model_type":
            return _no_block(path, found, root)
        case "literal_error":
            return _no_choice(path, found, root)
    return _wrong_value(path, found, root)


def deepest(root: Item, path: Sequence[str]) -> Item:
    """The item at `path`, or the last one on the way to it that the user wrote."""
    item = root
    for name in path:
        if not isinstance(item.value, dict) or name not in item.value:
            break
        item = item.value[name]
    return item


def _missing(path: Path, root: Item) -> Problem:
    spec = spec_at(path[:-1])
    description = spec.model_fields[path[-1]].description if spec else ""
    parent = deepest(root, path[:-1])
    where = f" in {'.'.join(path[:-1])}" if path[:-1] else ""
    return Problem(f"missing field {path[-1]!r}{where}: {description}", parent.key_place)


def _unknown(path: Path, root: Item) -> Problem:
    spec = spec_at(path[:-1])
    where = f" in {'.'.join(path[:-1])}" if path[:-1] else ""
    near = ", ".join(".".join(meant) for meant in _meant(path, root))
    allowed = f"allowed: {', '.join(sorted(spec.model_fields)) if spec else 'none'}"
    hints = (f"nearest: {near}", allowed) if near else (allowed,)
    return Problem(f"unknown field {path[-1]!r}{where}", deepest(root, path).key_place, hints)


def _no_block(path: Path, found: ErrorDetails, root: Item) -> Problem:
    spec = spec_at(path)
    fields = ", ".join(spec.model_fields) if spec else ""
    message = f"{'.'.join(path)}: expected a block of fields, found {describe(found['input'])}"
    return Problem(message, deepest(root, path).place, (f"fields: {fields}",))


def _no_choice(path: Path, found: ErrorDetails, root: Item) -> Problem:
    item = deepest(root, path)
    hints = choose_from(item.text, allowed_texts(path))
    if not isinstance(found["input"], str):
        message = f"{'.'.join(path)}: expected a word, found {describe(found['input'])}"
        return Problem(message, item.place, hints)
    return Problem(f"{'.'.join(path)}: unknown choice {item.text!r}", item.place, hints)


def _wrong_value(path: Path, found: ErrorDetails, root: Item) -> Problem:
    item = deepest(root, path)
    place = item.key_place if "[key]" in found["loc"] else item.place
    if "ctx" in found and "error" in found["ctx"]:
        message, *hints = str(found["ctx"]["error"]).splitlines()
        return Problem(f"{'.'.join(path)}: {message}", place, tuple(h.strip() for h in hints))
    wanted = _EXPECTED.get(found["type"], found["msg"])
    message = f"{'.'.join(path)}: expected {wanted}, found {describe(found['input'])}"
    return Problem(message, place)
