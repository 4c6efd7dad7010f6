"""The fields of a machine by dotted path: what they hold, in which unit, and what for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from npusim.hw.machine import Machine
from npusim.hw.quantities import Quantity, Spec


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value of a machine; `dimension` is a key of core.units.UNITS, None for a name or flag."""

    path: str
    value: object
    dimension: str | None
    description: str


def leaves(machine: Machine) -> Iterator[Leaf]:
    """Every value of the machine in the order of its model; a dtype's rate is a leaf of its own."""
    return _leaves("", machine)


def _leaves(prefix: str, spec: Spec) -> Iterator[Leaf]:
    for name, info in type(spec).model_fields.items():
        value, path = getattr(spec, name), f"{prefix}{name}"
        if isinstance(value, Spec):
            yield from _leaves(f"{path}.", value)
        elif isinstance(value, Mapping):
            for key, entry in value.items():
                yield Leaf(f"{path}.{key}", entry, dimension_of(info), info.description or "")
        else:
            yield Leaf(path, value, dimension_of(info), info.description or "")


def dimension_of(info: FieldInfo) -> str | None:
    """The dimension of a field's numbers (a mapping's: of its values), None if it has none."""
    for quantity in (*info.metadata, *_annotations(info.annotation)):
        if isinstance(quantity, Quantity):
            return quantity.dimension
    return None


def _annotations(annotation: Any) -> Iterator[Any]:
    """What Annotated types inside an annotation carry."""
    for inner in get_args(annotation):
        yield inner
        yield from _annotations(inner)


def spec_at(path: Sequence[object]) -> type[Spec] | None:
    """The kind of block at a path of field names from the machine down, None if it is no block."""
    spec: type[Spec] | None = Machine
    for name in path:
        info = spec.model_fields.get(str(name)) if spec else None
        spec = block_of(info.annotation) if info else None
    return spec


def paths(spec: type[Spec] = Machine) -> Iterator[tuple[str, ...]]:
    """The path of every field that a machine can have, of blocks and of what is inside them."""
    for name, info in spec.model_fields.items():
        yield (name,)
        inner = block_of(info.annotation)
        yield from ((name, *path) for path in paths(inner)) if inner else ()


def block_of(annotation: Any) -> type[Spec] | None:
    """The kind of block that a field holds, also if it may be absent."""
    options = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else [annotation]
    return next(
        (kind for kind in options if isinstance(kind, type) and issubclass(kind, Spec)), None
    )


def allowed_texts(path: Sequence[object]) -> tuple[str, ...]:
    """The texts that the Literal field at `path`, which may be optional, can hold."""
    spec = spec_at(path[:-1])
    info = spec.model_fields.get(str(path[-1])) if spec else None
    options = (info.annotation, *get_args(info.annotation)) if info else ()
    words = next((option for option in options if get_origin(option) is Literal), None)
    return tuple(str(value) for value in get_args(words))
