"""Mistakes in finished programs: an edge, a region, an operand, a place in the order changed."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from npusim import GraphBuilder, Grid, Plan, fuse, on
from npusim.core.dtypes import names
from npusim.program.checker import problems
from npusim.program.kinds import Kind, Space, Why

COPY, MMA, VECTOR = Kind.COPY, Kind.MMA, Kind.VECTOR


@pytest.fixture(scope="session")
def product(bench):
    """70x130 by 130x65 on two cores, tiles of 32, and its program."""
    graph = bench.single("MatMul", [(70, 130), (130, 65)])
    plan = bench.plan("matmul", m=32, n=32, k=32, grid=Grid(m=2))
    return graph, bench.lower(graph, plan)


@pytest.fixture(scope="session")
def split(bench):
    """The same with K cut over two cores, whose sums meet."""
    graph = bench.single("MatMul", [(70, 130), (130, 65)])
    return graph, bench.lower(graph, bench.plan("matmul", m=32, n=32, k=32, grid=Grid(k=2)))


@pytest.fixture(scope="session")
def layers(bench):
    """A product, then Relu of it: the second layer reads what the first wrote to DRAM."""
    builder = GraphBuilder("layers")
    a, b = builder.input("a", (70, 130), "fp32"), builder.input("b", (130, 65), "fp32")
    product = builder.add("MatMul", a, b, name="product")
    graph = builder.build(builder.add("Relu", product, name="y"))
    kernel = bench.kernel
    steps = [
        on("y").use(kernel["elementwise"](rows=8, columns=512)),
        on("product").use(kernel["matmul"](m=32, n=32, k=32, grid=Grid(m=2))),
    ]
    return graph, bench.lower(graph, Plan("two", steps=steps))


@pytest.fixture(scope="session")
def attention(bench):
    """A token's attention, and a reader of the cache that it appended to."""
    builder = GraphBuilder("cache")
    shapes = {"q": (1, 4, 3, 16), "k": (1, 2, 3, 16), "v": (1, 2, 3, 16)}
    qkv = [builder.input(name, shape, "fp32") for name, shape in shapes.items()]
    past = [builder.input(name, (1, 2, 20, 16), "fp32") for name in ("past_k", "past_v")]
    outputs = builder.add(
        "Attention", *qkv, "", *past, name="y", outputs=["y", "keys", "values"], is_causal=1
    )
    reader = builder.add("Neg", outputs[1], name="reader")
    graph = builder.build([*outputs, reader])
    steps = [
        on("y").use(bench.kernel["flash"](q=16, kv=16, heads=2)),
        on("reader").use(bench.kernel["elementwise"](rows=8, columns=64)),
    ]
    return graph, bench.lower(graph, Plan("cache", steps=steps))


def found_by(bench, plant, made, program, by, *says):
    """The wrong program is refused in words that say where and why."""
    graph, lowered = made
    assert plant.find(bench, graph, lowered) is None
    found = plant.find(bench, graph, replace(lowered, program=program))
    assert found is not None, "nobody found it"
    assert found.by == by, f"by {found.by}: {found.text}"
    assert re.search(r"kernel \w+, step \d, on\(", found.text), found.text
    assert plant.PLACE.search(found.text), found.text
    for text in says:
        assert text in found.text, found.text
    return found.text


# ---------------------------------------------------------------- edges

