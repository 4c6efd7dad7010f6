"""What attention kernels share: head layouts, caches, masks, and which keys are visited."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from npusim import Axis, Operation, Piece, Span, Tile, Tiles, View, vector
from npusim.graph.ops.attention_shape import AttentionShape, attention_shape
from npusim.plan.place import grows_into

from ._reuse import each_distinct

#: Formal names of what is appended, of the cache before, and of the cache after.
_CACHES = (("K", "past_key", "present_key"), ("V", "past_value", "present_value"))


def sizes(op: Operation) -> AttentionShape:
    """The sizes of an Attention operator."""
    tensors = op.graph.operand_tensors(op.node)
    return attention_shape(op.node, [t.shape if t else None for t in tensors])


def heads_of(view: View, groups: int, group: int) -> View:
    """Q or Y with axes (b, g, h, s, d): head h of key-value group g."""
    if len(view.sizes) == 4:
        return view.axes("b gh s d").split("gh", g=groups, h=group)
    split = view.axes("b s ghd").split("ghd", g=groups, h=group, d=-1)
    return split.permute("b g h s d")


def keys_of(view: View, groups: int) -> View:
    """K, V or a cache with axes (b, g, s, d)."""
    if len(view.sizes) == 4:
        return view.axes("b g s d")
    return view.axes("b s gd").split("gd", g=groups, d=-1).permute("b g s d")


class KeyTiles:
    """The past keys and the new ones, cut into tiles; which of them some queries see."""

    def __init__(self, a: AttentionShape, size: int) -> None:
        self.a, self.size = a, size
        self.parts = {"past": Axis("past", 0, a.past), "new": Axis("new", 0, a.keys - a.past)}

    def start(self, part: str) -> int:
        """Position of the first key of a part among all keys."""
        return 0 if part == "past" else self.a.past

    def seen(self, queries: Span) -> Iterator[tuple[str, Span]]:
        """Tiles of which some query of the span sees a key, masks aside."""
        first, stop = self._bounds(queries)
        for part, axis in self.parts.items():
            for tile in axis.spans(self.size):
                start = self.start(part)
                if start + tile.start < stop and start + tile.stop > first:
                    yield part, tile

    def _bounds(self, queries: Span) -> tuple[int, int]:
        a = self.a
        low, high = queries.start + a.past, queries.stop - 1 + a.past
        first = max(low - a.left, 0) if a.left >= 0 else 0
        return first, min(high + a.right + 1, a.keys) if a.right >= 0 else a.keys


class Keys:
    """Keys or values: `keys[part, b, g, tile]` is a piece of the past or of the new ones."""

    def __init__(self, op: Operation, formal: str, past: str, groups: int) -> None:
        self.parts = {"new": keys_of(op.view(op.given(formal).name), groups)}
        if op.tensor(past) is not None:
            self.parts["past"] = keys_of(op.view(op.given(past).name), groups)
        self.dtype = self.parts["new"].dtype

    def __getitem__(self, key: tuple[str, int, int, Span]) -> Piece:
        """Piece [keys, size] of one part."""
        part, b, g, tile = key
        return self.parts[part][b, g, tile, slice(None)]


def append_to_cache(t: Tiles, op: Operation, a: AttentionShape) -> None:
    """New keys and values go behind the past; a past that lies elsewhere is copied first."""
    for formal, past, present in _CACHES:
        if op.tensor(present) is None:
            continue
        cache = keys_of(op.view(op.given(present).name), a.kv_heads)
        keys = Keys(op, formal, past, a.kv_heads)
        for _, b, g in t.deal(cache.b, cache.g):
            for part, view in keys.parts.items():
                start = 0 if part == "past" else a.past
                if part == "new" or view.buffer != cache.buffer:
                    target = cache[b, g, slice(start, start + view.s.size), slice(None)]
                    t.copy(target, view[b, g, slice(None), slice(None)])


class Mask:
    """Soft cap and masks of a tile of scores [heads, queries, keys]."""

    def __init__(
        self, t: Tiles, op: Operation, tiles: KeyTiles, heads: int, queries: int, keys: int
    ) -> None:
        self.t, self.a, self.tiles = t, tiles.a, tiles
        self.view = mask_view(op, tiles.a) if op.tensor("attn_mask") is not None else None
        if self.view is not None:
            full = zip((heads, queries, keys), self.view.strides[2:], strict=True)
            shape = [size if stride else 1 for size, stride in full]
            self.room = t.sram(self.view.dtype, *shape, slots=2, name="mask")

    def applied(
        self, scores: Tile, b: int, g: int, h: Span, i: Span, part: str, j: Span
    ) -> tuple[Tile, float]:
        """The scores after soft cap and masks, and the scale that is still to be applied."""
        a, t, scale = self.a, self.t, self.a.scale
        start, row = self.tiles.start(part) + j.start, i.start + self.a.past
        if a.softcap:
            scores = t.vec(scores, np.tanh(scores * (scale / a.softcap)) * a.softcap)
            scale = 1.0
        if self.view is not None:
            mask = t.load(self.room, self.view[b, g, h, i, slice(start, start + j.size)])
            if self.view.dtype.name == "bool":
                scores = t.vec(scores, vector.where(mask, scores, -np.inf))
            else:
                scores, scale = t.vec(scores, scores * scale + mask), 1.0
        if a.right >= 0 and start + j.size - 1 > row + a.right:
            scores = t.vec(scores, vector.causal(scores, row + a.right - start))
        if a.left >= 0 and start < row + i.size - 1 - a.left:
            scores = t.vec(scores, vector.since(scores, row - a.left - start))
        return scores, scale


def mask_view(op: Operation, a: AttentionShape) -> View:
    """The mask with axes (b, g, h, s, keys), broadcast to all heads and queries."""
    view = op.attn_mask.axes("b gh s keys")
    parts = {"g": a.kv_heads, "h": a.group} if view.gh.size > 1 else {"g": 1, "h": 1}
    return view.split("gh", **parts).broadcast(
        (a.batch, a.kv_heads, a.group, a.queries, view.keys.size)
    )


class MaskShape:
    """How large an attention's mask is, for claims; without a mask nothing."""

    def __init__(self, op: Operation, a: AttentionShape) -> None:
        mask = op.tensor("attn_mask")
        self.itemsize = mask.dtype.itemsize if mask is not None else 0
        shape = (1,) * 4 if mask is None else (*(1,) * (4 - len(mask.shape)), *mask.shape)
        self._heads, self._queries, self._a = shape[1] > 1, shape[2] > 1, a

    def tile(self, heads: Any, queries: Any, keys: Any) -> Any:
        """Elements that go with a tile of scores."""
        return np.where(self._heads, heads, 1) * np.where(self._queries, queries, 1) * keys

    def elements(self, blocks_of_heads: Any, seen: "Visits") -> Any:
        """Elements that all cores load: the part of each tile of scores."""
        each = seen.pairs if self._queries else seen.keys
        heads = self._a.group if self._heads else blocks_of_heads
        return self._a.batch * self._a.kv_heads * heads * each


