"""First and last use of buffers, and operands that stay in the array."""

from __future__ import annotations

from npusim.program.kinds import Space
from npusim.program.uses import NAMED_KEPT, OTHER_KEPT


def test_first_and_last_use(sketch):
    s = sketch.Sketch()
    x = s.tensor("x", (8, 8))
    a, b = s.tile(Space.SRAM, 0, (8, 8), name="a"), s.tile(Space.SRAM, 0, (8, 8), at=256, name="b")
    s.tile(Space.SRAM, 0, (8, 8), at=512, name="never")
    s.copy(0, 0, a, x)
    s.vec(0, b, a)
    s.vec(0, b, b)
    program = s.finish()
    assert program.buffers.first_use.tolist() == [0, 0, 1, -1]
    assert program.buffers.last_use.tolist() == [0, 1, 2, -1]


def products(sketch):
    """A sketch with two stationary tiles and two moving ones, all with values."""
    s = sketch.Sketch()
    x = s.tensor("x", (8, 8))
    tiles = [s.tile(Space.SRAM, 0, (8, 8), at=256 * n, name=f"t{n}") for n in range(4)]
    for tile in tiles:
        s.copy(0, 0, tile, x)
    return s, x, s.tile(Space.ACC, 0, (8, 8), name="c"), tiles


def test_what_is_held_stays_until_something_else_comes(sketch):
    s, x, c, (a, b, p, q) = products(sketch)
    for left, right in ((p, a), (q, a), (q, b), (p, a), (p, a)):
        s.mma(0, c, left, right)
    kept = s.finish().mmas.kept.tolist()
    assert kept == [0, NAMED_KEPT, OTHER_KEPT, 0, NAMED_KEPT | OTHER_KEPT]


def test_what_is_written_anew_is_loaded_anew(sketch):
    s, x, c, (a, b, p, q) = products(sketch)
    s.mma(0, c, p, a)
    s.copy(0, 0, a, x)
    s.mma(0, c, q, a)
    s.copy(0, 0, b, x)
    s.mma(0, c, p, a)
    assert s.finish().mmas.kept.tolist() == [0, 0, NAMED_KEPT]


def test_either_operand_may_be_named(sketch):
    s, x, c, (a, b, p, q) = products(sketch)
    s.mma(0, c, a, p, stationary_a=True)
    s.mma(0, c, a, q, stationary_a=True)
    assert s.finish().mmas.kept.tolist() == [0, NAMED_KEPT]


def test_each_core_has_an_array_of_its_own(sketch):
    s, x, c, (a, b, p, q) = products(sketch)
    there = [s.tile(Space.SRAM, 1, (8, 8), at=256 * n, name=f"u{n}") for n in range(2)]
    for tile in there:
        s.copy(1, 0, tile, x)
    other = s.tile(Space.ACC, 1, (8, 8), name="c")
    s.mma(0, c, p, a)
    s.mma(1, other, there[0], there[1])
    s.mma(0, c, q, a)
    assert s.finish().mmas.kept.tolist() == [0, 0, NAMED_KEPT]
