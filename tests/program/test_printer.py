"""Programs as text: one line an instruction, headings, waits, and what is in the whole."""

from __future__ import annotations

import pytest

from npusim.core.dtypes import dtype
from npusim.core.errors import InputError
from npusim.program.builder import Builder
from npusim.program.kinds import Kind, Space
from npusim.program.origin import describe
from npusim.program.printer import listing, summary
from npusim.program.wording import formula, region_text


def test_a_whole_program(sketch):
    program = sketch.every_kind()
    where = '(first, kernel matmul, step 1, on("first"), '
    assert [describe(program, i) for i in range(len(program))] == [
        f"#0 load a[8x8 fp32] <- x[0:8, 0:8] {where}core 0 dma 0, m=1 n=2)",
        f"#1 mma acc[8x8 fp32] = a[8x8 fp32] @ a[8x8 fp32] {where}core 0 matrix, m=1 n=2)",
        f"#2 vec a[8x8 fp32] = acc {where}core 0 vector, m=1 n=2)",
        f"#3 store y[0:8, 0:8] <- a[8x8 fp32] {where}core 0 dma 3, m=1 n=2)",
        f"#4 host h: x[0:8, 0:8] <- y[0:8, 0:8] {where}host, m=1 n=2)",
    ]
    assert listing(program) == [
        'first, kernel matmul, step 1, on("first"): MatMul',
        "      #0  core 0 dma 0    m=1 n=2  load a[8x8 fp32] <- x[0:8, 0:8]",
        "      #1  core 0 matrix   m=1 n=2  mma acc[8x8 fp32] = a[8x8 fp32] @ a[8x8 fp32]  "
        "waits #0 (raw)  shows z[0:8, 0:8]",
        "      #2  core 0 vector   m=1 n=2  vec a[8x8 fp32] = acc  waits #1 (raw)",
        "      #3  core 0 dma 3    m=1 n=2  store y[0:8, 0:8] <- a[8x8 fp32]  waits #2 (raw)",
        "      #4  host            m=1 n=2  host h: x[0:8, 0:8] <- y[0:8, 0:8]  "
        "waits #0 (war), #3 (raw)",
    ]
    assert summary(program) == [
        f"program {program.hash}: 5 instructions in 1 layers on 4 cores",
        "  instructions: 2 copy, 1 mma, 1 vector, 1 host, 1 tiles shown",
        "  edges: 5 (4 raw, 1 war)",
        "  memory, peak of the buffers alive at once:",
        "    dram: 512 B in 2 buffers",
        "    sram of core 0: 256 B in 1 buffers",
        "    acc of core 0: 256 B in 1 buffers",
        "    tap: 0 B in 1 buffers, 1 of them never used",
        "  streams, instructions each:",
        "    core 0: matrix 1, vector 1, dma 0 1, dma 1 0, dma 2 0, dma 3 1",
        "    core 1: matrix 0, vector 0, dma 0 0, dma 1 0, dma 2 0, dma 3 0",
        "    core 2: matrix 0, vector 0, dma 0 0, dma 1 0, dma 2 0, dma 3 0",
        "    core 3: matrix 0, vector 0, dma 0 0, dma 1 0, dma 2 0, dma 3 0",
        "    host: operators 1",
    ]


def test_an_empty_program(sketch):
    program = sketch.Sketch().finish()
    assert listing(program) == []
    assert summary(program)[1:3] == ["  instructions: none", "  edges: none"]


def test_choosing_rows(rig, npu):
    program = rig.two_layers(npu)
    short = listing(program, limit=3)
    assert len(short) == 1 + 3 + 1
    assert short[-1] == f"... and {len(program) - 3:,} more"
    everything = listing(program, limit=None)
    assert len(everything) == len(program) + 2
    assert sum("kernel by_test" in row for row in everything) == 2
    down = listing(program, layer="down", limit=None)
    assert down[0] == 'down, kernel by_test, step 1, on("down"): MatMul'
    mine = listing(program, layer="down", core=1, limit=None)
    assert set(mine) < set(down)
    assert all("  core 1 " in row for row in mine[1:])
    assert listing(program, core=3, layer="down") == []


