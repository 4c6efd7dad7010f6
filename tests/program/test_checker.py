"""Planted defects: each is found, named with operator, step, loop indices, and how to mend it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from npusim.core.errors import IllegalProgram
from npusim.program.checker import SHOWN, check, problems
from npusim.program.kinds import Kind, Space
from npusim.program.origin import describe


def refused(program, machine):
    """The problems of a program that is refused."""
    with pytest.raises(IllegalProgram) as caught:
        check(program, machine)
    return caught.value.problems


def only(program, machine):
    found = refused(program, machine)
    assert len(found) == 1, [str(p) for p in found]
    return found[0]


def stage(sketch, **options):
    """A sketch with x in DRAM, and tiles a, b in SRAM and c in the accumulators of core 0."""
    s = sketch.Sketch(**options)
    x = s.tensor("x", (8, 8))
    a, b = s.tile(Space.SRAM, 0, (8, 8), name="a"), s.tile(Space.SRAM, 0, (8, 8), at=256, name="b")
    return s, x, a, b, s.tile(Space.ACC, 0, (8, 8), name="c")


def test_legal_programs_pass(sketch, rig, npu):
    check(sketch.every_kind(), npu)
    check(rig.two_layers(npu), npu)
    check(sketch.Sketch().finish(), npu)


# ---------------------------------------------------------------- races


def test_a_dropped_edge(rig, sketch, npu):
    """The message has both instructions, everything one looks for, and the edge."""
    program = rig.two_layers(npu)
    mma = int(program.rows_of(Kind.MMA)[5])
    load = int(program.edges.of(mma)[0])
    problem, implied = refused(sketch.without_edge(program, load, mma), npu)
    assert problem.message.startswith("race on a.") and " in sram of core " in problem.message
    assert problem.message.endswith("are written and read in no order")
    assert implied.message.endswith("are written and written in no order")  # by the next load
    written, read, remedy = problem.hints
    assert written.startswith(f"written by #{load} load a.")
    assert "<- x[" in written
    assert read.startswith(f"read by #{mma} mma acc[64x64 fp32]")
    for line in (written, read):
        assert '(up, kernel by_test, step 1, on("up"), core ' in line
        assert " m=" in line and " n=" in line and " k=" in line
    assert remedy == f"let #{mma} wait for #{load}"


def test_every_dropped_edge_is_found(rig, sketch, npu):
    program = rig.two_layers(npu)
    for edge in sketch.edges(program)[::5]:
        assert problems(sketch.without_edge(program, *edge), npu), edge


def test_an_edge_to_the_wrong_instruction(rig, sketch, npu):
    program = rig.two_layers(npu)
    mma = int(program.rows_of(Kind.MMA)[0])
    load = int(program.edges.of(mma)[0])
    swapped = [
        (s, t) if (s, t) != (load, mma) else (load, mma + 1) for s, t in sketch.edges(program)
    ]
    found = refused(sketch.with_edges(program, swapped), npu)
    assert any(f"let #{mma} wait for #{load}" in p.hints for p in found)


def test_early_reuse_of_a_slot(rig, sketch, npu):
    """The load of the third tile overwrites the first, which the matrix unit still reads."""
    program = rig.two_layers(npu)
    first = program.rows_of(Kind.MMA)
    core = program.instructions.stream[first] == program.instructions.stream[first[0]]
    mma = int(first[core][0])
    load = next(t for s, t in sketch.edges(program) if s == mma and t > mma)
    found = refused(sketch.without_edge(program, mma, load), npu)
    (problem,) = [p for p in found if "are read and written in no order" in p.message]
    assert problem.hints[0].startswith(f"read by #{mma} mma acc")
    assert problem.hints[1].startswith(f"written by #{load} load a.0")
    assert problem.hints[2] == f"let #{load} wait for #{mma}"


def test_a_layer_that_does_not_wait_for_the_one_before(rig, sketch, npu):
    """DRAM written by one layer, read by the next, from other cores."""
    program = rig.two_layers(npu)
    layer = program.instructions.layer
    kept = [(s, t) for s, t in sketch.edges(program) if layer[s] == layer[t]]
    found = refused(sketch.with_edges(program, kept), npu)
    texts = [p for p in found if p.message.startswith("race on h in dram:")]
    assert texts and all("(up, " in p.hints[0] and "(down, " in p.hints[1] for p in texts)
    assert any("core 2 dma 3" in p.hints[0] and "core 1 dma 0" in p.hints[1] for p in texts)
    assert "more such pairs" in texts[0].hints[-1]


def test_two_cores_on_shared_sram(sketch, npu):
    s, x, a, *_ = stage(sketch, by_hand=True)
    there = s.tile(Space.SRAM, 1, (8, 8), name="there")
    both = s.tile(Space.SHARED, -1, (8, 8), name="both")
    load = s.copy(0, 0, a, x)
    s.wait(load)
    put = s.copy(0, 3, both, a)
    get = s.copy(1, 0, there, both)
    problem = only(s.finish(), npu)
    assert problem.message == "race on both in shared: 256 B are written and read in no order"
    assert problem.hints[:2] == (
        f"written by {describe(s.finish(), put)}",
        f"read by {describe(s.finish(), get)}",
    )


def test_the_dispatcher_orders_nothing(sketch, npu):
    """Handed out one after the other is not done one after the other."""
    s, x, a, b, _ = stage(sketch, by_hand=True)
    s.copy(0, 0, a, x)
    s.vec(0, b, a)
    assert "race on a in sram" in only(s.finish(), npu).message


def test_a_dma_queue_orders_no_bytes(sketch, npu):
    s, x, a, b, _ = stage(sketch, by_hand=True)
    s.copy(0, 0, a, x)
    s.copy(0, 0, b, a)
    problem = only(s.finish(), npu)
    assert problem.hints[2] == (
        "let #1 wait for #0: a DMA queue starts a descriptor before the one ahead has completed"
    )


def test_compute_units_work_in_order(sketch, npu):
    s, x, a, b, _ = stage(sketch, by_hand=True)
    s.vec(0, a)
    s.vec(0, b, a)
    s.vec(0, a, b)
    check(s.finish(), npu)


@pytest.mark.parametrize("told", [True, False])
def test_a_path_through_other_queues_is_an_order(sketch, npu, told):
    """load -> mma -> vec -> load again, each waiting for the one before only."""
    s, x, a, b, c = stage(sketch, by_hand=True)
    s.wait(s.copy(0, 0, a, x))
    s.wait(s.mma(0, c, a, a))
    leave = s.vec(0, b, c)
    if told:
        s.wait(leave)
    again = s.copy(0, 1, a, x)
    if told:
        check(s.finish(), npu)
    else:
        found = refused(s.finish(), npu)
        assert {p.hints[2] for p in found} == {f"let #{again} wait for #{n}" for n in (0, 1)}


def test_a_copy_onto_its_own_source(sketch, npu):
    s, x, a, *_ = stage(sketch)
    rows = s.buffer(Space.SRAM, 0, (8, 8), at=1024, name="rows")
    s.copy(0, 0, s.part(rows, (8, 8)), x)
    s.copy(0, 0, s.part(rows, (7, 8)), s.part(rows, (7, 8), at=8))
    problem = only(s.finish(), npu)
    assert (
        problem.message == "race on rows in sram of core 0: 192 B are read and written in no order"
    )
    assert problem.hints[2] == (
        "copy it elsewhere: within a descriptor, reads and writes have no order"
    )


def test_parts_that_interleave_without_touching(sketch, npu):
    """Even and odd columns of one tile from two queues: no byte in common, no alarm."""
    s, x, *_ = stage(sketch, by_hand=True)
    tile = s.buffer(Space.SRAM, 0, (8, 16), at=1024, name="tile")
    half = s.part(0, (8, 8))
    s.copy(0, 0, s.part(tile, (8, 8), (16, 2)), half)
    s.copy(0, 1, s.part(tile, (8, 8), (16, 2), at=1), half)
    check(s.finish(), npu)
    s.copy(0, 2, s.part(tile, (8, 4), (16, 1), at=4), s.part(0, (8, 4), (8, 1)))
    found = refused(s.finish(), npu)
    assert [p.message for p in found] == [
        "race on tile in sram of core 0: 64 B are written and written in no order"
    ] * 2


def test_views_that_touch_across(sketch, npu):
    """A row and a column of one tile share one element."""
    s, x, *_ = stage(sketch, by_hand=True)
    tile = s.buffer(Space.SRAM, 0, (8, 8), at=1024, name="tile")
    row, column = s.part(tile, (1, 8), (8, 1), at=16), s.part(tile, (8, 1), (8, 1), at=3)
    s.copy(0, 0, row, s.part(0, (1, 8), (8, 1)))
    s.copy(0, 1, column, s.part(0, (8, 1), (8, 1)))
    assert only(s.finish(), npu).message.endswith("4 B are written and written in no order")


def test_a_turned_tile_is_the_same_bytes(sketch, npu):
    s, x, *_ = stage(sketch, by_hand=True)
    tile = s.buffer(Space.SRAM, 0, (8, 8), at=1024, name="tile")
    upright, turned = s.part(tile, (8, 8)), s.part(tile, (8, 8), (1, 8))
    s.copy(0, 0, upright, x)
    s.vec(0, s.tile(Space.SRAM, 0, (8, 8), at=2048), turned)
    assert "256 B are written and read in no order" in only(s.finish(), npu).message


def test_a_tile_shown_before_it_is_there(sketch, npu):
    """A tile that two queues filled is complete after neither of them."""
    s, x, *_ = stage(sketch, by_hand=True)
    tile = s.buffer(Space.SRAM, 0, (8, 8), at=1024, name="tile")
    top, bottom = s.part(tile, (4, 8)), s.part(tile, (4, 8), at=32)
    s.copy(0, 0, top, s.part(0, (4, 8)))
    s.copy(0, 1, bottom, s.part(0, (4, 8), at=32))
    s.hold(s.tile(Space.TAP, -1, (8, 8), name="z"), s.part(tile, (8, 8)))
    problem = only(s.finish(), npu)
    assert "128 B are written and shown in no order" in problem.message


# ---------------------------------------------------------------- values


def test_rows_that_nobody_wrote(sketch, npu):
    s, x, a, b, c = stage(sketch)
    s.layer("rows", "m")
    s.at(4)
    s.copy(0, 0, s.part(1, (6, 8)), s.part(0, (6, 8)))
    use = s.vec(0, b, a)
    s.axes("m")
    problem = only(s.finish(), npu)
    assert problem.message == (
        "64 B of the 256 B of a[8x8 fp32] in sram of core 0 is read without a value"
    )
    assert problem.hints[0] == f"read by {describe(s.finish(), use)}"
    assert '(rows, kernel matmul, step 1, on("first"), core 0 vector, m=4)' in problem.hints[0]
    assert problem.hints[1].startswith("none of the 1 writes of the buffer that come before")
    assert problem.hints[2].startswith("the buffer is written by rows, kernel matmul, step 1")


def test_a_buffer_that_nobody_writes(sketch, npu):
    s, x, a, b, c = stage(sketch)
    s.vec(0, b, a)
    problem = only(s.finish(), npu)
    assert problem.message == "a[8x8 fp32] in sram of core 0 is read without a value"
    assert problem.hints[1] == "nothing writes a in sram of core 0"


def test_a_result_read_as_if_it_were_an_input(sketch, npu):
    s, x, a, *_ = stage(sketch)
    y = s.tensor("y", (8, 8), at=512, initial=False)
    s.copy(0, 0, a, y)
    assert only(s.finish(), npu).message == "y[0:8, 0:8] in dram is read without a value"


def test_a_stale_cache_row(sketch, npu):
    """The past fills 5 of 8 rows, one is appended, the product reads 7."""
    s = sketch.Sketch()
    cache = s.buffer(Space.DRAM, -1, (8, 8), name="present")
    s.builder.locate("past", s.part(cache, (5, 8)), True)
    new = s.tensor("new", (1, 8), at=512)
    tile = s.buffer(Space.SRAM, 0, (8, 8), name="k")
    s.copy(0, 3, s.part(cache, (1, 8), at=40), new)
    s.copy(0, 0, s.part(tile, (7, 8)), s.part(cache, (7, 8)))
    problem = only(s.finish(), npu)
    assert (
        problem.message == "32 B of the 224 B of present[0:7, 0:8] in dram is read without a value"
    )
    fixed = sketch.Sketch()
    cache = fixed.buffer(Space.DRAM, -1, (8, 8), name="present")
    fixed.builder.locate("past", fixed.part(cache, (5, 8)), True)
    new = fixed.tensor("new", (1, 8), at=512)
    tile = fixed.buffer(Space.SRAM, 0, (8, 8), name="k")
    fixed.copy(0, 3, fixed.part(cache, (1, 8), at=40), new)
    fixed.copy(0, 0, fixed.part(tile, (6, 8)), fixed.part(cache, (6, 8)))
    check(fixed.finish(), npu)


def test_adding_to_accumulators_that_hold_nothing(sketch, npu):
    s, x, a, b, c = stage(sketch)
    s.copy(0, 0, a, x)
    s.mma(0, c, a, a, first=False)
    assert only(s.finish(), npu).message == "c[8x8 fp32] in acc of core 0 is read without a value"


def test_a_buffer_placed_over_one_that_is_in_use(sketch, npu):
    """The second buffer spoils the first, in an order that the program fixes."""
    s, x, a, b, c = stage(sketch, by_hand=True)
    over = s.tile(Space.SRAM, 0, (8, 8), at=128, name="over")
    s.wait(s.copy(0, 0, a, x))
    spoil = s.vec(0, over)
    s.wait(spoil)
    use = s.mma(0, c, a, a)
    problem = only(s.finish(), npu)
    assert problem.message == (
        "128 B of the 256 B of a[8x8 fp32] in sram of core 0 is read after over in sram of core 0 "
        "has overwritten it"
    )
    assert problem.hints[0].startswith(f"overwritten by #{spoil} vec over[8x8 fp32]")
    assert problem.hints[1].startswith(f"read by #{use} mma c[8x8 fp32]")
    assert problem.hints[2].startswith("both lie at the same bytes of sram of core 0")


def test_overlapping_buffers_in_no_order(sketch, npu):
    s, x, a, b, c = stage(sketch)
    over = s.tile(Space.SRAM, 0, (8, 8), at=128, name="over")
    s.copy(0, 0, a, x)
    s.vec(0, over)
    s.mma(0, c, a, a)
    assert only(s.finish(), npu).message == (
        "race on over in sram of core 0 and a in sram of core 0, which overlap: 128 B are written "
        "and read in no order"
    )


def test_buffers_may_follow_each_other_in_the_same_bytes(sketch, npu):
    s, x, a, b, c = stage(sketch)
    over = s.tile(Space.SRAM, 0, (8, 8), at=128, name="over")
    s.copy(0, 0, a, x)
    s.mma(0, c, a, a)
    s.copy(0, 1, over, x)
    s.mma(0, c, over, over)
    check(s.finish(), npu)


def test_an_initial_tensor_overwritten_before_it_is_read(sketch, npu):
    s, x, a, b, c = stage(sketch)
    s.tensor("w", (8, 8), at=1024)
    scratch = s.tile(Space.DRAM, -1, (8, 8), at=1024 + 128, name="scratch")
    s.copy(0, 0, a, x)
    s.copy(0, 3, scratch, a)
    s.copy(0, 0, b, s.builder.tensor_region("w"))
    found = refused(s.finish(), npu)
    assert [p.message for p in found] == [
        "128 B of the 256 B of w[0:8, 0:8] in dram is read after scratch in dram has overwritten it"
    ]


# ---------------------------------------------------------------- semaphores, many problems


def test_too_many_semaphores(rig, npu, variant):
    program = rig.two_layers(npu)
    check(program, variant("core.sequencer.semaphores=16"))
    problem = refused(program, variant("core.sequencer.semaphores=6"))[0]
    assert problem.message.startswith("core 0 synchronises ")
    assert "npu_a has 6 semaphores per core" in problem.message
    assert "core 0 dma 0 -> core 0 matrix" in problem.hints[0]


def test_one_defect_in_a_loop_is_told_once(sketch, npu):
    s, x, a, b, c = stage(sketch, by_hand=True)
    s.layer("loop", "k")
    for k in range(12):
        s.at(k)
        s.copy(0, 0, a, x)
        s.vec(0, b, a)
    s.axes("k")
    found = refused(s.finish(), npu)
    assert len(found) == 3  # written and read, read and written, written and written
    assert all("more such pairs" in p.hints[-1] for p in found)
    assert "k=0" in found[0].hints[0]


def test_all_problems_at_once_but_no_flood(sketch, npu):
    s = sketch.Sketch()
    tiles = [s.tile(Space.SRAM, 0, (8, 8), at=256 * n, name=f"t{n}") for n in range(SHOWN + 9)]
    for number, tile in enumerate(tiles):
        s.layer(f"layer {number}")
        s.vec(0, tile, tile)
    found = refused(s.finish(), npu)
    assert len(found) == SHOWN + 1
    assert found[-1].message == "and 9 more"
    assert [p.message.split()[0] for p in found[:3]] == [f"t{n}[8x8" for n in range(3)]


def test_the_order_of_problems_is_the_same_every_time(rig, sketch, npu):
    program = sketch.with_edges(rig.two_layers(npu), [])
    texts = {"\n".join(map(str, problems(program, npu))) for _ in range(3)}
    assert len(texts) == 1
    assert len(problems(program, npu)) > SHOWN


def test_nothing_is_decided_on_columns_that_do_not_fit(sketch, npu):
    program = sketch.every_kind()
    copies = replace(program.copies, source=program.copies.source + 1000)
    found = refused(replace(program, copies=copies), npu)
    assert all("there is no region" in p.message for p in found)
