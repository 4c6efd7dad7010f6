"""What every kind reads and writes, reads first."""

from __future__ import annotations

from npusim.program.accesses import accesses
from npusim.program.kinds import Space


def test_reads_and_writes_of_every_kind(sketch):
    s = sketch.Sketch()
    x, table = s.tensor("x", (8, 8)), s.tensor("table", (9, 8), at=512)
    a, index = s.tile(Space.SRAM, 0, (8, 8)), s.tile(Space.SRAM, 0, (8,), "int64", at=512)
    acc = s.tile(Space.ACC, 0, (8, 8))
    s.copy(0, 0, a, x)
    s.copy(0, 0, a, table, index)
    s.mma(0, acc, a, a, first=True)
    s.mma(0, acc, a, a, first=False)
    s.vec(0, a, acc, a)
    s.vec(0, a)
    s.host("h", [x, table], [x])
    s.host("nothing", [], [])
    table_of = accesses(s.finish())
    found = [
        [
            (int(table_of.region[k]), int(table_of.write[k]))
            for k in range(table_of.ptr[i], table_of.ptr[i + 1])
        ]
        for i in range(8)
    ]
    assert found == [
        [(x, 0), (a, 1)],
        [(table, 0), (index, 0), (a, 1)],
        [(a, 0), (a, 0), (acc, 1)],
        [(a, 0), (a, 0), (acc, 0), (acc, 1)],
        [(acc, 0), (a, 0), (a, 1)],
        [(a, 1)],
        [(x, 0), (table, 0), (x, 1)],
        [],
    ]


def test_an_empty_program(sketch):
    table = accesses(sketch.Sketch().finish())
    assert (table.ptr.tolist(), table.region.tolist()) == ([0], [])