def test_choosing_what_is_not_there(rig, npu):
    program = rig.two_layers(npu)
    with pytest.raises(InputError, match="the program has no layer 'dwn'") as caught:
        listing(program, layer="dwn")
    assert caught.value.problems[0].hints == ("nearest: down", "allowed: down, up")
    with pytest.raises(InputError, match="the program has cores 0 to 3, not 4"):
        listing(program, core=4)


def test_peaks_count_what_is_alive_together(sketch):
    s = sketch.Sketch()
    x = s.tensor("x", (8, 8))
    a, b, c = (s.tile(Space.SRAM, 0, (8, 8), at=256 * n, name="abc"[n]) for n in range(3))
    s.tile(Space.SRAM, 0, (64, 64), at=1024, name="idle")
    s.copy(0, 0, a, x)
    s.vec(0, b, a)
    s.vec(0, c, b)
    memory = next(row for row in summary(s.finish()) if "sram" in row)
    assert memory == "    sram of core 0: 512 B in 4 buffers, 1 of them never used"


def test_instructions_without_a_layer():
    builder = Builder(1, 2)
    buffer = builder.buffer(Space.SRAM, 0, dtype("fp32"), 0, 64, "t")
    tile = builder.region(buffer, 0, (4, 4), (16, 4), 1)
    builder.emit(1, Kind.VECTOR, builder.expression(("immediate", 0)), tile, -1, -1, -1, -1)
    program = builder.finish()
    assert describe(program, 0) == "#0 vec t[4x4 fp32] = 0 (no layer, core 0 vector)"
    assert listing(program)[0] == "no layer"


# ---------------------------------------------------------------- operands


@pytest.mark.parametrize(
    ("shape", "steps", "at", "expected"),
    [
        ((512, 128), (4096, 1), 512 * 4096 + 256, "w[512:1024, 256:384]"),
        ((128, 512), (1, 4096), 512 * 4096 + 256, "w[512:1024, 256:384]"),  # seen across
        ((1, 128), (4096, 1), 7 * 4096, "w[7, 0:128]"),
        ((8,), (4096,), 3, "w[0:8, 3]"),  # a column
        ((2, 3, 4), (4096, 64, 1), 2 * 4096 + 5 * 64 + 8, "w[2:4, 5:8, 8:12]"),
        ((4, 8), (0, 1), 16, "w[16:24]"),  # a broadcast
        ((), (), 9, "w[1 fp32 from byte 36]"),
        ((3, 4), (6, 4), 1, "w[3x4 fp32 from byte 4]"),  # no rows and columns
        ((3, 4), (-8, 1), 64, "w[3x4 fp32 from byte 256]"),  # backwards
        ((3, 6), (8, 1), 4, "w[3x6 fp32 from byte 16]"),  # past the end of a row
    ],
)
def test_pieces_of_tensors(sketch, shape, steps, at, expected):
    s = sketch.Sketch()
    region = s.part(s.buffer(Space.DRAM, -1, (4096, 4096), name="w"), shape, steps, at=at)
    assert region_text(s.finish(), region) == expected


@pytest.mark.parametrize(
    ("core", "at", "columns", "expected"),
    [
        (0, 0, 8, "a[4x8 bf16]"),
        (1, 0, 8, "a@sram0[4x8 bf16]"),
        (0, 20, 4, "a[2:6, 4:8 bf16]"),
        (-1, 20, 4, "a@sram0[2:6, 4:8 bf16]"),
        (0, 20, 8, "a[4x8 bf16 from byte 40]"),  # rows that run into each other
    ],
)
def test_tiles(sketch, core, at, columns, expected):
    s = sketch.Sketch()
    buffer = s.buffer(Space.SRAM, 0, (16, 8), "bf16", name="a")
    region = s.part(buffer, (4, columns), (8, 1), at=at, item=2)
    assert region_text(s.finish(), region, core) == expected


def test_slots_are_numbered(sketch):
    s = sketch.Sketch()
    first = s.buffer(Space.SRAM, 0, (4, 4), name="a")
    others = [s.buffer(Space.SRAM, 0, (4, 4), at=64 * n, name="a", slot_of=first) for n in (1, 2)]
    alone = s.buffer(Space.SRAM, 0, (4, 4), at=512, name="b")
    regions = [s.part(b, (4, 4)) for b in (first, *others, alone)]
    program = s.finish()
    assert [region_text(program, r, 0).partition("[")[0] for r in regions] == [
        "a.0", "a.1", "a.2", "b",
    ]  # fmt: skip


