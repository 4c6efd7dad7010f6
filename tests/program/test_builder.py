"""What the builder collects, and that it says the same thing once."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.core.dtypes import dtype, names
from npusim.core.errors import InputError
from npusim.program import builder as built
from npusim.program.builder import INSTRUCTION_BYTES, Builder
from npusim.program.kinds import LOOPS, RANK, VECTOR_IMMEDIATES, Kind, Space, Unit
from npusim.program.program import Stream


def test_every_core_has_its_streams_and_the_host_comes_last():
    builder = Builder(2, 3)
    assert builder.streams[:5] == (
        Stream(0, Unit.MATRIX, 0),
        Stream(0, Unit.VECTOR, 0),
        *(Stream(0, Unit.DMA, queue) for queue in range(3)),
    )
    assert len(builder.streams) == 2 * 5 + 1
    shown = [str(builder.streams[n]) for n in (5, 8, 10)]
    assert shown == ["core 1 matrix", "core 1 dma 1", "host"]


def test_equal_regions_are_one(sketch):
    s = sketch.Sketch()
    a, b = (s.buffer(Space.SRAM, 0, (8, 8)) for _ in range(2))
    first = s.part(a, (4, 8))
    assert s.part(a, (4, 8)) == first
    others = [
        s.part(b, (4, 8)),
        s.part(a, (4, 8), at=8),
        s.part(a, (4, 7)),
        s.part(a, (4, 8), (1, 4)),
        s.part(a, (4, 8), split=0),
    ]
    assert len({first, *others}) == 6
    table = s.finish().regions
    assert len(table) == 6
    assert table.sizes[first].tolist() == [1, 1, 1, 4, 8]
    assert table.strides[first].tolist() == [0, 0, 0, 32, 4]
    assert (table.rows[first], table.columns[first], table.elements[first]) == (4, 8, 32)
    assert (table.rows[others[-1]], table.columns[others[-1]]) == (1, 32)


def test_a_region_has_at_most_five_dimensions(sketch):
    s = sketch.Sketch()
    buffer = s.buffer(Space.SRAM, 0, (64,))
    s.part(buffer, (2,) * RANK)
    with pytest.raises(ValueError, match="at most 5 dimensions, not 6"):
        s.part(buffer, (2,) * (RANK + 1))


def test_expressions_and_immediates_are_numbered_once():
    builder = Builder(1, 2)
    tree = ("add", ("source", 0), ("immediate", 0))
    assert [builder.expression(t) for t in (tree, ("source", 0), tree)] == [0, 1, 0]
    assert builder.immediates(()) == 0
    assert [builder.immediates(v) for v in ((2.0,), (3.0,), (2.0, 0.0))] == [1, 2, 1]


def test_loop_indices_belong_to_what_follows(sketch):
    s = sketch.Sketch()
    t = s.tile(Space.SRAM, 0, (4, 4))
    outside = s.vec(0, t)
    s.at(3)
    one = s.vec(0, t, t)
    digits = (3, 1, 4, 1, 5, 9, 2, 6)
    s.at(*digits)
    two = s.vec(0, t, t)
    s.axes("m", "n")
    program = s.finish()
    points = program.instructions.point
    assert points[outside] == -1
    assert program.points[points[one]].tolist() == [3] + [-1] * (LOOPS - 1)
    assert program.points[points[two]].tolist() == list(digits[:LOOPS])
    assert program.layers[0].axes == ("m", "n")


def test_layers_begin_where_they_are_declared(sketch):
    s = sketch.Sketch()
    t = s.tile(Space.SRAM, 0, (4, 4))
    s.vec(0, t)
    s.layer("second")
    s.layer("third")
    s.vec(0, t, t)
    assert s.finish().instructions.layer.tolist() == [0, 2]


def test_tensors_and_taps_are_found_by_name(sketch):
    s = sketch.Sketch()
    x = s.tensor("x", (4, 4))
    y = s.tensor("y", (4, 4), at=16, initial=False)
    tap = s.tile(Space.TAP, -1, (4, 4), name="z")
    s.builder.tap("z", tap)
    program = s.finish()
    assert s.builder.tensor_region("y") == y
    assert (program.tensors, program.taps) == ({"x": x, "y": y}, {"z": tap})
    assert program.initial == ("x",)


def test_by_hand_without_instructions_is_nothing(sketch):
    s = sketch.Sketch()
    s.builder.by_hand(s.builder.count)
    s.vec(0, s.tile(Space.SRAM, 0, (4, 4)))
    assert len(s.finish()) == 1


def test_waiting_for_what_never_comes_is_refused(sketch):
    s = sketch.Sketch()
    t = s.tile(Space.SRAM, 0, (4, 4))
    s.wait(7)
    s.vec(0, t)
    with pytest.raises(InputError, match="wait for event 7: the program has events 0 to 0"):
        s.finish()


def test_an_empty_program(sketch):
    program = sketch.Sketch().finish()
    assert len(program) == len(program.regions) == len(program.buffers) == 0
    assert program.hash == sketch.Sketch().finish().hash


def test_every_kind_lands_in_its_table(sketch):
    s = sketch.Sketch()
    x, table = s.tensor("x", (8, 4)), s.tensor("table", (9, 4), at=128)
    rows = s.tensor("rows", (8,), "int64", at=512)
    a, b = (s.tile(Space.SRAM, 1, (8, 4), at=at, name="ab"[at > 0]) for at in (0, 128))
    index = s.tile(Space.SRAM, 1, (8,), "int64", at=256)
    acc = s.tile(Space.ACC, 1, (8, 8), name="acc")
    tap = s.tile(Space.TAP, -1, (8, 8), name="tap")
    turned = s.part(1 + 1 + 1 + 1, (4, 8), (1, 4), split=1)
    done = [
        s.copy(1, 0, a, x),
        s.copy(1, 1, index, rows),
        s.copy(1, 0, b, table, index),
        s.mma(1, acc, a, turned, first=True),
        s.mma(1, acc, a, turned, first=False, zero_a=3, stationary_a=True),
    ]
    s.hold(tap, acc)
    done.append(s.vec(1, acc, acc, acc, tree=("mul", ("source", 0), ("source", 1))))
    done.append(s.host("op", [x, table], [rows]))
    p = s.finish()
    assert done == list(range(7))
    kinds = [Kind.COPY] * 3 + [Kind.MMA] * 2 + [Kind.VECTOR, Kind.HOST]
    assert p.instructions.kind.tolist() == kinds
    assert p.instructions.row.tolist() == [0, 1, 2, 0, 1, 0, 0]
    assert p.rows_of(Kind.MMA).tolist() == [3, 4]
    assert (p.copies.destination.tolist(), p.copies.source.tolist()) == (
        [a, index, b],
        [x, rows, table],
    )
    assert p.copies.index.tolist() == [-1, -1, index]
    assert (p.mmas.first.tolist(), p.mmas.stationary.tolist()) == ([1, 0], [0, 1])
    assert (p.mmas.zero_a.tolist(), p.mmas.zero_b.tolist()) == ([0, 3], [0, 0])
    assert p.vectors.source.tolist() == [[acc, acc, -1, -1]]
    assert p.vectors.immediate.shape == (1, VECTOR_IMMEDIATES)
    assert p.hosts.node == ("op",)
    assert (p.hosts.read.tolist(), p.hosts.write.tolist()) == ([x, table], [rows])
    assert (p.holds.after.tolist(), p.holds.tap.tolist(), p.holds.source.tolist()) == (
        [4], [tap], [acc],
    )  # fmt: skip
    assert [names()[code] for code in p.regions.dtype[[x, index]]] == ["fp32", "int64"]
    assert dtype("fp32").itemsize * p.regions.elements[x] == p.buffers.size_bytes[0]
    assert p.space_of(np.array([x, a, acc])).tolist() == [Space.DRAM, Space.SRAM, Space.ACC]


def test_a_program_that_could_never_be_timed_ends_while_it_is_written(monkeypatch):
    monkeypatch.setattr(built, "MAX_INSTRUCTIONS", 3)
    builder = Builder(1, 2)
    for _ in range(3):
        builder.emit(0, Kind.MMA, 0, 0, 0)
    with pytest.raises(InputError, match="the program has more than 3 instructions"):
        builder.emit(0, Kind.MMA, 0, 0, 0)


def test_a_program_that_this_computer_cannot_hold_is_refused(monkeypatch):
    builder = Builder(1, 2)
    for _ in range(3):
        builder.emit(0, Kind.MMA, 0, 0, 0)
    monkeypatch.setattr(
        "npusim.core.host_memory.available_bytes", lambda: 3 * INSTRUCTION_BYTES - 1
    )
    with pytest.raises(InputError, match="a program of 3 instructions needs 1.5 KiB of memory"):
        builder.finish()
