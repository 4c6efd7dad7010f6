"""A program's hash: the same in every process, another for any difference that matters."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from npusim.program.kinds import Kind, Space
from npusim.program.program import Program

MAKE = """
from pathlib import Path
import importlib.util, sys
spec = importlib.util.spec_from_file_location("sketch", sys.argv[1] if len(sys.argv) > 1 else {path!r})
sketch = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sketch)
"""


def some_program(sketch) -> Program:
    """All kinds, edges and tables."""
    from npusim.program.kinds import Space

    s = sketch.Sketch()
    x, y = s.tensor("x", (8, 8)), s.tensor("y", (8, 8), at=256, initial=False)
    tile = s.tile(Space.SRAM, 0, (8, 8), name="a")
    acc = s.tile(Space.ACC, 0, (8, 8), name="acc")
    tap = s.tile(Space.TAP, -1, (8, 8), name="z")
    s.builder.tap("z", tap)
    s.at(1, 2)
    s.copy(0, 0, tile, x)
    s.mma(0, acc, tile, tile)
    s.hold(tap, acc)
    s.vec(0, tile, acc)
    s.copy(0, 3, y, tile)
    s.host("h", [y], [x])
    s.axes("m", "n")
    return s.finish()


def test_equal_in_another_process(sketch, run_python):
    import inspect

    code = "\n".join(
        [
            "import importlib.util",
            f"spec = importlib.util.spec_from_file_location('sketch', {sketch.__file__!r})",
            "sketch = importlib.util.module_from_spec(spec)",
            "spec.loader.exec_module(sketch)",
            "Program = None",
            "from __future__ import annotations" if False else "",
            inspect.getsource(some_program).replace(" -> Program", ""),
            "print(some_program(sketch).hash)",
        ]
    )
    hashes = {run_python(code, env={"PYTHONHASHSEED": seed}).strip() for seed in ("1", "2")}
    assert hashes == {some_program(sketch).hash}


def columns() -> list[tuple[str, str]]:
    names = []
    for table in fields(Program):
        kind = Program.__annotations__[table.name]
        import npusim.program.program as module

        inner = getattr(module, kind, None)
        if inner is not None and hasattr(inner, "__dataclass_fields__"):
            names += [(table.name, f.name) for f in fields(inner)]
        else:
            names.append((table.name, ""))
    return names


def changed(value):
    """The same kind of value, a little different."""
    match value:
        case np.ndarray():
            other = value.copy()
            if other.size == 0:
                return np.zeros(1, value.dtype)
            other.flat[0] += 1
            return other
        case dict():
            return {**value, "new": 0}
        case int():
            return value + 1
        case tuple() if value and isinstance(value[0], str):
            return (value[0] + "x", *value[1:])
        case tuple():
            return (*value, value[0]) if value else ("new",)
    raise AssertionError(type(value))


@pytest.mark.parametrize(("table", "column"), columns())
def test_any_column_changes_it(sketch, table, column):
    program = some_program(sketch)
    value = getattr(program, table)
    if column:
        other = replace(value, **{column: changed(getattr(value, column))})
    else:
        other = changed(value)
    assert replace(program, **{table: other}).hash != program.hash


@pytest.mark.parametrize("field", ["name", "operator", "kernel", "nodes", "axes"])
def test_layers_change_it(sketch, field):
    program = some_program(sketch)
    layer = program.layers[0]
    other = replace(layer, **{field: changed(getattr(layer, field)) if field in ("nodes", "axes")
                              else "other"})  # fmt: skip
    assert replace(program, layers=(other,)).hash != program.hash


def test_the_step_of_the_plan_does_not(sketch):
    program = some_program(sketch)
    other = replace(program.layers[0], step="step 7, on(op='MatMul')")
    assert replace(program, layers=(other,)).hash == program.hash


def test_the_program_has_all_kinds(sketch):
    program = some_program(sketch)
    assert set(program.instructions.kind.tolist()) == set(Kind)
    assert set(program.buffers.space.tolist()) == set(Space) - {Space.SHARED}
