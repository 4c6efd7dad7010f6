"""Instructions that their unit cannot execute."""

from __future__ import annotations

import pytest

from npusim.core.dtypes import dtype
from npusim.core.errors import IllegalProgram
from npusim.program.checker import check
from npusim.program.kinds import Kind, Space


def found(program, machine):
    with pytest.raises(IllegalProgram) as caught:
        check(program, machine)
    return [p.message for p in caught.value.problems]


def first(program, machine):
    return found(program, machine)[0]


class Bench:
    """Initial tiles wherever they are asked for, so that only the instruction is wrong."""

    def __init__(self, sketch):
        self.s = sketch.Sketch()
        self._next = 0

    def tile(self, shape, kind="fp32", space=Space.SRAM, core=0, name="t", split=None):
        self._next += 4096
        buffer = self.s.buffer(space, core, shape, kind, at=self._next, name=name)
        region = self.s.part(buffer, shape, item=dtype(kind).itemsize, split=split)
        self.s.builder.locate(f"{name}{self._next}", region, True)
        return region


@pytest.fixture
def bench(sketch):
    return Bench(sketch)


# ---------------------------------------------------------------- units and reach


@pytest.mark.parametrize(
    ("unit", "kind", "expected"),
    [
        (1, Kind.MMA, "mma on core 0 vector: only a matrix stream executes it"),
        (3, Kind.MMA, "mma on core 0 dma 1: only a matrix stream executes it"),
        (0, Kind.VECTOR, "vector on core 0 matrix: only a vector stream executes it"),
        (0, Kind.COPY, "copy on core 0 matrix: only a dma stream executes it"),
    ],
)
def test_kinds_on_the_wrong_unit(bench, npu, unit, kind, expected):
    a, c = bench.tile((8, 8)), bench.tile((8, 8), space=Space.ACC)
    operands = {
        Kind.MMA: (c, a, a, 1, 0, 0),
        Kind.VECTOR: (bench.s.builder.expression(("source", 0)), c, a, -1, -1, -1, 0),
        Kind.COPY: (c, a, -1),
    }[kind]
    bench.s.emit(0, unit, kind, *operands)
    assert found(bench.s.finish(), npu) == [expected]


def test_the_host_stream_executes_host_operators_only(bench, npu):
    a = bench.tile((8, 8))
    host = len(bench.s.builder.streams) - 1
    bench.s.builder.emit(host, Kind.COPY, bench.tile((8, 8)), a, -1)
    assert first(bench.s.finish(), npu) == "copy on host: only a dma stream executes it"


@pytest.mark.parametrize(
    ("operand", "space", "core", "expected"),
    [
        ("c", Space.SRAM, 0, "C of an mma must be in acc of core 0, not t@sram0[8x8 fp32]"),
        ("c", Space.ACC, 1, "C of an mma must be in acc of core 0, not t@acc1[8x8 fp32]"),
        ("a", Space.DRAM, -1, "A of an mma must be in sram or acc of core 0, not t[0:8, 0:8]"),
        ("b", Space.SHARED, -1, "B of an mma must be in sram or acc of core 0, not t@shared[0:8,"),
        ("a", Space.SRAM, 2, "A of an mma must be in sram or acc of core 0, not t@sram2[8x8 fp32]"),
    ],
)
def test_where_the_matrix_unit_reaches(bench, npu, operand, space, core, expected):
    places = {"c": (Space.ACC, 0), "a": (Space.SRAM, 0), "b": (Space.SRAM, 0)}
    places[operand] = (space, core)
    c, a, b = (bench.tile((8, 8), space=s, core=k) for s, k in places.values())
    bench.s.mma(0, c, a, b)
    (message,) = found(bench.s.finish(), npu)
    assert message.startswith(expected)


@pytest.mark.parametrize("space", [Space.DRAM, Space.SHARED])
def test_where_the_vector_unit_reaches(bench, npu, space):
    far, near = bench.tile((8, 8), space=space, core=-1), bench.tile((8, 8))
    bench.s.vec(0, far, near)
    bench.s.vec(0, near, near, far)
    results = found(bench.s.finish(), npu)
    assert results[0].startswith("the result of a vec must be in sram or acc of core 0, not t")
    assert results[1].startswith("an operand of a vec must be in sram or acc of core 0, not t")


def test_the_host_sees_what_all_cores_share(bench, npu):
    bench.s.host("h", [bench.tile((8, 8), space=Space.DRAM, core=-1)], [bench.tile((8, 8))])
    assert found(bench.s.finish(), npu) == [
        "an operand of the host must be in dram or shared, not t@sram0[8x8 fp32]"
    ]


