"""One hash of plain data and arrays, the same in every process and on every machine."""

from __future__ import annotations

import dataclasses
import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence, Set
from enum import Enum
from operator import itemgetter
from pathlib import PurePath
from typing import Any

import numpy as np

Sink = Callable[[Any], None]


def content_hash(*parts: Any) -> str:
    """32 hexadecimal digits that depend on the values alone.

    Takes None, bool, int, float, str, bytes, paths, enums, dtypes, arrays and numpy scalars;
    sequences, mappings and sets of them (a list hashes as a tuple, order of keys does not
    matter); dataclasses and pydantic models by class name and fields. Values of different types
    differ: 1, 1.0, True and "1". Raises TypeError for anything else.
    """
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest.update, parts)
    return digest.hexdigest()


def _feed(sink: Sink, value: Any) -> None:
    match value:
        case None:
            sink(b"N")
        case Enum():
            _feed(sink, value.value)
        case bool() | np.bool_():
            sink(b"T" if value else b"F")
        case int() | np.integer():
            _text(sink, b"i", str(int(value)))
        case float() | np.floating():
            sink(b"f" + struct.pack(">d", float("nan") if value != value else float(value)))
        case str():
            _text(sink, b"s", value)
        case bytes() | bytearray():
            sink(b"b%d:" % len(value))
            sink(value)
        case PurePath():
            _text(sink, b"p", value.as_posix())
        case _:
            _feed_compound(sink, value)


def _feed_compound(sink: Sink, value: Any) -> None:
    if isinstance(value, np.dtype):
        _text(sink, b"d", str(value))
    elif isinstance(value, np.ndarray):
        _array(sink, value)
    elif isinstance(value, Mapping):
        sink(b"m%d:" % len(value))
        encoded_items = ((_encoded(key), item) for key, item in value.items())
        for encoded, item in sorted(encoded_items, key=itemgetter(0)):
            sink(encoded)
            _feed(sink, item)
    elif isinstance(value, Set):
        sink(b"S%d:" % len(value))
        for encoded in sorted(_encoded(item) for item in value):
            sink(encoded)
    elif isinstance(value, Sequence):
        sink(b"l%d:" % len(value))
        for item in value:
            _feed(sink, item)
    else:
        _feed_object(sink, value)


def _feed_object(sink: Sink, value: Any) -> None:
    if hasattr(value, "model_dump"):
        fields = value.model_dump()
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    else:
        raise TypeError(f"cannot hash {type(value).__qualname__}: it is no plain data")
    _text(sink, b"o", type(value).__qualname__)
    _feed(sink, fields)


def _array(sink: Sink, array: np.ndarray[Any, np.dtype[Any]]) -> None:
    if array.dtype.hasobject:
        raise TypeError("cannot hash an array of objects")
    little = array.dtype.newbyteorder("<") if array.dtype.byteorder == ">" else array.dtype
    _text(sink, b"a", str(little))
    _feed(sink, array.shape)
    sink(np.ascontiguousarray(array, little).reshape(-1).view(np.uint8))


def _text(sink: Sink, tag: bytes, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    sink(tag + b"%d:" % len(data) + data)


def _encoded(value: Any) -> bytes:
    parts: list[bytes] = []
    _feed(parts.append, value)
    return b"".join(parts)
