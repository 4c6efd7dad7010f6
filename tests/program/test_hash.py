"""A program's hash: the same in every process, another for any difference that matters."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import get_type_hints

import numpy as np
import pytest

from npusim.program.kinds import Kind
from npusim.program.program import Program

CODE = """
import importlib.util
spec = importlib.util.spec_from_file_location("sketch", {path!r})
sketch = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sketch)
print(sketch.every_kind().hash)
"""


def columns() -> list[tuple[str, str]]:
    """(table, column) of everything a program consists of."""
    found = []
    for name, kind in get_type_hints(Program).items():
        inner = [f.name for f in fields(kind)] if is_dataclass(kind) else [""]
        found += [(name, column) for column in inner]
    return found


def changed(value):
    """The same kind of value, a little different."""
    match value:
        case np.ndarray() if value.size:
            other = value.copy()
            other.flat[0] += 1
            return other
        case np.ndarray():
            return np.zeros(1, value.dtype)
        case dict():
            return {**value, "new": 0}
        case int():
            return value + 1
        case str():
            return value + "x"
        case tuple():
            return (*value, "new")
    raise AssertionError(type(value))


def test_equal_in_other_processes(sketch, run_python):
    code = CODE.format(path=sketch.__file__)
    hashes = {run_python(code, env={"PYTHONHASHSEED": seed}).strip() for seed in ("1", "2")}
    assert hashes == {sketch.every_kind().hash}


@pytest.mark.parametrize(("table", "column"), [c for c in columns() if c != ("layers", "")])
def test_any_column_changes_it(sketch, table, column):
    program = sketch.every_kind()
    value = getattr(program, table)
    if column:
        other = replace(value, **{column: changed(getattr(value, column))})
    else:
        other = changed(value)
    assert replace(program, **{table: other}).hash != program.hash


@pytest.mark.parametrize("field", ["name", "operator", "kernel", "nodes", "axes"])
def test_layers_change_it(sketch, field):
    program = sketch.every_kind()
    layer = program.layers[0]
    other = replace(layer, **{field: changed(getattr(layer, field))})
    assert replace(program, layers=(other,)).hash != program.hash
    assert replace(program, layers=()).hash != program.hash


def test_the_step_of_the_plan_does_not(sketch):
    """Two plans may say the same thing in other words."""
    program = sketch.every_kind()
    other = replace(program.layers[0], step="step 7, on(op='MatMul')")
    assert replace(program, layers=(other,)).hash == program.hash


def test_the_program_of_these_tests_has_all_kinds(sketch):
    assert set(sketch.every_kind().instructions.kind.tolist()) == set(Kind)