def test_copies_go_between_any_memories_but_taps(bench, npu):
    s = bench.s
    ends = [
        bench.tile((8, 8), space=space, core=core)
        for space, core in (
            (Space.DRAM, -1), (Space.SHARED, -1), (Space.SRAM, 0), (Space.SRAM, 3), (Space.ACC, 1)
        )
    ]  # fmt: skip
    for source in ends:
        for to in ends:
            if to != source:
                s.copy(0, 0, to, source)
    check(s.finish(), npu)
    s.copy(0, 0, s.tile(Space.TAP, -1, (8, 8), name="z"), ends[0])
    assert found(s.finish(), npu) == [
        "an end of a copy must be in dram or shared or sram or acc, not z[0:8, 0:8]"
    ]


# ---------------------------------------------------------------- copies


def test_a_copy_does_not_convert(bench, npu):
    bench.s.copy(0, 0, bench.tile((8, 8), "bf16", name="a"), bench.tile((8, 8), name="x"))
    assert found(bench.s.finish(), npu) == [
        "a copy moves bytes, it cannot turn x (8x8 fp32) into a (8x8 bf16)"
    ]


def test_a_copy_fills_its_destination(bench, npu):
    bench.s.copy(0, 0, bench.tile((8, 8), name="a"), bench.tile((8, 7), name="x"))
    bench.s.copy(0, 0, bench.tile((4, 14), name="b"), bench.tile((8, 7), name="x"))
    assert found(bench.s.finish(), npu) == ["a copy of x (8x7 fp32) does not fill a (8x8 fp32)"]


def test_gathers(bench, npu):
    s = bench.s
    table, rows = bench.tile((9, 4), name="table"), bench.tile((6,), "int64", name="rows")
    s.copy(0, 0, bench.tile((6, 4), name="a"), table, rows)
    check(s.finish(), npu)
    s.copy(0, 0, bench.tile((5, 4), name="b"), table, rows)
    s.copy(0, 0, bench.tile((6, 4), name="c"), table, bench.tile((6,), name="weights"))
    s.copy(0, 0, bench.tile((6, 4), name="d"), bench.tile((3, 9, 4), name="cube"), rows)
    assert found(s.finish(), npu) == [
        "a gather needs integers to number rows, not weights (1x6 fp32)",
        "a gather takes rows of a matrix: rows (1x6 int64) rows of table (9x4 fp32) do not fill "
        "b (5x4 fp32)",
        "a gather takes rows of a matrix: rows (1x6 int64) rows of cube (3x9x4 fp32) do not fill "
        "d (6x4 fp32)",
    ]


# ---------------------------------------------------------------- matrix products


def test_shapes_of_products(bench, npu):
    c = bench.tile((8, 16), space=Space.ACC)
    a, b = bench.tile((8, 4)), bench.tile((4, 16))
    bench.s.mma(0, c, a, b)
    check(bench.s.finish(), npu)
    bench.s.mma(0, c, a, bench.tile((5, 16)))
    bench.s.mma(0, bench.tile((9, 16), space=Space.ACC), a, b)
    bench.s.mma(0, bench.tile((8, 15), space=Space.ACC), a, b)
    assert found(bench.s.finish(), npu) == [
        "mma: 8x4 times 5x16 is not 8x16",
        "mma: 8x4 times 4x16 is not 9x16",
        "mma: 8x4 times 4x16 is not 8x15",
    ]


def test_rows_and_columns_are_where_the_tile_is_split(bench, npu):
    """A 4-dimensional patch is a matrix; which one depends on the split."""
    c = bench.tile((6, 8), space=Space.ACC)
    bench.s.mma(0, c, bench.tile((2, 3, 5, 4), split=2), bench.tile((20, 8)))
    check(bench.s.finish(), npu)
    bench.s.mma(0, c, bench.tile((2, 3, 5, 4), split=3), bench.tile((20, 8)))
    assert found(bench.s.finish(), npu) == ["mma: 30x4 times 20x8 is not 6x8"]


@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        ("bf16", "bf16", "fp32", None),
        ("int8", "uint8", "int32", None),
        ("fp32", "fp32", "fp32", None),
        (
            "bf16", "bf16", "bf16",
            "wrong accumulate dtype: the matrix unit of npu_a sums bf16 products in fp32, "
            "C is bf16",
        ),
        (
            "int8", "int8", "fp32",
            "wrong accumulate dtype: the matrix unit of npu_a sums int8 products in int32, "
            "C is fp32",
        ),
        ("int16", "int16", "int32", "the matrix unit of npu_a cannot multiply int16"),
        ("fp64", "bf16", "fp32", "the matrix unit of npu_a cannot multiply fp64"),
        (
            "bf16", "fp16", "fp32",
            "the matrix unit of npu_a multiplies operands of one dtype, found bf16 and fp16",
        ),
    ],
)  # fmt: skip
def test_dtypes_of_products(bench, npu, a, b, c, expected):
    target = bench.tile((8, 8), c, space=Space.ACC)
    bench.s.mma(0, target, bench.tile((8, 8), a), bench.tile((8, 8), b))
    if expected is None:
        check(bench.s.finish(), npu)
    else:
        assert found(bench.s.finish(), npu) == [expected]


