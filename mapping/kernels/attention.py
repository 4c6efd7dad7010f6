"""Flash attention: online softmax over tiles of keys, so that scores never leave the core."""

from typing import Any

import numpy as np

from npusim import (
    Axis,
    Claim,
    Hardware,
    Operation,
    Span,
    Tile,
    Tiles,
    Unsuited,
    kernel,
    pow2,
    vector,
)
from npusim.graph.ops.attention_shape import AttentionShape

from ._attention import (
    Keys,
    KeyTiles,
    Mask,
    MaskShape,
    append_to_cache,
    cache_bytes,
    heads_of,
    sizes,
    visited,
)

#: The lowest fp32 number: a running maximum from which minus infinity can be subtracted.
_LOWEST = float(np.finfo(np.float32).min)


@kernel(
    "Attention",
    space={"q": pow2(16, 512), "kv": pow2(128, 1024), "heads": pow2(1, 8), "acc_slots": (1, 2)},
)
def flash(
    t: Tiles,
    op: Operation,
    *,
    q: int = 128,
    kv: int = 512,
    heads: int = 1,
    slots: int = 2,
    acc_slots: int = 1,
) -> None:
    """Causal, windows, GQA, mask, soft cap and KV cache from the ONNX attributes.

    `heads` query heads of one group share each tile of keys and values.
    """
    a = sizes(op)
    q, kv, heads = min(q, a.queries), min(kv, max(a.keys, 1)), min(heads, a.group)
    append_to_cache(t, op, a)
    work = _Flash(t, op, a, (heads, q, kv), slots, acc_slots)

    def weight(b: int, g: int, h: Span, i: Span) -> float:
        return h.size * i.size * sum(j.size for _, j in work.tiles.seen(i))

    Q = work.Q
    for _, b, g, h, i in t.deal(Q.b, Q.g, Q.h.spans(heads), Q.s.spans(q), weigh=weight):
        work.run(b, g, h, i)


class _Flash:
    """Buffers of one attention, and the loop over the keys that some queries see."""

    def __init__(
        self,
        t: Tiles,
        op: Operation,
        a: AttentionShape,
        tile: tuple[int, int, int],
        slots: int,
        acc_slots: int,
    ) -> None:
        heads, q, kv = tile
        self.t, self.a, self.early = t, a, acc_slots > 1
        self.Q, self.Y = (heads_of(view, a.kv_heads, a.group) for view in (op.Q, op.Y))
        self.K = Keys(op, "K", "past_key", a.kv_heads)
        self.V = Keys(op, "V", "past_value", a.kv_heads)
        kind, total = self.Q.dtype, op.accumulate(self.Q.dtype)
        self.q = t.sram(kind, heads, q, a.head_dim, slots=slots, name="q")
        self.k = t.sram(self.K.dtype, kv, a.head_dim, slots=slots, name="k")
        self.v = t.sram(self.V.dtype, kv, a.value_dim, slots=slots, name="v")
        self.p = t.sram(kind, heads, q, kv, slots=slots, name="p")
        self.s = t.acc(total, heads, q, kv, slots=acc_slots, name="s")
        self.pv = t.acc(total, heads, q, a.value_dim, slots=acc_slots, name="pv")
        self.o = t.sram("fp32", heads, q, a.value_dim, name="o")
        column = ("top", "new", "total")
        self.top, self.new, self.total = (t.sram("fp32", heads, q, 1, name=n) for n in column)
        self.fade = t.sram("fp32", heads, q, 1, slots=2, name="fade")
        self.out = t.sram(self.Y.dtype, heads, q, a.value_dim, slots=slots, name="out")
        self.tiles = KeyTiles(a, kv)
        self.mask = Mask(t, op, self.tiles, heads, q, kv)

    def run(self, b: int, g: int, h: Span, i: Span) -> None:
        """All keys that queries i of heads h see; the next scores form while these are used."""
        t, everything = self.t, slice(None)
        queries = t.load(self.q, self.Q[b, g, h, i, everything])
        t.vec(t.take(self.top, h.size, i.size, 1), _LOWEST)
        t.vec(t.take(self.total, h.size, i.size, 1), 0.0)
        o = t.vec(t.take(self.o, h.size, i.size, self.a.value_dim), 0.0)
        visits = list(self.tiles.seen(i))
        ahead = [self.scores(queries, b, g, *visit) for visit in visits[:1]]
        behind: tuple[Tile, Tile] | None = None
        for n in Axis("kv", 0, len(visits), self.Q.loops):
            (part, j), following, scores = visits[n], visits[n + 1 : n + 2], ahead.pop()
            if self.early:
                ahead = [self.scores(queries, b, g, *visit) for visit in following]
            scores, scale = self.mask.applied(scores, b, g, h, i, part, j)
            weights, fade = self.weights(scores, scale)
            if behind is not None:  # while these weights are multiplied
                t.vec(o, o * behind[0] + behind[1])
            sums = t.take(self.pv, h.size, i.size, self.a.value_dim)
            t.mma(sums, weights, t.load(self.v, self.V[part, b, g, j]), first=True)
            behind = fade, sums
            if not self.early:
                ahead = [self.scores(queries, b, g, *visit) for visit in following]
        if behind is not None:
            t.vec(o, o * behind[0] + behind[1])
        total = t.tile(self.total)
        result = t.vec(self.out, vector.where(total > 0.0, o / total, 0.0))
        t.store(self.Y[b, g, h, i, everything], result)

    def scores(self, queries: Tile, b: int, g: int, part: str, j: Span) -> Tile:
        """Q K^T of one tile of keys."""
        scores = self.t.take(self.s, *queries.shape[:2], j.size)
        keys = self.t.load(self.k, self.K[part, b, g, j])
        return self.t.mma(scores, queries, keys, transpose_b=True, first=True)

    def weights(self, scores: Tile, scale: float) -> tuple[Tile, Tile]:
        """Exponentials under the new maximum, and by what earlier sums shrink."""
        t, top, new, total = self.t, self.top, self.new, self.total
        t.vec(new, np.maximum(top, scores.max("row")))
        weights = t.vec(self.p, np.exp((scores - new) * scale))  # rounded to P's dtype here
        fade = t.vec(self.fade, np.exp((top - new) * scale))
        t.vec(total, total * fade + weights.sum("row"))
        t.vec(top, new)
        return weights, fade


