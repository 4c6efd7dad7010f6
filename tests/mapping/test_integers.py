"""Products between conversions: int8 operands, zero points, scales per channel, bias, rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from npusim import GraphBuilder, Grid, Integers
from npusim.graph.evaluate import evaluate, initial_values

#: A step of quantization in which sums of unit products land well inside the int8 range.
STEP = np.float32(0.05)


@dataclass(frozen=True)
class Quantized:
    """One product between DequantizeLinear and QuantizeLinear, as converters write it."""

    op: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    axis: int
    x_type: str = "int8"
    w_type: str = "int8"
    x_zero: int = 0
    w_zero: int = 0
    y_zero: int = 0
    per_channel: bool = True
    bias: bool = False
    relu: bool = False
    out: str | None = "int8"
    attributes: Any = None

    @property
    def channels(self) -> int:
        return self.w[self.axis]


def build(q: Quantized):
    builder = GraphBuilder("quantized")
    rng = np.random.default_rng(7)
    x = builder.input("x", q.x, q.x_type, _whole(q.x_type))
    w = builder.weight("w", q.w, q.w_type, _whole(q.w_type))
    sx = builder.constant("x.scale", np.float32(0.02))
    steps = rng.uniform(0.01, 0.03, q.channels if q.per_channel else ()).astype(np.float32)
    sw = builder.constant("w.scale", steps)
    real_x = builder.add(
        "DequantizeLinear", x, sx, _zero(builder, "x", q.x_zero, q.x_type, ()), name="x.real"
    )
    zero = _zero(builder, "w", q.w_zero, q.w_type, steps.shape)
    axis = {"axis": q.axis} if q.per_channel else {}
    operands = [real_x, builder.add("DequantizeLinear", w, sw, zero, name="w.real", **axis)]
    if q.bias:
        operands.append(_bias(builder, q, steps))
    last = builder.add(q.op, *operands, name="product", **(q.attributes or {}))
    if q.relu:
        last = builder.add("Relu", last, name="relu")
    if q.out is not None:
        step = builder.constant("y.scale", STEP)
        zero = _zero(builder, "y", q.y_zero, q.out, ())
        last = builder.add("QuantizeLinear", last, step, zero, name="y")
    return builder.build(last)


def _whole(kind: str) -> Integers:
    return Integers(0, 255) if kind == "uint8" else Integers(-128, 127)


def _zero(builder: GraphBuilder, name: str, zero: int, kind: str, shape: tuple[int, ...]) -> str:
    values = np.full(shape, zero, {"int8": np.int8, "uint8": np.uint8}[kind])
    return builder.constant(f"{name}.zero", values)


def _bias(builder: GraphBuilder, q: Quantized, steps: np.ndarray) -> str:
    """int32 in units of the product of both scales, as the standard converters store it."""
    b = builder.weight("b", (q.channels,), "int32", Integers(-3000, 3000))
    units = builder.constant("b.scale", (steps * np.float32(0.02)).astype(np.float32))
    return builder.add("DequantizeLinear", b, units, name="b.real", axis=0)


MATMUL = {"op": "MatMul", "x": (37, 130), "w": (130, 67), "axis": 1}
GEMM = {"op": "Gemm", "x": (37, 130), "w": (67, 130), "axis": 0, "attributes": {"transB": 1}}
CONV = {"op": "Conv", "x": (1, 7, 13, 15), "w": (18, 7, 3, 3), "axis": 0}
PADDED = {"attributes": {"pads": [1, 1, 1, 1]}}

CASES = {
    "matmul, symmetric": Quantized(**MATMUL),
    "matmul, one scale": Quantized(**MATMUL, per_channel=False),
    "matmul, zero points everywhere": Quantized(**MATMUL, x_zero=-7, w_zero=3, y_zero=11),
    "matmul, unsigned input": Quantized(**MATMUL, x_type="uint8", x_zero=131, y_zero=-4),
    "matmul, unsigned result": Quantized(**MATMUL, out="uint8", y_zero=120, relu=True),
    "matmul, result stays real": Quantized(**MATMUL, out=None, x_zero=5),
    "matmul, batched": Quantized("MatMul", (2, 3, 33), (33, 20), 1, x_zero=5, relu=True),
    "gemm with bias": Quantized(**GEMM, bias=True, x_zero=-7, relu=True),
    "gemm without bias": Quantized(**GEMM, w_zero=2),
    "gemm, result stays real": Quantized(**GEMM, bias=True, out=None),
    "conv": Quantized(**CONV, bias=True),
    "conv, padded with the zero point": Quantized(
        **CONV, **PADDED, bias=True, x_zero=-9, y_zero=3, relu=True
    ),
    "conv, unsigned and padded": Quantized(
        **CONV, **PADDED, x_type="uint8", x_zero=128, out="uint8", y_zero=7
    ),
    "conv, strided and dilated": Quantized(
        **CONV, attributes={"strides": [2, 1], "dilations": [1, 2], "pads": [2, 1, 0, 1]}, x_zero=4
    ),
    "conv, grouped": Quantized(
        "Conv", (1, 8, 9, 9), (12, 2, 3, 3), 0, bias=True, attributes={"group": 4}, x_zero=2
    ),
    "conv, depthwise": Quantized(
        "Conv", (1, 8, 9, 9), (8, 1, 3, 3), 0, bias=True, x_zero=2,
        attributes={"group": 8, "pads": [1, 1, 1, 1]},
    ),
    "conv over one axis": Quantized("Conv", (2, 5, 40), (9, 5, 5), 0, bias=True, x_zero=-3),
}  # fmt: skip


@pytest.mark.parametrize("machine", ["bench", "edge"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_is_one_integer_product(request, machine, case):
    npu = request.getfixturevalue(machine)
    outcome = npu.validated(build(case))
    assert outcome.kernels == [{"Conv": "conv"}.get(case.op, "matmul")]
    program = outcome.program
    fed = {int(program.regions.dtype[region]) for region in program.mmas.a}
    assert fed and all(program.regions.dtype[c] not in fed for c in program.mmas.c)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_agrees_with_the_operators_one_by_one_to_a_rounding(bench, case):
    """float64 references of every single operator, which round where the model says so."""
    graph = build(case)
    outcome = bench.run(graph, orders=())
    values = evaluate(graph, initial_values(graph, 0))
    (result,) = graph.outputs
    got, expected = (np.asarray(v, np.float64) for v in (outcome.value(result), values[result]))
    off = np.abs(got - expected)
    if case.out is None:
        assert off.max() < 1e-5 * np.abs(expected).max()
    else:
        assert off.max() <= 1 and (off > 0).mean() < 1e-3
        assert len(np.unique(got)) > 20  # neither saturated nor all alike


@pytest.mark.parametrize("grid", [Grid(m=2, n=2), Grid(n=4), Grid(k=4)], ids=repr)
def test_matmul_split_over_cores(bench, grid):
    graph = build(CASES["matmul, zero points everywhere"])
    plan = bench.plan("matmul", "product", m=16, n=24, k=32, grid=grid)
    assert bench.validated(graph, plan).kernels == ["matmul"]


@pytest.mark.parametrize("c", [1, 3, 7])
def test_conv_in_chunks_of_channels(bench, c):
    graph = build(CASES["conv, padded with the zero point"])
    plan = bench.plan("conv", "product", m=8, c=c, r=3, q=16, grid=Grid(r=2))
    assert bench.validated(graph, plan).kernels == ["conv"]


def test_saturation_at_both_ends(bench):
    """A step so small that most results leave the range."""
    builder = GraphBuilder("saturated")
    x = builder.input("x", (20, 64), "int8", Integers(-128, 127))
    w = builder.weight("w", (64, 20), "int8", Integers(-128, 127))
    one, step = builder.constant("one", np.float32(1)), builder.constant("s", np.float32(500))
    zero = builder.constant("zero", np.int8(0))
    real = [builder.add("DequantizeLinear", n, one, zero, name=f"{n}.real") for n in (x, w)]
    product = builder.add("MatMul", *real, name="product")
    graph = builder.build(builder.add("QuantizeLinear", product, step, zero, name="y"))
    outcome = bench.validated(graph)
    assert {-128, 127} <= set(outcome.value("y").ravel().tolist())
    assert outcome.kernels == ["matmul"]


def test_zero_point_that_differs_by_channel_falls_back_to_real_numbers(bench):
    """The array subtracts one zero point, so these are converted first and multiplied as fp32."""
    builder = GraphBuilder("several")
    x = builder.input("x", (20, 64), "int8", Integers(-128, 127))
    w = builder.weight("w", (64, 20), "int8", Integers(-128, 127))
    step = builder.constant("s", np.full(20, 0.02, np.float32))
    zeros = builder.constant("zeros", np.arange(20, dtype=np.int8))
    one = builder.constant("one", np.float32(0.02))
    real_x = builder.add("DequantizeLinear", x, one, name="x.real")
    real_w = builder.add("DequantizeLinear", w, step, zeros, name="w.real", axis=1)
    graph = builder.build(builder.add("MatMul", real_x, real_w, name="y"))
    outcome = bench.validated(graph)
    assert sorted(outcome.kernels) == ["elementwise", "elementwise", "matmul"]


def test_an_input_that_is_added_to_its_own_product(bench):
    builder = GraphBuilder("residual")
    x = builder.input("x", (20, 64), "int8", Integers(-128, 127))
    w = builder.weight("w", (64, 64), "int8", Integers(-128, 127))
    step = builder.constant("s", np.float32(0.02))
    real_x = builder.add("DequantizeLinear", x, step, name="x.real")
    real_w = builder.add("DequantizeLinear", w, step, name="w.real")
    product = builder.add("MatMul", real_x, real_w, name="product")
    graph = builder.build(builder.add("Add", product, real_x, name="y"))
    outcome = bench.validated(graph)
    assert outcome.kernels == ["matmul"]  # converted again where it is added


def test_a_conversion_that_others_read_too_also_runs_by_itself(bench):
    builder = GraphBuilder("shared")
    x = builder.input("x", (20, 64), "int8", Integers(-128, 127))
    w = builder.weight("w", (64, 30), "int8", Integers(-128, 127))
    step = builder.constant("s", np.float32(0.02))
    real_x = builder.add("DequantizeLinear", x, step, name="x.real")
    real_w = builder.add("DequantizeLinear", w, step, name="w.real")
    product = builder.add("MatMul", real_x, real_w, name="y")
    graph = builder.build([product, builder.add("Softmax", real_x, name="z")])
    outcome = bench.validated(graph)
    assert sorted(outcome.kernels) == ["elementwise", "matmul", "softmax"]
    assert {check.output for check in outcome.checks} == {"x.real", "y", "z"}


@pytest.mark.parametrize("kind", ["fp8e4m3", "fp8e5m2"])
def test_eight_bit_floats_go_the_same_way(bench, tools, kind):
    builder = GraphBuilder("fp8")
    x, w = (builder.input(n, s, kind) for n, s in (("x", (37, 130)), ("w", (130, 67))))
    step, out = (builder.constant(n, np.float32(v)) for n, v in (("s", 0.02), ("t", 0.01)))
    real = [builder.add("DequantizeLinear", n, step, name=f"{n}.real") for n in (x, w)]
    product = builder.add("MatMul", *real, name="product")
    zero = builder.constant("zero", tools.stored(0, kind))
    graph = builder.build(builder.add("QuantizeLinear", product, out, zero, name="y"))
    assert bench.validated(graph).kernels == ["matmul"]