#: What an edge is there for: whose program, between what, and how messages call the deeds.
EDGES = {
    "load before product": (
        "product", COPY, MMA, {"why": Why.READ_AFTER_WRITE}, "written and read",
    ),
    "product before what leaves": ("product", MMA, VECTOR, {}, "written and read"),
    "what leaves before its store": ("product", VECTOR, COPY, {"into": Space.SRAM}, "written"),
    "a slot used before it is loaded again": (
        "product", MMA, COPY, {"why": Why.WRITE_AFTER_READ}, "read and written",
    ),
    "sums read before the next ones": (
        "product", VECTOR, MMA, {"why": Why.WRITE_AFTER_READ}, "read and written",
    ),
    "a store done before its tile is made again": (
        "product", COPY, VECTOR, {"why": Why.WRITE_AFTER_READ}, "read and written",
    ),
    "a part of a sum on another core": ("split", COPY, COPY, {"across": True}, "written and read"),
    "a layer's result in DRAM": ("layers", COPY, COPY, {"layers": True}, "written and read"),
    "the appended cache": ("attention", COPY, COPY, {"layers": True}, "keys"),
    "scores before weights": ("attention", MMA, VECTOR, {"into": Space.ACC}, "written and read"),
    "weights before the second product": (
        "attention", VECTOR, MMA, {"why": Why.READ_AFTER_WRITE}, "written and read",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_missing_edge(bench, plant, request, name):
    whose, source, target, wanted, deed = EDGES[name]
    made = request.getfixturevalue(whose)
    program = made[1].program
    dropped = plant.edges(program, source, target, **wanted)
    for edge in (dropped[0], dropped[len(dropped) // 2], dropped[-1]):
        text = found_by(
            bench, plant, made, plant.without_edges(program, [edge]), "checker", "race on", deed
        )
        assert re.search(r"let #\d+ wait for #\d+", text)


@pytest.mark.parametrize("whose", ["product", "split", "layers", "attention"])
def test_every_single_edge_is_missed(bench, plant, request, whose):
    """There is no edge in these programs that could be left out."""
    graph, lowered = request.getfixturevalue(whose)
    count = len(lowered.program.edges.source)
    for edge in range(0, count, max(count // 60, 1)):
        program = plant.without_edges(lowered.program, [edge])
        assert problems(program, bench.machine), f"edge {edge}"


def test_two_edges_swapped(bench, plant, product):
    program = product[1].program
    loads = plant.edges(program, COPY, MMA, why=Why.READ_AFTER_WRITE)
    wrong = plant.swapped(program, "edges", "source", loads[0], loads[-1])
    found_by(bench, plant, product, wrong, "checker")


def test_circle_in_the_order(bench, plant, product):
    program = product[1].program
    edge = plant.edges(program, COPY, MMA, why=Why.READ_AFTER_WRITE)[0]
    user = np.repeat(np.arange(len(program)), np.diff(program.edges.ptr))[edge]
    wrong = plant.with_edge(program, int(user), int(program.edges.source[edge]))
    text = found_by(bench, plant, product, wrong, "checker", "wait in a circle")
    assert f"waits for #{user}" in text


def test_an_instruction_that_waits_for_itself(bench, plant, product):
    wrong = plant.with_edge(product[1].program, 7, 7)
    graph, lowered = product
    found = plant.find(bench, graph, replace(lowered, program=wrong))
    assert found is not None and found.by == "checker" and "#7" in found.text


# ---------------------------------------------------------------- memory


def first(program, kind, nth=0):
    """Row in its table of the nth instruction of a kind."""
    return int(program.instructions.row[program.rows_of(kind)[nth]])


def test_region_beyond_its_buffer(bench, plant, product):
    program = product[1].program
    region = int(program.copies.destination[0])
    wrong = plant.with_cell(program, "regions", "offset", region, 4096)
    found_by(bench, plant, product, wrong, "checker", "reaches bytes", "of a buffer of")


def test_region_one_element_further(bench, plant, product):
    """Inside the tensor's buffer, but the next column."""
    program = product[1].program
    region = int(program.copies.source[0])
    offset = int(program.regions.offset[region]) + 4
    wrong = plant.with_cell(program, "regions", "offset", region, offset)
    found_by(bench, plant, product, wrong, "comparison")


def test_two_buffers_at_the_same_bytes(bench, plant, product):
    program = product[1].program
    buffers = program.buffers
    mine = np.flatnonzero((buffers.space == Space.SRAM) & (buffers.core == 0))
    a, b = (int(mine[[buffers.names[i] for i in mine].index(name)]) for name in ("a", "b"))
    wrong = plant.with_cell(program, "buffers", "offset", b, int(buffers.offset[a]))
    found_by(bench, plant, product, wrong, "checker", "which overlap")


def test_buffer_beyond_the_memory(bench, plant, product):
    program = product[1].program
    sram = int(np.flatnonzero(program.buffers.space == Space.SRAM)[0])
    size = bench.machine.core.sram.size_bytes
    wrong = plant.with_cell(program, "buffers", "offset", sram, size - 64)
    found_by(bench, plant, product, wrong, "checker", "which has 4 MiB")


def test_early_use_of_the_other_slot(bench, plant, product):
    """A product that reads the slot which is being loaded for the next one."""
    program = product[1].program
    mma = program.mmas
    row = first(program, MMA)
    following = next(r for r in mma.a.tolist() if r != mma.a[row])
    wrong = plant.with_cell(program, "mmas", "a", row, following)
    found_by(bench, plant, product, wrong, "checker")


# ---------------------------------------------------------------- operands, order, units


def test_operand_of_the_step_before(bench, plant, product):
    """The slot of B that the next load is about to overwrite."""
    program = product[1].program
    row = first(program, MMA, 1)
    wrong = plant.with_cell(program, "mmas", "b", row, int(program.mmas.b[row - 1]))
    found_by(bench, plant, product, wrong, "checker", "race on b.0", "k=")


def test_operands_exchanged(bench, plant):
    graph = bench.single("MatMul", [(32, 32), (32, 32)])
    lowered = bench.lower(graph, bench.plan("matmul", m=32, n=32, k=32, grid=Grid()))
    a, b = (int(getattr(lowered.program.mmas, name)[0]) for name in ("a", "b"))
    wrong = plant.with_cell(lowered.program, "mmas", "a", 0, b)
    wrong = plant.with_cell(wrong, "mmas", "b", 0, a)
    found_by(bench, plant, (graph, lowered), wrong, "comparison", "got", "expected")


def test_first_missing(bench, plant, product):
    program = product[1].program
    starts = np.flatnonzero(program.mmas.first)
    wrong = plant.with_cell(program, "mmas", "first", int(starts[0]), 0)
    found_by(bench, plant, product, wrong, "checker", "is read without a value")


def test_first_once_too_often(bench, plant, product):
    program = product[1].program
    goes_on = int(np.flatnonzero(program.mmas.first == 0)[0])
    wrong = plant.with_cell(program, "mmas", "first", goes_on, 1)
    found_by(bench, plant, product, wrong, "comparison")


def test_two_products_in_the_wrong_order(bench, plant, product):
    """The one that starts a sum comes behind the one that goes on with it."""
    program = product[1].program
    start = int(np.flatnonzero(program.mmas.first)[0])
    wrong = plant.swapped(program, "mmas", "first", start, start + 1)
    found_by(bench, plant, product, wrong, "checker", "is read without a value")


def test_load_into_another_tile(bench, plant, product):
    program = product[1].program
    loads = [int(r) for r in program.instructions.row[program.rows_of(COPY)]]
    to = program.copies.destination
    a, b = next((x, y) for x in loads for y in loads if _alike(program, to[x], to[y]) and x < y)
    wrong = plant.with_cell(program, "copies", "destination", a, int(to[b]))
    found_by(bench, plant, product, wrong, "checker")


def _alike(program, first_region, second_region):
    regions, space = program.regions, program.buffers.space
    if first_region == second_region or space[regions.buffer[first_region]] != Space.SRAM:
        return False
    same = (regions.sizes[first_region] == regions.sizes[second_region]).all()
    return bool(same) and space[regions.buffer[second_region]] == Space.SRAM


@pytest.mark.parametrize("kind", [MMA, VECTOR, COPY])
def test_instruction_on_another_unit(bench, plant, product, kind):
    program = product[1].program
    who = int(program.rows_of(kind)[3])
    stream = int(program.instructions.stream[who])
    unit = program.streams[stream].unit
    core = program.streams[stream].core
    other = next(n for n, s in enumerate(program.streams) if s.core == core and s.unit is not unit)
    wrong = plant.with_cell(program, "instructions", "stream", who, other)
    found_by(bench, plant, product, wrong, "checker", "executes it")


def test_product_on_another_core(bench, plant, product):
    program = product[1].program
    who = int(program.rows_of(MMA)[3])
    stream = int(program.instructions.stream[who])
    per_core = 2 + bench.machine.core.dma.queues
    other = stream + per_core if stream < per_core else stream - per_core
    wrong = plant.with_cell(program, "instructions", "stream", who, other)
    found_by(bench, plant, product, wrong, "checker", "must be in")


def test_copy_that_turns_one_format_into_another(bench, plant, product):
    program = product[1].program
    region = int(program.copies.source[0])
    wrong = plant.with_cell(program, "regions", "dtype", region, names().index("bf16"))
    found_by(bench, plant, product, wrong, "checker", "bf16")


def test_rounded_towards_zero(bench, plant):
    """A quantization that cuts off instead of rounding to the nearest."""
    graph = bench.single("QuantizeLinear", [(13, 40), np.float32(0.02), np.int8(3)], kind="fp32")
    lowered = bench.lower(graph, bench.plan("elementwise", rows=1, columns=64))
    program = lowered.program
    cut = tuple(_renamed(tree, "rint", "whole") for tree in program.expressions)
    assert cut != program.expressions
    wrong = replace(program, expressions=cut)
    found_by(bench, plant, (graph, lowered), wrong, "comparison", "'y'")


def _renamed(tree, old, new):
    if not isinstance(tree, tuple):
        return tree
    return tuple(new if part == old else _renamed(part, old, new) for part in tree)


def test_shown_tile_of_another_place(bench, plant):
    """A tap that receives a tile of the sums elsewhere than it belongs."""
    builder = GraphBuilder("shown")
    a, b = builder.input("a", (64, 64), "fp32"), builder.input("b", (64, 64), "fp32")
    product = builder.add("MatMul", a, b, name="y")
    graph = builder.build(builder.add("Relu", product, name="z"))
    use = bench.kernel["matmul"](m=32, n=32, k=32, grid=Grid())
    lowered = bench.lower(graph, Plan("shown", steps=[fuse("y", "z").use(use)]))
    wrong = plant.swapped(lowered.program, "holds", "tap", 0, 2)
    found = plant.find(bench, graph, replace(lowered, program=wrong))
    assert found is not None and "step 1, fuse(" in found.text
