"""Views: named axes on memory, against numpy on arrays of addresses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.plan.axis import Axis


@st.composite
def shapes(draw):
    return tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))


def reshaped_without_copy(array, shape):
    """The array under another shape if that is a view of it, else None."""
    view = array.view()
    try:
        view.shape = shape
    except AttributeError:
        return None
    return view


@settings(max_examples=120)
@given(shapes(), st.data())
def test_any_way_to_see_a_tensor_is_numpy_s(staging, npu, shape, data):
    """Split, permute, fold, part, broadcast in any order: the same addresses in the same places."""
    s = staging.Stage(npu())
    names = [f"n{d}" for d in range(len(shape))]
    view = s.tensor("x", " ".join(names), *shape)
    array = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape) * 4
    fresh = iter(f"f{n}" for n in range(99))
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(names) - 1))
        action = data.draw(st.sampled_from(["split", "permute", "part", "fold", "broadcast"]))
        size = array.shape[at]
        if action == "split":
            outer = data.draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
            new = [next(fresh), next(fresh)]
            view = view.split(names[at], **{new[0]: -1 if size else 0, new[1]: outer})
            array = array.reshape(*array.shape[:at], size // outer, outer, *array.shape[at + 1 :])
            names[at : at + 1] = new
        elif action == "permute":
            order = data.draw(st.permutations(range(len(names))))
            names = [names[d] for d in order]
            view, array = view.permute(" ".join(names)), array.transpose(order)
        elif action == "part":
            start = data.draw(st.integers(0, size - 1))
            count = data.draw(st.integers(1, size - start))
            step = data.draw(st.sampled_from([1, 1, 2, -1]))
            cut = list(range(start, start + count))[::step]
            view = view.part(names[at], cut[0], len(cut), step)
            array = np.take(array, cut, axis=at)
            array = _as_view(array, view)
        elif action == "broadcast" and size == 1:
            wide = [3 if d == at else n for d, n in enumerate(array.shape)]
            view, array = view.broadcast(wide), np.broadcast_to(array, wide)
        elif action == "fold" and at + 1 < len(names):
            merged = (*array.shape[:at], size * array.shape[at + 1], *array.shape[at + 2 :])
            if reshaped_without_copy(_strided(view), merged) is not None:
                view = view.fold(f"{names[at]} {names[at + 1]}", (new := next(fresh)))
                array = array.reshape(merged)
                names[at : at + 2] = [new]
    assert view.names == tuple(names)
    assert np.array_equal(staging.addresses(view), array)


def _strided(view):
    """An array with the strides of a view, to ask numpy whether axes may be folded."""
    base = np.zeros(1, np.int32)
    return np.lib.stride_tricks.as_strided(base, view.sizes, view.strides)


def _as_view(array, view):
    return array.reshape(view.sizes)


def test_pieces_are_boxes_of_the_view(stage):
    s = stage()
    x = s.tensor("x", "m k", 6, 8)
    m, k = x.m.spans(4)[1], x.k.spans(3)[2]
    piece = x[m, k]
    assert (piece.shape, piece.strides, piece.offset) == ((2, 2), (32, 4), 4 * 32 + 6 * 4)
    assert x[m, 5].shape == (2,)
    assert x[5, k].strides == (4,)
    assert x[slice(1, 3), slice(None)].shape == (2, 8)
    assert x.whole().shape == (6, 8)
    assert x[m, k] is piece


def test_pieces_keep_the_memory_s_order(stage):
    """Of a transposed view the second dimension is the slow one."""
    x = stage().tensor("x", "m k", 6, 8).permute("k m")
    assert x[slice(0, 4), slice(0, 3)].order == (1, 0)


def test_a_stretched_dimension_has_one_position(stage):
    """It is loaded once and stretched by the vector unit."""
    x = stage().tensor("x", "m k", 6, 1).broadcast((6, 8))
    piece = x[slice(0, 2), slice(0, 8)]
    assert (piece.shape, piece.strides) == ((2, 1), (32 // 8, 0))
    assert not piece.empty
    assert x[slice(2, 2), slice(0, 8)].empty


def test_axes_name_dimensions_from_the_last_to_the_first(stage):
    x = stage().tensor("x", "a b c", 2, 3, 4)
    assert x.axes("m k").sizes == (6, 4)
    more = x.axes("p q r s")
    assert (more.sizes, more.strides) == ((1, 2, 3, 4), (0, 48, 16, 4))
    assert x.axes("all").sizes == (24,)


def test_axes_of_a_view_are_axes(stage):
    x = stage().tensor("x", "m k", 6, 8)
    assert isinstance(x.m, Axis)
    assert (x.m.size, x.k.size, x.by_name.keys()) == (6, 8, {"m", "k"})
    assert x.m is x.m


def test_split_knows_the_rest(stage):
    x = stage().tensor("x", "n", 24)
    assert x.split("n", a=-1, b=3, c=4).sizes == (2, 3, 4)


def test_axes_of_size_one_can_be_left_out_or_folded(stage):
    x = stage().tensor("x", "a b", 1, 5)
    assert x.without("a").names == ("b",)
    assert x.contiguous("a", "b")
    turned = stage().tensor("x", "a b", 4, 5).permute("b a")
    assert not turned.contiguous("b", "a")


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda x: x[0], ["x has axes m k", "2 indices are needed, found 1"]),
        (lambda x: x[slice(0, 7), 0], ["m[0:7] is outside the axis, which has 6"]),
        (lambda x: x[-1, 0], ["m[-1:0] is outside"]),
        (lambda x: x[0, 8], ["k[8:9] is outside the axis, which has 8"]),
        (lambda x: x[slice(0, 6, 2), 0], ["without a step", "part("]),
        (lambda x: x.split("m", a=4, b=2), ["m of 6 is not [4, 2]"]),
        (lambda x: x.permute("k m").fold("k m", "n"), ["not contiguous"]),
        (lambda x: x.permute("k m").axes("n"), ["not contiguous"]),
        (lambda x: x.without("m"), ["axis m has size 6, not 1"]),
        (lambda x: x.broadcast((6, 9)), ["(6, 8) does not broadcast to (6, 9)"]),
        (lambda x: x.permute("m j"), ["no axis 'j'", "allowed: k, m"]),
        (lambda x: x.split("n", a=2, b=3), ["no axis 'n'"]),
        (lambda x: x.part("mm", 0, 1), ["no axis 'mm'", "nearest: m"]),
        (lambda x: x.fold("m n", "a"), ["no axis 'n'"]),
    ],
)
def test_mistakes_are_told(stage, refusal, mistake, words):
    """Where (the line here), what was found, what there is."""
    x = stage().tensor("x", "m k", 6, 8)
    text = refusal(lambda: mistake(x))
    for word in ("test_view.py:", "x", *words):
        assert word in text, text


def test_an_axis_that_is_not_there_is_an_attribute_error(stage):
    """Python asks for attributes for reasons of its own, so that kind of error it must be."""
    x = stage().tensor("x", "m k", 6, 8)
    with pytest.raises(AttributeError, match=r"x has no axis 'j', only \('m', 'k'\)"):
        x.j  # noqa: B018
    assert not hasattr(x, "j")


def test_like_gives_a_tensor_the_axes_of_a_result(stage):
    """A bias along the last dimension, beside a result whose first two are one axis."""
    s = stage()
    result = s.tensor("y", "a b c", 2, 3, 4).axes("m n")
    bias = s.tensor("b", "c", 4).axes("a b c").broadcast((1, 1, 4))
    same = bias.like(result, (2, 3, 4))
    assert (same.names, same.strides) == (("m", "n"), (0, 4))
    column = s.tensor("c", "a b c", 2, 3, 1).like(result, (2, 3, 4))
    assert column.strides == (4, 0)


def test_like_refuses_what_one_axis_cannot_say(stage, refusal):
    """Stretched along one of two dimensions that are a single axis of the result."""
    s = stage()
    result = s.tensor("y", "a b c", 2, 3, 4).axes("m n")
    partly = s.tensor("p", "a b c", 2, 1, 4)
    text = refusal(lambda: partly.like(result, (2, 3, 4)))
    assert "p of shape (2, 1, 4) repeats along some of the dimensions [0, 1] of (2, 3, 4)" in text
