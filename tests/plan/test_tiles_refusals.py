"""How the verbs refuse: at the kernel's line, what was found and what is allowed."""

from __future__ import annotations

import linecache

import pytest

from npusim.plan import vector


def wrong_dtype(s):
    s.t.load(s.t.sram("bf16", 4, 8), s.tensor("x", "m k", 4, 8).whole())


def wrong_copy(s):
    x = s.tensor("x", "m k", 4, 8)
    s.t.copy(x[slice(0, 2), slice(0, 8)], x.whole())


def wrong_inner(s):
    a, b = s.t.take(s.t.sram("bf16", 4, 8), 4, 8), s.t.take(s.t.sram("bf16", 9, 4), 9, 4)
    s.t.mma(s.t.acc("fp32", 4, 4), a, b, first=True)


def wrong_target(s):
    a, b = s.t.take(s.t.sram("bf16", 4, 8), 4, 8), s.t.take(s.t.sram("bf16", 8, 4), 8, 4)
    s.t.mma(s.t.take(s.t.sram("fp32", 4, 4), 4, 4), a, b, first=True)


def wrong_size(s):
    a, b = s.t.take(s.t.sram("bf16", 4, 8), 4, 8), s.t.take(s.t.sram("bf16", 8, 4), 8, 4)
    s.t.mma(s.t.take(s.t.acc("fp32", 4, 5), 4, 5), a, b, first=True)


def mixed_floats(s):
    a, b = s.t.take(s.t.sram("bf16", 4, 8), 4, 8), s.t.take(s.t.sram("fp16", 8, 4), 8, 4)
    s.t.mma(s.t.acc("fp32", 4, 4), a, b, first=True)


def too_much(s):
    tiles = [s.t.take(s.t.sram("fp32", 4, 8), 4, 8) for _ in range(5)]
    s.t.vec(s.t.sram("fp32", 4, 8), sum(tiles[1:], tiles[0]))


def misfit(s):
    tile = s.t.take(s.t.sram("fp32", 4, 8), 4, 8)
    s.t.vec(s.t.take(s.t.sram("fp32", 4, 7), 4, 7), tile)


def no_tile(s):
    s.t.vec(s.t.sram("fp32", 4, 8), vector.erf(1.0))
    s.t.tile(vector.erf(1.0))


def wrong_hold(s):
    tile = s.t.take(s.t.sram("fp32", 4, 8), 4, 8)
    s.t.holds(s.tensor("x", "m k", 4, 9).whole(), tile)


def wrong_order(s):
    with s.t.order("somehow"):
        pass


def unwritten(s):
    s.t.vec(s.t.sram("fp32", 4, 8), s.t.sram("fp32", 4, 8, name="empty") + 1)


REFUSALS = {
    wrong_dtype: ["a copy moves bytes: fp32 cannot become bf16 on the way", "t.vec"],
    wrong_copy: ["copy of (4, 8) to (2, 8)"],
    wrong_inner: ["mma: ", "[4x8 bf16] has 8 columns", "[9x4 bf16] 9 rows"],
    wrong_target: ["mma writes accumulators, not ", "t.acc(...)"],
    wrong_size: ["mma: the product is 4x4, the target ", "[4x5 fp32]"],
    mixed_floats: ["mma: operands of different dtypes", "bf16", "fp16"],
    too_much: ["one vector instruction takes 4 tiles and 6 numbers, found 5 and 0", "split the"],
    misfit: ["vec: a value of (4, 8) does not fit", "[4x7 fp32]"],
    no_tile: ["a tile or buffer is needed here, found Expression"],
    wrong_hold: ["holds: ", "[4x8 fp32] is not a piece of shape (4, 9)"],
    wrong_order: ["order is \"by hand\" or left to the buffers, found 'somehow'"],
    unwritten: ["buffer empty is read before anything was written to it"],
}


@pytest.mark.parametrize("kernel", REFUSALS, ids=lambda kernel: kernel.__name__)
def test_a_verb_refuses_at_the_kernel_s_line(stage, refusal, kernel):
    """file:line of the call in the kernel, what was found and what is allowed."""
    text = refusal(lambda: kernel(stage()))
    line = int(text.partition("test_tiles_refusals.py:")[2].partition(":")[0])
    source = linecache.getline(__file__, line)
    assert kernel.__code__.co_firstlineno < line and "s.t." in source
    for word in REFUSALS[kernel]:
        assert word in text, text
