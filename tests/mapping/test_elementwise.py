"""Element-wise operators: every one of them, broadcasting, conversions, long expressions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from npusim import GraphBuilder, Integers, Plan, fuse
from npusim.core.errors import NoPlan
from npusim.plan.elementwise import names
from npusim.plan.language import AUTO
from npusim.plan.lower import lower

KINDS = ["fp32", "bf16", "fp16"]

#: Shapes that broadcast, in pairs.
BROADCAST = {
    "alike": ((30, 50), (30, 50)),
    "a number": ((30, 50), ()),
    "one element": ((30, 50), (1, 1)),
    "a row": ((30, 50), (50,)),
    "a column": ((30, 50), (30, 1)),
    "row and column": ((1, 50), (30, 1)),
    "a fewer dimension": ((4, 30, 50), (30, 50)),
    "the middle": ((4, 30, 50), (4, 1, 50)),
    "alternating": ((4, 1, 6, 1, 5), (1, 7, 1, 3, 5)),
    "both ends": ((4, 1, 50), (1, 30, 1)),
    "a single dimension": ((301,), (301,)),
    "scalars": ((), ()),
    "primes": ((131, 257), (131, 257)),
    "size one everywhere": ((1, 1, 1), (1,)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shapes", BROADCAST.values(), ids=BROADCAST)
def test_broadcasting(bench, shapes, kind):
    for pair in (shapes, shapes[::-1]):
        outcome = bench.validated(bench.single("Sub", pair, kind=kind), orders=(1,))
        assert outcome.kernels == ["elementwise"]


@pytest.mark.parametrize("rows", [1, 3, 100])
@pytest.mark.parametrize("columns", [1, 7, 100])
@pytest.mark.parametrize("slots", [1, 2, 3])
def test_tiles(bench, rows, columns, slots):
    graph = bench.single("Where", [_bits((4, 13, 1)), (13, 17), (4, 1, 17)], kind="bf16")
    bench.validated(graph, bench.plan("elementwise", rows=rows, columns=columns, slots=slots))


def _bits(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(1).random(shape) < 0.5


def _positive(shape: tuple[int, ...], seed: int = 2) -> np.ndarray:
    return (0.1 + 3 * np.random.default_rng(seed).random(shape)).astype(np.float32)


FLOAT = (33, 70)
#: What to feed each operator, where two normal tensors will not do; attributes behind.
OPERANDS = {
    "And": ([_bits(FLOAT), _bits((70,))], {}),
    "Or": ([_bits(FLOAT), _bits((70,))], {}),
    "Xor": ([_bits(FLOAT), _bits((70,))], {}),
    "Not": ([_bits(FLOAT)], {}),
    "Where": ([_bits(FLOAT), FLOAT, (70,)], {}),
    "Clip": ([FLOAT, np.float32(-0.5), np.float32(0.7)], {}),
    "Cast": ([FLOAT], {"to": 7}),
    "Log": ([_positive(FLOAT)], {}),
    "Sqrt": ([_positive(FLOAT)], {}),
    "Reciprocal": ([_positive(FLOAT)], {}),
    "Pow": ([_positive(FLOAT), (70,)], {}),
    "Expand": ([(1, 70), np.array([33, 70])], {}),
    "PRelu": ([FLOAT, (70,)], {}),
    "QuantizeLinear": ([FLOAT, np.float32(0.02), np.int8(3)], {}),
    "DequantizeLinear": (
        [(FLOAT, Integers(-128, 127), "int8"), np.float32(0.02), np.int8(3)],
        {},
    ),
    "Sum": ([FLOAT] * 6, {}),
    "Mean": ([FLOAT] * 5, {}),
    "Max": ([FLOAT] * 3, {}),
    "Min": ([FLOAT] * 3, {}),
}
UNARY = {
    "Abs", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish",
    "Identity", "LeakyRelu", "Neg", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Softplus", "Swish",
    "Tanh",
}  # fmt: skip


def operands_of(op):
    if op in OPERANDS:
        return OPERANDS[op]
    return ([FLOAT] if op in UNARY else [FLOAT, (70,)]), {}


@pytest.mark.parametrize("op", [name for name in names() if name != "Identity"])
def test_every_operator(bench, op):
    operands, attributes = operands_of(op)
    outcome = bench.validated(bench.single(op, operands, attributes))
    assert outcome.kernels == ["elementwise"]


FLOATING = sorted(UNARY | {"Add", "Div", "Max", "Mean", "Min", "Mul", "PRelu", "Sub", "Sum"})


@pytest.mark.parametrize("kind", ["bf16", "fp16"])
@pytest.mark.parametrize("op", FLOATING)
def test_narrow_floats_are_rounded_once(bench, op, kind):
    operands, attributes = operands_of(op)
    bench.validated(bench.single(op, operands, attributes, kind=kind), orders=(1,))


ATTRIBUTES = [
    ("Gelu", {"approximate": "tanh"}),
    ("Elu", {"alpha": 0.3}),
    ("LeakyRelu", {"alpha": 0.2}),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
    ("Swish", {"alpha": 1.7}),
]


@pytest.mark.parametrize("op, attributes", ATTRIBUTES, ids=[op for op, _ in ATTRIBUTES])
def test_attributes(bench, op, attributes):
    bench.validated(bench.single(op, [FLOAT], attributes))


@pytest.mark.parametrize("shape", [(1, 17), (13, 1), (4, 1, 17), (1,), ()], ids=str)
@pytest.mark.parametrize("given", ["data", "constant"])
def test_expand(bench, shape, given):
    """Nothing is as large as the result, whose last tiles are clipped."""
    x = shape if given == "data" else np.full(shape, 1.5, np.float32)
    graph = bench.single("Expand", [x, np.array([4, 13, 17])])
    bench.validated(graph, bench.plan("elementwise", rows=5, columns=6))


@pytest.mark.parametrize("bounds", [(None, 0.7), (-0.5, None), (-0.5, 0.7), (0.7, -0.5)], ids=str)
def test_clip(bench, bounds):
    limits = [None if bound is None else np.float32(bound) for bound in bounds]
    while limits and limits[-1] is None:
        limits.pop()
    graph = bench.single("Clip", [FLOAT, *(None if b is None else np.array(b) for b in limits)])
    bench.validated(graph)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -3.0, 88.0, -104.0], np.float32)


@pytest.mark.parametrize("op", sorted(UNARY | {"Log", "Sqrt", "Reciprocal"}))
def test_special_numbers(bench, op):
    bench.validated(bench.single(op, [np.tile(SPECIAL, (5, 1))]), orders=())


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Less", "Equal"])
def test_special_numbers_in_pairs(bench, op):
    bench.validated(bench.single(op, [SPECIAL[:, None], SPECIAL]), orders=())


INTEGERS = ["Add", "Sub", "Mul", "Div", "Max", "Min", "Less", "Equal", "GreaterOrEqual"]


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("op", INTEGERS)
def test_integers_are_exact(bench, op, kind):
    low = 1 if op == "Div" else -3000
    given = [((33, 70), Integers(-9000, 9000), kind), ((70,), Integers(low, 3000), kind)]
    bench.validated(bench.single(op, given), orders=())


FLOATS = {"fp32": 1, "fp16": 10, "bf16": 16}
WHOLE = {"int8": 3, "uint8": 2, "int32": 6, "int64": 7, "bool": 9}


@pytest.mark.parametrize("to", [*FLOATS, *WHOLE])
@pytest.mark.parametrize("kind", [*FLOATS, *WHOLE])
def test_casts(bench, tools, kind, to):
    code = {**FLOATS, **WHOLE}[to]
    if kind in FLOATS:
        # In reach of every integer format, ends and halves among them.
        values = np.linspace(0 if to == "uint8" else -120, 120, 481)[None]
        operand = tools.stored(values, kind)
    else:
        low = 0 if kind in ("uint8", "bool") or to == "uint8" else -100
        operand = ((5, 70), Integers(low, 1 if kind == "bool" else 100), kind)
    bench.validated(bench.single("Cast", [operand], {"to": code}), orders=())


@pytest.mark.parametrize("zero", [None, 0, 7])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
def test_conversions_along_an_axis(bench, op, axis, zero):
    shape = (5, 30, 7)
    scale = _positive((shape[axis],), 5) * np.float32(0.02)
    zeros = [] if zero is None else [np.full(shape[axis], zero, np.int8)]
    x = shape if op == "QuantizeLinear" else (shape, Integers(-128, 127), "int8")
    attributes = {"axis": axis}
    if op == "QuantizeLinear" and zero is None:
        attributes["output_dtype"] = 3
    bench.validated(bench.single(op, [x, scale, *zeros], attributes))


OVERFLOWING = np.array([[1.0, 464.1, 1e6, np.inf, -np.inf, np.nan]], np.float32)
E4M3, E5M2 = 17, 19
#: What the vector unit does not do, as (operator, operands, attributes).
REFUSED = {
    "fp8e4m3 that overflows": ("Cast", [OVERFLOWING], {"to": E4M3, "saturate": 0}),
    "fp8e5m2 that overflows": ("Cast", [OVERFLOWING], {"to": E5M2, "saturate": 0}),
    "quantized fp8 that overflows": (
        "QuantizeLinear",
        [OVERFLOWING, np.float32(1), np.zeros((), ml_dtypes.float8_e5m2)],
        {"saturate": 0},
    ),
    "quantized by blocks": (
        "QuantizeLinear",
        [(4, 6), _positive((4, 2)) * np.float32(0.02), np.zeros((4, 2), np.int8)],
        {"axis": 1, "block_size": 3},
    ),
    "dequantized by blocks": (
        "DequantizeLinear",
        [((6, 4), Integers(-128, 127), "int8"), _positive((3, 4))],
        {"axis": 0, "block_size": 2},
    ),
}


@pytest.mark.parametrize("op, operands, attributes", REFUSED.values(), ids=REFUSED)
def test_what_the_vector_unit_does_not_do_runs_on_the_host(bench, op, operands, attributes):
    graph = bench.single(op, operands, attributes)
    with pytest.raises(NoPlan, match=r"overflows, and the vector unit|a scale for every block"):
        bench.lower(graph)
    outcome = bench.compute(graph, lower(graph, bench.machine, AUTO, bench.all_kernels))
    assert (outcome.kernels, outcome.failures) == (["host"], [])


def test_a_chain_as_one_layer(bench):
    builder = GraphBuilder("chain")
    x, y = builder.input("x", (33, 70), "bf16"), builder.input("y", (70,), "bf16")
    a = builder.add("Sigmoid", x, name="a")
    b = builder.add("Mul", a, x, name="b")
    c = builder.add("Add", b, y, name="c")
    graph = builder.build(builder.add("Relu", c, name="d"))
    plan = Plan("fused", steps=[fuse("a", "b", "c", "d").use(bench.kernel["elementwise"]())])
    outcome = bench.validated(graph, plan)
    assert outcome.kernels == ["elementwise"]
    assert [check.output for check in outcome.checks] == ["d"]


def test_more_operands_than_one_instruction_takes(bench):
    builder = GraphBuilder("long")
    last = builder.input("x", (33, 70), "fp32")
    for number in range(9):
        other = builder.input(f"o{number}", [(33, 70), (70,), (33, 1)][number % 3], "fp32")
        last = builder.add(["Add", "Mul", "Sub"][number % 3], last, other, name=f"z{number}")
    steps = [fuse(*(f"z{n}" for n in range(9))).use(bench.kernel["elementwise"](rows=8))]
    bench.validated(builder.build(last), Plan("fused", steps=steps))


def test_integers_between_instructions_stay_integers(bench):
    """Sums beyond 2^24, which fp32 would round."""
    builder = GraphBuilder("whole")
    big = Integers(2**40, 2**41)
    inputs = [builder.input(f"x{n}", (33, 70), "int64", big) for n in range(7)]
    last = inputs[0]
    for number, other in enumerate(inputs[1:]):
        last = builder.add("Add", last, other, name=f"z{number}")
    steps = [fuse(*(f"z{n}" for n in range(6))).use(bench.kernel["elementwise"]())]
    graph = builder.build(last)
    bench.validated(graph, Plan("fused", steps=steps))


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0,)])
def test_empty_tensors_cost_nothing(bench, shape):
    outcome = bench.run(bench.single("Add", [shape, (1,)]))
    assert outcome.kernels == ["nothing"] and len(outcome.program) == 0
    assert outcome.failures == []
