"""Random shapes, random tiles, random order: whatever is legal computes the right values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from npusim import Grid, Integers, Normal

KINDS = ["fp32", "bf16", "fp16"]
EXTENT = st.one_of(st.integers(1, 40), st.sampled_from([63, 64, 65, 97, 127, 128, 129, 160]))
SMALL = st.integers(1, 12)
#: Numbers that show wrong indices, wrong precision, or neither in particular.
DATA = st.sampled_from([Integers(-2, 2), Normal(0.1, loc=1.0), Normal()])

Draw = Callable[[st.SearchStrategy[Any]], Any]
#: An operator with its operands and attributes, and choices that need not be in the space.
Case = tuple[str, list[Any], dict[str, Any], dict[str, Any]]


def grid(draw: Draw, *axes: str) -> Grid:
    """At most four cores, on any axes."""
    options = Grid.splits(*axes).options(4)
    return draw(st.sampled_from([g for g in options if g.cores > 1]))


def matmul(draw: Draw) -> Case:
    m, n, k = draw(EXTENT), draw(EXTENT), draw(EXTENT)
    batch = draw(st.sampled_from([(), (2,), (2, 3), (1, 3), (3, 1)]))
    right = draw(st.sampled_from([(), batch, tuple(1 for _ in batch)]))
    split = grid(draw, "c", "m", "n", "k")
    sizes = {name: draw(st.integers(16, 70)) for name in ("m", "n", "k")}
    choices = {
        **sizes,
        "grid": split,
        "hold": draw(st.sampled_from(["none", "a", "b"])),
        "slots": draw(st.integers(1, 3)),
        "acc_slots": draw(st.integers(1, 2)),
    }
    return "MatMul", [(*batch, m, k), (*right, k, n)], {}, choices


def conv(draw: Draw) -> Case:
    groups, c, m = draw(st.sampled_from([1, 1, 2, 3])), draw(SMALL), draw(SMALL)
    kernel = [draw(st.integers(1, 4)) for _ in range(2)]
    dilations = [draw(st.integers(1, 3)) for _ in range(2)]
    attributes = {
        "group": groups,
        "strides": [draw(st.integers(1, 3)) for _ in range(2)],
        "dilations": dilations,
        "pads": [draw(st.integers(0, 3)) for _ in range(4)],
    }
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    inner = [r + draw(st.integers(0, 14)) for r in reach]
    choices = {name: draw(st.integers(1, 12)) for name in ("m", "c", "r", "q")}
    choices |= {"grid": grid(draw, "n", "m", "r"), "acc_slots": draw(st.integers(1, 2))}
    x, w = (draw(st.integers(1, 3)), groups * c, *inner), (groups * m, c, *kernel)
    bias = [(groups * m,)] if draw(st.booleans()) else []
    return "Conv", [x, w, *bias], attributes, choices


def depthwise(draw: Draw) -> Case:
    op, (x, w, *_), attributes, choices = conv(draw)
    channels = x[1]
    attributes = {**attributes, "group": channels}
    kept = {name: choices[name] for name in ("c", "r", "q")}
    return op, [x, (channels, 1, *w[2:])], attributes, kept


def flash(draw: Draw) -> Case:
    b, g, group = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    size, new, past = draw(SMALL), draw(EXTENT), draw(st.sampled_from([0, 0, 5, 40]))
    queries = new if past else draw(EXTENT)
    attributes = {
        "is_causal": draw(st.integers(0, 1)),
        "softcap": draw(st.sampled_from([0.0, 5.0])),
    }
    q, kv = (b, g * group, queries, size), (b, g, new, size)
    mask = draw(st.sampled_from([None, (queries, past + new), (b, g * group, 1, past + new)]))
    cache = [(b, g, past, size)] * 2 if past else []
    operands = [q, kv, kv, *([mask] if mask or cache else []), *cache]
    choices = {name: draw(st.integers(6, 48)) for name in ("q", "kv")}
    choices |= {"heads": draw(st.integers(1, 3)), "acc_slots": draw(st.integers(1, 2))}
    return "Attention", operands, attributes, choices


def elementwise(draw: Draw) -> Case:
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    operands = []
    for _ in range(draw(st.integers(2, 6))):
        kept = [n if draw(st.booleans()) else 1 for n in shape]
        operands.append(tuple(kept[draw(st.integers(0, len(kept))) :]))
    return "Sum", operands, {}, {name: draw(st.integers(1, 20)) for name in ("rows", "columns")}


def one_long(draw: Draw, rank: int) -> tuple[int, ...]:
    """A shape of short extents and a long one."""
    shape = [draw(SMALL) for _ in range(draw(st.integers(1, rank)))]
    shape[draw(st.integers(0, len(shape) - 1))] = draw(EXTENT)
    return tuple(shape)


def softmax(draw: Draw) -> Case:
    shape = one_long(draw, 3)
    axis = draw(st.integers(0, len(shape) - 1))
    op = draw(st.sampled_from(["Softmax", "LogSoftmax"]))
    return op, [shape], {"axis": axis}, {n: draw(st.integers(1, 50)) for n in ("rows", "columns")}


def norm(draw: Draw) -> Case:
    rows, width = draw(EXTENT), draw(EXTENT)
    op = draw(st.sampled_from(["RMSNormalization", "LayerNormalization"]))
    factors = 2 if op == "LayerNormalization" and draw(st.booleans()) else 1
    choices = {name: draw(st.integers(1, 50)) for name in ("rows", "columns")}
    return op, [(rows, width), *[(width,)] * factors], {}, choices


def transpose(draw: Draw) -> Case:
    shape = tuple(draw(st.lists(st.integers(1, 12), min_size=1, max_size=5)))
    perm = draw(st.permutations(range(len(shape))))
    choices = {name: draw(st.integers(1, 12)) for name in ("rows", "columns")}
    return "Transpose", [shape], {"perm": list(perm)}, choices


def move(draw: Draw) -> Case:
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    choices = {"chunk": draw(st.integers(1, 300))}
    if draw(st.booleans()):
        axis = draw(st.integers(0, len(shape) - 1))
        parts = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
        shapes = [(*shape[:axis], n, *shape[axis + 1 :]) for n in parts]
        return "Concat", shapes, {"axis": axis}, choices
    starts = [draw(st.integers(-n - 1, n)) for n in shape]
    ends = [draw(st.integers(-n - 1, n + 1)) for n in shape]
    steps = [draw(st.sampled_from([1, 1, 2, -1, -2])) for _ in shape]
    cut = [np.array(part) for part in (starts, ends, range(len(shape)), steps)]
    return "Slice", [tuple(shape), *cut], {}, choices


def gather(draw: Draw) -> Case:
    table = tuple(draw(st.lists(st.integers(1, 12), min_size=1, max_size=3)))
    axis = draw(st.integers(0, len(table) - 1))
    indices = tuple(draw(st.lists(st.integers(1, 6), min_size=0, max_size=2)))
    rows = (
        indices,
        Integers(-table[axis], table[axis] - 1),
        draw(st.sampled_from(["int32", "int64"])),
    )
    choices = {name: draw(st.integers(1, 20)) for name in ("rows", "columns")}
    return "Gather", [table, rows], {"axis": axis}, choices


def reduce(draw: Draw) -> Case:
    shape = one_long(draw, 3)
    first = draw(st.integers(0, len(shape) - 1))
    last = draw(st.integers(first, len(shape) - 1))
    op = draw(st.sampled_from(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"]))
    choices = {name: draw(st.integers(1, 50)) for name in ("rows", "columns")}
    return op, [shape, np.arange(first, last + 1)], {}, choices


def pool(draw: Draw) -> Case:
    kernel = [draw(st.integers(1, 4)) for _ in range(2)]
    attributes = {
        "kernel_shape": kernel,
        "strides": [draw(st.integers(1, 3)) for _ in range(2)],
        "pads": [draw(st.integers(0, k - 1)) for k in kernel * 2],
        "ceil_mode": draw(st.integers(0, 1)),
    }
    shape = (draw(st.integers(1, 2)), draw(SMALL), *(k + draw(SMALL) for k in kernel))
    choices = {name: draw(st.integers(1, 10)) for name in ("c", "r", "q")}
    return draw(st.sampled_from(["MaxPool", "AveragePool"])), [shape], attributes, choices


KERNELS = [
    matmul, conv, depthwise, flash, elementwise, softmax, norm, transpose, move, gather, reduce,
    pool,
]  # fmt: skip


@pytest.mark.parametrize("examples", [12, pytest.param(300, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("case", KERNELS, ids=lambda case: case.__name__)
def test_any_choices_of_any_shape_in_any_order(bench, tools, case, examples):
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def check(data):
        op, operands, attributes, choices = case(data.draw)
        kind = data.draw(st.sampled_from(KINDS))
        count = 3 if op == "Attention" and len(operands) > 4 else 1
        graph = bench.single(op, operands, attributes, kind=kind, outputs=count)
        if not graph.tensors["y"].size:
            return
        graph = tools.with_recipes(graph, data.draw(DATA))
        if data.draw(st.booleans()):
            points = bench.points(case.__name__, graph)
            choices = points.space.at(int(data.draw(st.sampled_from(points.legal.tolist()))))
        orders = (data.draw(st.integers(0, 99)),)
        bench.validated(graph, bench.plan(case.__name__, **choices), orders=orders)

    check()
