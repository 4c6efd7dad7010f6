"""A machine as YAML again: every field, defaults included, with units, in the model's order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from npusim.core import units
from npusim.hw.fields import dimension_of
from npusim.hw.machine import Machine
from npusim.hw.quantities import Spec
from npusim.hw.timing_table import TimingTable


def dump_yaml(machine: Machine) -> str:
    """Fully resolved YAML that loads back to an equal machine.

    It names a timing table by its file's name alone: the file must lie beside the YAML.
    """
    return "\n".join(_lines(machine, "")) + "\n"


def _lines(spec: Spec, indent: str) -> Iterator[str]:
    for name, info in type(spec).model_fields.items():
        value = getattr(spec, name)
        if isinstance(value, Spec):
            yield f"{indent}{name}:"
            yield from _lines(value, indent + "  ")
        elif isinstance(value, Mapping):
            entries = (f"{key}: {_text(entry, dimension_of(info))}" for key, entry in value.items())
            yield f"{indent}{name}: {{{', '.join(entries)}}}"
        else:
            yield f"{indent}{name}: {_text(value, dimension_of(info))}"


def _text(value: object, dimension: str | None) -> str:
    """One value; texts are quoted as JSON quotes them unless they are plain words."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return units.write(value, dimension or "number")
    if isinstance(value, TimingTable):
        return json.dumps(value.file, ensure_ascii=False)
    if isinstance(value, str) and value.isidentifier() and value not in ("null", "true", "false"):
        return value
    return json.dumps(value, ensure_ascii=False)