def test_copies_are_named_by_where_they_lead(sketch):
    s = sketch.Sketch()
    x, far = s.tensor("x", (8, 8)), s.tile(Space.SHARED, -1, (8, 8), name="parts")
    a, b = s.tile(Space.SRAM, 0, (8, 8), name="a"), s.tile(Space.SRAM, 1, (8, 8), name="b")
    index = s.tile(Space.SRAM, 0, (8,), "int64", at=512, name="rows")
    for to, source, row in ((a, far, -1), (far, a, -1), (b, a, -1), (far, x, -1), (a, x, index)):
        s.copy(0, 0, to, source, row)
    program = s.finish()
    texts = [describe(program, i).partition(" (")[0].split(" ", 1)[1] for i in range(5)]
    assert texts == [
        "load a[8x8 fp32] <- parts@shared[0:8, 0:8]",
        "store parts@shared[0:8, 0:8] <- a[8x8 fp32]",
        "copy b@sram1[8x8 fp32] <- a[8x8 fp32]",
        "copy parts@shared[0:8, 0:8] <- x[0:8, 0:8]",
        "gather a[8x8 fp32] <- x[0:8, 0:8] at rows rows[1x8 int64]",
    ]


def test_products_say_how(sketch):
    s = sketch.Sketch()
    a, acc = s.tile(Space.SRAM, 0, (8, 8), "int8", name="a"), s.tile(Space.ACC, 0, (8, 8), "int32")
    s.mma(0, acc, a, a, zero_a=3)
    s.mma(0, acc, a, a, first=False, stationary_a=True)
    program = s.finish()
    assert describe(program, 0).startswith(
        "#0 mma t[8x8 int32] = (a[8x8 int8] - 3) @ a[8x8 int8] ("
    )
    assert describe(program, 1).startswith(
        "#1 mma t[8x8 int32] += a[8x8 int8] @ a[8x8 int8] (A stays, A as before, B as before) ("
    )


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (("source", 1), "y"),
        (("immediate", 1), "-inf"),
        (("add", ("mul", ("source", 0), ("immediate", 0)), ("source", 1)), "(x * 0.125) + y"),
        (("exp", ("sub", ("source", 0), ("source", 1))), "exp(x - y)"),
        (("neg", ("source", 0)), "-x"),
        (("neg", ("add", ("source", 0), ("source", 1))), "-(x + y)"),
        (("where", ("lt", ("source", 0), ("immediate", 0)), ("source", 1), ("source", 0)),
         "where(x < 0.125, y, x)"),
        (("row_sum", ("pow", ("source", 0), ("immediate", 2))), "row_sum(x ** 2)"),
    ],
)  # fmt: skip
def test_formulas(tree, expected):
    assert formula(tree, ["x", "y"], [0.125, float("-inf"), 2.0]) == expected


def test_operands_of_formulas_are_named_apart(sketch):
    """Short where a name is enough, in full where a buffer occurs twice or in part."""
    s = sketch.Sketch()
    a = s.buffer(Space.SRAM, 0, (8, 8), name="a")
    left, right = s.part(a, (8, 4), (8, 1)), s.part(a, (8, 4), (8, 1), at=4)
    out = s.tile(Space.SRAM, 0, (8, 4), at=256, name="out")
    s.vec(0, out, left, right)
    s.vec(0, out, out, right)
    program = s.finish()
    assert describe(program, 0).startswith(
        "#0 vec out[8x4 fp32] = a[8x4 fp32] + a[0:8, 4:8 fp32] (first"
    )
    assert describe(program, 1).startswith("#1 vec out[8x4 fp32] = out + a[0:8, 4:8 fp32] (first")


def test_numbers_of_a_formula_are_printed(sketch):
    s = sketch.Sketch()
    a = s.tile(Space.SRAM, 0, (8, 8), name="a")
    constants = s.builder.immediates((0.5, 3.0))
    tree = s.builder.expression(("add", ("mul", ("source", 0), ("immediate", 0)), ("immediate", 1)))
    s.emit(0, 1, Kind.VECTOR, tree, a, a, -1, -1, -1, constants)
    assert describe(s.finish(), 0).startswith("#0 vec a[8x8 fp32] = (a * 0.5) + 3 (")
