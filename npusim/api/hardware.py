"""The machine that a text names, with what the command line puts on top of it."""

from __future__ import annotations

from collections.abc import Sequence

from npusim.core.catalog import find_file
from npusim.core.errors import InputError
from npusim.hw.loader import LoadedMachine, load_machine
from npusim.hw.override import given_twice, override


def load_hardware(text: str, overrides: Sequence[str]) -> tuple[LoadedMachine, list[str]]:
    """The machine of a YAML file or of the catalogue, and what to tell about the look-up.

    Raises InputError for what is wrong with either, and for overrides that undo each other.
    """
    twice = given_twice(overrides)
    if twice:
        raise InputError(*twice)
    found = find_file("hwconfigs", text, (".yaml", ".yml"))
    loaded = load_machine(found.path)
    if overrides:
        loaded = override(loaded, overrides)
    return loaded, [found.note] if found.note else []
