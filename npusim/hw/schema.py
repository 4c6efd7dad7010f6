"""JSON schema of a machine file, for editors that complete and check YAML."""

from __future__ import annotations

from typing import Any

from npusim.hw.machine import Machine
from npusim.hw.provenance import KINDS

_PROVENANCE = {
    "provenance": {"enum": list(KINDS), "description": "How this is known."},
    "source": {"type": "string", "description": "From where it is known."},
}
_DESCRIBING = ("title", "description", "default")


def json_schema() -> dict[str, Any]:
    """The schema of a machine file (JSON Schema 2020-12).

    Every field has its description and its units; every value may also be written as
    `{value: ..., provenance: ..., source: ...}`, and every block may state both.
    """
    schema = Machine.model_json_schema()
    blocks = _with_standard(schema.pop("$defs"))
    definitions = {name: _with_provenance(block) for name, block in blocks.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_with_provenance(schema),
        "$defs": definitions,
    }


def _with_standard(blocks: dict[str, Any]) -> dict[str, Any]:
    """The blocks, of which DRAM's and its timings' are whole only where no table completes them."""
    dram, timings = dict(blocks["Dram"]), dict(blocks["DramTimings"])
    timed = {"properties": {"timings_ns": {"required": timings.pop("required")}}}
    named = {"properties": {"standard": {"type": ["string", "object"]}}, "required": ["standard"]}
    dram |= {"if": named, "else": {"required": dram.pop("required"), **timed}}
    return {**blocks, "Dram": dram, "DramTimings": timings}


def _with_provenance(block: dict[str, Any]) -> dict[str, Any]:
    """A block whose values may be annotated, and which may be annotated itself."""
    properties = {name: _annotated(field) for name, field in block["properties"].items()}
    return {**block, "properties": {**properties, **_PROVENANCE}}


def _annotated(field: dict[str, Any]) -> dict[str, Any]:
    """A field whose value, or each value of its mapping, may carry its provenance."""
    if "$ref" in field:
        return field
    described: dict[str, Any] = {k: v for k, v in field.items() if k in _DESCRIBING}
    bare = {key: value for key, value in field.items() if key not in _DESCRIBING}
    if isinstance(bare.get("additionalProperties"), dict):
        bare["additionalProperties"] = _annotated(bare["additionalProperties"])
    statement = {
        "type": "object",
        "properties": {"value": bare, **_PROVENANCE},
        "required": ["value"],
        "additionalProperties": False,
    }
    return {**described, "anyOf": [bare, statement]}