@dataclass(frozen=True)
class Visits:
    """What the queries of one head visit, in arrays over tile sizes.

    `pairs` of query and key, `rounds` tiles of keys and the `keys` in them, by `blocks` of queries.
    """

    pairs: Any
    rounds: Any
    keys: Any
    blocks: Any


def visited(a: AttentionShape, q: Any, kv: Any) -> Visits:
    """What a head visits when its queries and keys are cut into tiles of q and kv."""
    return Visits(*each_distinct(lambda rows, keys: _visit(a, rows, keys), q, kv).T)


def _visit(a: AttentionShape, q: int, kv: int) -> tuple[int, int, int, int]:
    keys, blocks = KeyTiles(a, kv), Axis("s", 0, a.queries).spans(q)
    seen = [(i, j) for i in blocks for _, j in keys.seen(i)]
    pairs = sum(i.size * j.size for i, j in seen)
    return pairs, len(seen), sum(j.size for _, j in seen), len(blocks)


def cache_bytes(op: Operation) -> int:
    """Bytes that `append_to_cache` copies."""
    total = 0
    for new, past, present in _CACHES:
        if op.tensor(present) is not None:
            total += op.bytes(new)
            before = op.tensor(past)
            if before is not None and grows_into(op.graph, before.name) is None:
                total += before.size_bytes
    return total