def test_what_can_be_multiplied_is_listed(bench, npu):
    t = bench.tile((8, 8), "int16")
    bench.s.mma(0, bench.tile((8, 8), "int32", space=Space.ACC), t, t)
    with pytest.raises(IllegalProgram, match="allowed: bf16, fp16, fp32, fp8e4m3, fp8e5m2, int8"):
        check(bench.s.finish(), npu)


def test_zero_points(sketch, npu, variant):
    def product(kind, into):
        bench = Bench(sketch)
        c, a = bench.tile((8, 8), into, space=Space.ACC), bench.tile((8, 8), kind)
        bench.s.mma(0, c, a, a, zero_a=3)
        return bench.s.finish()

    check(product("int8", "int32"), npu)
    assert found(product("bf16", "fp32"), npu) == [
        "A of an mma has a zero point; the matrix unit of npu_a subtracts it from integers only"
    ]
    assert found(product("int8", "int32"), variant("core.matrix.zero_points=false")) == [
        "A of an mma has a zero point; the matrix unit of npu_a does not subtract it"
    ]


# ---------------------------------------------------------------- vectors


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (("add", ("source", 0), ("source", 1)), None),
        (("row_sum", ("source", 0)), None),
        (("immediate", 0), None),
        (("add", ("source", 0), ("source", 2)), "vec: operand 2 of 2"),
        (("neg", ("immediate", 6)), "vec: number 6 of 6"),
        (("frobnicate", ("source", 0)), "vec: no operation 'frobnicate'"),
        (("add", ("source", 0)), "vec: add takes 2 operands"),
        (("add", ("source", 0), ("row_sum", ("source", 0))), None),
    ],
)
def test_expressions(bench, npu, tree, expected):
    a, b = bench.tile((8, 6)), bench.tile((8, 6))
    bench.s.vec(0, bench.tile((8, 6)), a, b, tree=tree)
    if expected is None:
        check(bench.s.finish(), npu)
    else:
        assert found(bench.s.finish(), npu) == [expected]


def test_shapes_of_vectors(bench, npu):
    add = ("add", ("source", 0), ("source", 1))
    wide, narrow, column = bench.tile((8, 6)), bench.tile((8, 4)), bench.tile((8, 1))
    bench.s.vec(0, bench.tile((8, 6)), wide, column, tree=add)
    check(bench.s.finish(), npu)
    bench.s.vec(0, bench.tile((8, 6)), wide, narrow, tree=add)
    bench.s.vec(0, bench.tile((8, 1)), wide, tree=("source", 0))
    assert found(bench.s.finish(), npu) == [
        "vec: operands of shapes that do not go together",
        "vec: a value of 1x1x1x8x6 does not fit 1x1x1x8x1",
    ]


# ---------------------------------------------------------------- shown tiles


def test_shown_tiles(bench, npu):
    s = bench.s
    a, x = bench.tile((8, 8), name="a"), bench.tile((8, 8), space=Space.DRAM, core=-1, name="x")
    z = s.tile(Space.TAP, -1, (8, 9), name="z")
    s.vec(0, a, a)
    s.hold(z, a)
    s.hold(x, a)
    s.hold(s.tile(Space.TAP, -1, (8, 8), name="y"), s.tile(Space.TAP, -1, (8, 8), name="w"))
    assert found(s.finish(), npu) == [
        "holds: a (8x8 fp32) is not z (8x9 fp32)",
        "holds: a (8x8 fp32) cannot be shown as x (8x8 fp32): only a tensor without a place is "
        "shown by tiles",
        "holds: w (8x8 fp32) cannot be shown as y (8x8 fp32): only a tensor without a place is "
        "shown by tiles",
    ]


def test_where_in_the_plan_is_told(bench, npu):
    s = bench.s
    s.layer("attn", "b", "k")
    s.at(1, 6)
    a = bench.tile((8, 8), "bf16")
    for _ in range(3):
        s.mma(0, bench.tile((8, 8), "bf16", space=Space.ACC, name="c"), a, a)
    s.axes("b", "k")
    with pytest.raises(IllegalProgram) as caught:
        check(s.finish(), npu)
    (problem,) = caught.value.problems
    assert problem.hints == (
        "#0 mma c[8x8 bf16] = t[8x8 bf16] @ t[8x8 bf16] (attn, kernel matmul, step 1, "
        'on("first"), core 0 matrix, b=1 k=6)',
        "and 2 more like it in this layer",
    )


def test_the_same_program_on_another_machine(sketch, npu, variant):
    """What an array cannot run is found on the machine that cannot."""
    program = sketch.every_kind()
    check(program, npu)
    slow = variant("core.matrix.rates={bf16: 1}", "core.matrix.accumulate={bf16: fp32}")
    assert found(program, slow) == ["the matrix unit of npu_a cannot multiply fp32"]
