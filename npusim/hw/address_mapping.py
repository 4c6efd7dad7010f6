"""How the bits of a DRAM address become pseudo-channel, bank group, column, channel, bank, row."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

FIELDS = ("pseudo_channel", "bank_group", "column", "channel", "bank", "row")
#: Bursts alternate between pseudo-channels and bank groups, granules between channels.
DEFAULT = ("pseudo_channel", "bank_group", "column", "channel", "column", "bank", "row")


def _mapping(value: object) -> object:
    """A list of the fields, low to high, as a tuple; ValueError says what is allowed."""
    allowed = f"each of {', '.join(FIELDS)} once, low to high; column may stand twice"
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"expected a list: {allowed}")
    count = Counter(value)
    unknown = [name for name in count if name not in FIELDS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no part of an address\n{allowed}")
    for name in FIELDS:
        most = 2 if name == "column" else 1
        if not 1 <= count[name] <= most:
            times = "is missing" if not count[name] else f"stands {count[name]} times"
            raise ValueError(f"{name} {times}\n{allowed}")
    return tuple(value)


_SCHEMA: dict[str, Any] = {
    "type": "array",
    "items": {"type": "string", "enum": list(FIELDS)},
    "minItems": len(FIELDS),
    "maxItems": len(FIELDS) + 1,
}
AddressMapping = Annotated[tuple[str, ...], BeforeValidator(_mapping), WithJsonSchema(_SCHEMA)]
