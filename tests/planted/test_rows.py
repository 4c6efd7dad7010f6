"""Mistakes in what works row by row: norms, softmax, rotation, reductions."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import GraphBuilder, Normal


def wide(bench):
    """Rows whose exponentials overflow unless their maximum is taken off."""
    builder = GraphBuilder("wide")
    x = builder.input("x", (13, 100), "fp32", Normal(60.0))
    return builder.build(builder.add("Softmax", x, name="y", axis=-1))


RMS = ("RMSNormalization", [(13, 100), (100,)])
LAYER = ("LayerNormalization", [(13, 100), (100,), (100,)])
SOFTMAX = ("Softmax", [(13, 100)], {"axis": -1})
ROPE = ("RotaryEmbedding", [(2, 4, 30, 16), *[(2, 30, 8)] * 2])
APART = ("RotaryEmbedding", [(2, 4, 30, 16), *[(2, 30, 8)] * 2], {"interleaved": 1})
SUM = ("ReduceSum", [(13, 100), np.array([1])])
PASSES = {"rows": 4, "columns": 33}
RSQRT = 'vector.rsqrt(self.inverse * width + self.op.attribute("epsilon"))'

#: name -> graph, kernel, choices, (file, right), wrong, what else is expected
MISTAKES = {
    "rsqrt forgotten": (
        RMS, "norm", PASSES, ("_statistics.py", RSQRT), RSQRT.removeprefix("vector.rsqrt"), {},
    ),
    "another epsilon": (
        RMS, "norm", PASSES, ("_statistics.py", 'self.op.attribute("epsilon")'), "1e-4", {},
    ),
    "mean over one column too few": (
        LAYER, "norm", PASSES, ("_statistics.py", "1.0 / self.X.column.size"),
        "1.0 / (self.X.column.size - 1)", {},
    ),
    "mean not taken off": (
        LAYER, "norm", PASSES,
        ("_statistics.py", "return tile if self.mean is None else tile - self.mean"),
        "return tile + 0.0", {},
    ),
    "factors of the first columns for all": (
        RMS, "norm", PASSES, ("_statistics.py", "view[slice(0, 1), c]"),
        "view[slice(0, 1), slice(0, c.size)]", {},
    ),
    "sum started anew in every pass": (
        SOFTMAX, "softmax", PASSES,
        ("softmax.py", 'power.sum("row") if c.first else total + power.sum("row")'),
        'power.sum("row")', {},
    ),
    "the maximum not taken off": (
        wide, "softmax", {"rows": 4}, ("softmax.py", "power = t.vec(e, np.exp(tile - top))"),
        "power = t.vec(e, np.exp(tile))", {"says": ("got nan",)},
    ),
    "halves of a rotated pair swapped": (
        ROPE, "rope", {"rows": 8}, ("rope.py", "first * cos - second * sin"),
        "second * cos - first * sin", {},
    ),
    "rotated the other way": (
        ROPE, "rope", {"rows": 8}, ("rope.py", "first * sin + second * cos"),
        "second * cos - first * sin", {},
    ),
    "pairs not interleaved": (
        APART, "rope", {"rows": 8}, ("rope.py", 'if op.attribute("interleaved"):'),
        "if not op.kind:", {},
    ),
    "only the last piece of a row reduced": (
        SUM, "reduce", PASSES, ("reduce.py", "t.vec(total, part if c.first else total + part)"),
        "t.vec(total, part)", {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_is_found(bench, plant, tmp_path, name):
    plant.assert_found(bench, tmp_path, plant.planted(*MISTAKES[name]))