@flash.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    a, dtype = sizes(op), op.given("Q").dtype
    if not hw.runs(dtype.name):
        raise Unsuited(f"the matrix unit of {hw.machine.name} has no {dtype}")
    if op.tensor("qk_matmul_output") or op.tensor("nonpad_kv_seqlen"):
        raise Unsuited("flash attention neither returns scores nor takes lengths per batch")
    q, kv = np.minimum(c.q, a.queries), np.minimum(c.kv, max(a.keys, 1))
    heads, item, out = np.minimum(c.heads, a.group), dtype.itemsize, op.given("Y").dtype.itemsize
    seen, blocks_of_heads = visited(a, q, kv), -(-a.group // heads)
    groups = a.batch * a.kv_heads * blocks_of_heads
    work = np.maximum(groups * seen.blocks, 1)
    share = groups * -(-work // hw.cores) / work  # rounds of the busiest core, per head group
    rows, rounds = heads * q, seen.rounds
    products = hw.matrix_cycles(rows, kv, a.head_dim, dtype.name)
    products = products + hw.matrix_cycles(rows, a.value_dim, kv, dtype.name)
    masks = (3 if a.softcap else 0) + (2 if op.tensor("attn_mask") else 0)
    simple = (4 + masks) * heads * seen.pairs + rounds * rows * (2 * a.value_dim + 8)
    simple = simple + seen.blocks * rows * 3 * a.value_dim
    divisions = seen.blocks * rows * a.value_dim
    named = {"exp": heads * seen.pairs, "div": divisions}
    vector_cycles = hw.vector_cycles(simple, 0, 0, rounds * 6, named) * share
    row = (a.head_dim + a.value_dim) * item / 2
    new_run = row if a.packed else np.minimum(kv, max(a.keys - a.past, 1)) * row
    run = hw.mean_run((a.past, np.minimum(kv, max(a.past, 1)) * row), (a.keys - a.past, new_run))
    mask = MaskShape(op, a)
    masked = mask.elements(blocks_of_heads, seen) * mask.itemsize
    appended = cache_bytes(op)
    return Claim(
        matrix_cycles=rounds * products * share,
        vector_cycles=vector_cycles,
        exposed_cycles=hw.start_cycles((rows + kv) * a.head_dim * item, run)
        + np.where(c.acc_slots == 1, rounds * share, 1)
        * (products + 2 * hw.matrix_overhead_cycles())
        + hw.store_cycles(rows * a.value_dim * item),
        dram_read_bytes=op.bytes("Q")
        + groups * seen.keys * (a.head_dim + a.value_dim) * item
        + masked
        + appended,
        dram_write_bytes=op.bytes("Y") + appended,
        run_bytes=run,
        sram_bytes=hw.sram_room(
            (c.slots, rows * a.head_dim * item),
            (c.slots, kv * a.head_dim * item),
            (c.slots, kv * a.value_dim * item),
            (c.slots, rows * kv * item),
            (1, rows * a.value_dim * 4),
            (5, rows * 4),
            (c.slots, rows * a.value_dim * out),
            (2, mask.tile(heads, q, kv) * mask.itemsize),
        ),
        acc_bytes=hw.acc_room((c.acc_slots, rows * kv * 4), (c.acc_slots, rows * a.value_dim * 4)),
        rounds=rounds * share,
        slots=c.slots,
    )
