"""Mistakes in attention: scale, softmax, masks, groups, and the cache."""

from __future__ import annotations

import pytest

CAUSAL = ("Attention", [(1, 4, 37, 16), *[(1, 2, 37, 16)] * 2], {"is_causal": 1})
MASKED = ("Attention", [(1, 4, 37, 16), *[(1, 2, 41, 16)] * 2, (1, 4, 37, 41)])
CACHED = (
    "Attention",
    [(1, 4, 3, 16), *[(1, 2, 3, 16)] * 2, None, *[(1, 2, 20, 16)] * 2],
    {"is_causal": 1, "outputs": 3},
)
TILES = {"q": 16, "kv": 16, "heads": 1}

SCALED = ("attention.py", "t.vec(self.p, np.exp((scores - new) * scale))")
FADED = (
    "attention.py",
    "                t.vec(o, o * behind[0] + behind[1])\n            sums = ",
)
SEEN = ("_attention.py", "vector.causal(scores, row + a.right - start)")
MASK = ("_attention.py", "self.view[b, g, h, i, slice(start, start + j.size)]")
START = ("_attention.py", 'start = 0 if part == "past" else a.past')
COPY = (
    "_attention.py",
    "target = cache[b, g, slice(start, start + view.s.size), slice(None)]\n"
    "                    t.copy(target, view[b, g, slice(None), slice(None)])",
)

#: name -> graph, choices, (file, right), wrong, what else is expected
MISTAKES = {
    "scores not scaled": (CAUSAL, TILES, SCALED, "t.vec(self.p, np.exp(scores - new))", {}),
    "earlier sums not faded": (CAUSAL, TILES, FADED, FADED[1].replace(" * behind[0]", ""), {}),
    "earlier weights not faded": (
        CAUSAL, TILES, ("attention.py", "t.vec(total, total * fade + "), "t.vec(total, total + ",
        {},
    ),
    "the maximum of the tile before kept": (
        CAUSAL, TILES, ("attention.py", "        t.vec(top, new)\n"), "", {},
    ),
    "one key too many for every query": (
        CAUSAL, TILES, SEEN, "vector.causal(scores, row + a.right - start + 1)", {},
    ),
    "one key too few for every query": (
        CAUSAL, TILES, SEEN, "vector.causal(scores, row + a.right - start - 1)", {},
    ),
    "a tile of keys skipped of which one is seen": (
        CAUSAL, {**TILES, "kv": 15}, ("_attention.py", "min(high + a.right + 1, a.keys)"),
        "min(high + a.right, a.keys)", {},
    ),
    "the mask of the group's first head for all": (
        MASKED, TILES, MASK, MASK[1].replace("g, h, i", "g, slice(0, h.size), i"), {},
    ),
    "the mask of the first keys for all": (
        MASKED, TILES, MASK, "self.view[b, g, h, i, slice(0, j.size)]", {},
    ),
    "query heads dealt to groups in turn": (
        CAUSAL, TILES,
        ("_attention.py", 'view.axes("b gh s d").split("gh", g=groups, h=group)\n    split'),
        'view.axes("b gh s d").split("gh", h=group, g=groups).permute("b g h s d")\n    split', {},
    ),
    "keys taken for values": (
        CAUSAL, TILES, ("attention.py", "t.load(self.v, self.V[part, b, g, j])"),
        "t.load(self.v, self.K[part, b, g, j])", {},
    ),
    "the cache never appended to": (
        CACHED, TILES, ("attention.py", "    append_to_cache(t, op, a)\n"), "",
        {"says": ("'y.1'", "never written, the first at [0, 0, 20, 0]"), "placed": False},
    ),
    "the last new row not appended": (
        CACHED, TILES, COPY,
        "target = cache[b, g, slice(start, start + view.s.size - 1), slice(None)]\n"
        "                    t.copy(target, view[b, g, slice(0, view.s.size - 1), slice(None)])",
        {"says": ("never written, the first at [0, 0, 22, 0]",), "placed": False},
    ),
    "new rows written over the last past one": (
        CACHED, TILES, START, START[1] + " - 1", {"says": ("has been overwritten by",)},
    ),
    "the last past row spoilt beside a right append": (
        CACHED, TILES, COPY,
        "target = cache[b, g, slice(start - 1, start), slice(None)]\n"
        "                    t.copy(target, view[b, g, slice(0, 1), slice(None)])\n"
        "                    " + COPY[1],
        {"says": ("input 'x4'[0, 0, 19, 0] has been overwritten by", "copy y.1")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_is_found(bench, plant, tmp_path, name):
    graph, *more = MISTAKES[name]
    plant.assert_found(bench, tmp_path, plant.planted(graph, "flash", *more))
