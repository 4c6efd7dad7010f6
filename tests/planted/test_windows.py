"""Mistakes in convolutions, pools and batch normalization."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import GraphBuilder, Grid, Integers, Normal


def quantized(bench):
    """A convolution of int8 whose zero point is not 0, so that padding is not either."""
    builder = GraphBuilder("quantized")
    shapes = {"x": (1, 6, 9, 9), "w": (8, 6, 3, 3)}
    names = [builder.input(n, s, "int8", Integers(-128, 127)) for n, s in shapes.items()]
    step, zero = builder.constant("s", np.float32(0.02)), builder.constant("z", np.int8(7))
    real = [
        builder.add("DequantizeLinear", n, step, *z, name=f"{n}.real")
        for n, z in zip(names, [(zero,), ()], strict=True)
    ]
    last = builder.add("Conv", *real, name="y", pads=[1, 1, 1, 1])
    return builder.build(builder.add("QuantizeLinear", last, step, zero, name="q"))


def negative(op):
    """A pool over padded negative numbers."""

    def build(bench):
        builder = GraphBuilder("negative")
        x = builder.input("x", (1, 6, 17, 16), "fp32", Normal(0.1, loc=-5.0))
        window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
        return builder.build(builder.add(op, x, name="y", **window))

    return build


def conv(w=(8, 6, 3, 3), bias=False, **attributes):
    return ("Conv", [(1, 6, 11, 12), w, *([(w[0],)] if bias else [])], attributes)


PADDED = conv(bias=True, pads=[1, 1, 1, 1])
VARIANCE = np.linspace(0.5, 2, 6).astype(np.float32)
BATCH_NORM = ("BatchNormalization", [(2, 6, 5, 7), *[(6,)] * 3, VARIANCE])
TILES = {"m": 4, "c": 3, "r": 4, "q": 8, "grid": Grid(r=2)}
ROWS = {"r": 4}

FILL = ("_windows.py", "    t.vec(tile, fill)\n")
INNER = ("_windows.py", "tile[:, before_y : before_y + high,")
STEPS = (
    "_windows.py",
    "steps = (c, w.dilations[0] * y, w.dilations[1] * x, w.strides[0] * y, w.strides[1] * x)",
)

#: name -> graph, kernel, choices, (file, right), wrong, what else is expected
MISTAKES = {
    "padding not filled": (
        PADDED, "conv", TILES, FILL, "", {"by": "checker", "says": ("is read without a value",)},
    ),
    "padding filled with garbage": (
        PADDED, "conv", TILES, FILL, FILL[1].replace("fill", "1.0"), {},
    ),
    "padding filled with 0 instead of the zero point": (
        quantized, "conv", TILES, ("conv.py", "step.columns, whole.zero(0)"), "step.columns, 0",
        {},
    ),
    "data at the wrong side of the padding": (
        PADDED, "conv", TILES, INNER, "tile[:, 0:high,", {},
    ),
    "dilation of rows forgotten": (
        conv(dilations=[2, 2]), "conv", TILES, STEPS, STEPS[1].replace("w.dilations[0] * ", ""), {},
    ),
    "strides exchanged": (
        conv(strides=[2, 1]), "conv", TILES, STEPS,
        STEPS[1].replace("strides[0] * y, w.strides[1]", "strides[1] * y, w.strides[0]"), {},
    ),
    "sums that go on from what lay there": (
        PADDED, "conv", TILES, ("conv.py", "first=step.k.first"), "first=False",
        {"by": "checker", "says": ("is read without a value", "mma acc")},
    ),
    "only the last channels counted": (
        PADDED, "conv", TILES, ("conv.py", "first=step.k.first"), "first=True", {},
    ),
    "channels of the first group for all": (
        conv((8, 3, 3, 3), group=2), "conv", TILES,
        ("conv.py", "slice(step.g * s.c + step.k.start, step.g * s.c + step.k.stop)"),
        "slice(step.k.start, step.k.stop)", {},
    ),
    "the next windows loaded into the only slot": (
        PADDED, "conv", {**TILES, "slots": 1}, ("conv.py", "t.ahead(steps, load, slots)"),
        "t.ahead(steps, load, 2)", {},
    ),
    "bias of the first filters for all": (
        PADDED, "conv", TILES, ("conv.py", "bias[filters, :, :]"),
        "bias[slice(0, filters.stop - filters.start), :, :]", {},
    ),
    "taps transposed": (
        conv((6, 1, 3, 3), group=6), "depthwise", ROWS,
        ("depthwise.py", "taps[:, i : i + 1, j : j + 1]"), "taps[:, j : j + 1, i : i + 1]", {},
    ),
    "maximum that starts at 0": (
        negative("MaxPool"), "pool", ROWS,
        ("pool.py", "fill = _lowest(op) if largest else 0.0"), "fill = 0.0", {},
    ),
    "padding counted in an average": (
        negative("AveragePool"), "pool", ROWS,
        ("pool.py", 'if op.attribute("count_include_pad"):'), "if op.kind:", {},
    ),
    "factors of the channels before": (
        BATCH_NORM, "batchnorm", {"c": 1}, ("batchnorm.py", "if last != (core, k):"),
        "if last is None or last[0] != core:", {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_is_found(bench, plant, tmp_path, name):
    plant.assert_found(bench, tmp_path, plant.planted(*MISTAKES[name]))
