"""Flash attention: online softmax over tiles of keys, so that scores never leave the core."""

from typing import Any

import numpy as np

from npusim import Claim, Hardware, Operation, Span, Tile, Tiles, Unsuited, kernel, pow2, vector

from ._attention import KeyTiles, Keys, Mask, append_to_cache, heads_of, sizes, visited

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
    Q, Y = heads_of(op.Q, a.kv_heads, a.group), heads_of(op.Y, a.kv_heads, a.group)
    K, V = Keys(op, "K", "past_key", a.kv_heads), Keys(op, "V", "past_value", a.kv_heads)
    append_to_cache(t, op, a)
    q, kv, heads = min(q, a.queries), min(kv, max(a.keys, 1)), min(heads, a.group)
    x = t.sram(Q.dtype, heads, q, a.head_dim, slots=slots, name="q")
    k = t.sram(K.dtype, kv, a.head_dim, slots=slots, name="k")
    v = t.sram(V.dtype, kv, a.value_dim, slots=slots, name="v")
    p = t.sram(Q.dtype, heads, q, kv, slots=slots, name="p")
    s = t.acc(op.accumulate(Q.dtype), heads, q, kv, slots=acc_slots, name="s")
    pv = t.acc(op.accumulate(Q.dtype), heads, q, a.value_dim, slots=acc_slots, name="pv")
    o = t.sram("fp32", heads, q, a.value_dim, name="o")
    top, new, total = (t.sram("fp32", heads, q, 1, name=n) for n in ("top", "new", "total"))
    fade = t.sram("fp32", heads, q, 1, slots=2, name="fade")
    out = t.sram(Y.dtype, heads, q, a.value_dim, slots=slots, name="out")
    tiles = KeyTiles(a, kv)
    mask = Mask(t, op, tiles, heads, q, kv)

    def weight(b: int, g: int, h: Span, i: Span) -> float:
        return h.size * i.size * sum(j.size for _, j in tiles.seen(i))

    for _, b, g, h, i in t.deal(Q.b, Q.g, Q.h.spans(heads), Q.s.spans(q), weigh=weight):
        queries = t.load(x, Q[b, g, h, i, slice(None)])
        t.vec(t.take(top, h.size, i.size, 1), _LOWEST)
        t.vec(t.take(total, h.size, i.size, 1), 0.0)
        t.vec(t.take(o, h.size, i.size, a.value_dim), 0.0)
        visits = list(tiles.seen(i))

        def product(visit: int) -> Tile:
            part, j = visits[visit]
            scores = t.take(s, h.size, i.size, j.size)
            keys = t.load(k, K[part, b, g, j])
            return t.mma(scores, queries, keys, transpose_b=True, first=True)

        ahead = product(0) if visits else None
        for visit, (part, j) in enumerate(visits):
            scores, more = ahead, visit + 1 < len(visits)
            if acc_slots > 1 and more:  # the next scores form while these are normalized
                ahead = product(visit + 1)
            scores, scale = mask.applied(scores, b, g, h, i, part, j)
            t.vec(new, np.maximum(top, scores.max("row")))
            weights = t.vec(p, np.exp((scores - new) * scale))  # rounded to P's dtype here
            faded = t.vec(fade, np.exp((top - new) * scale))
            t.vec(total, total * fade + weights.sum("row"))
            t.vec(top, new)
            if visit > 0:  # the sums of the visit before, while these weights are multiplied
                t.vec(o, o * before + sums)
            before, sums = faded, t.take(pv, h.size, i.size, a.value_dim)
            t.mma(sums, weights, t.load(v, V[part, b, g, j]), first=True)
            if acc_slots == 1 and more:
                ahead = product(visit + 1)
        if visits:
            t.vec(o, o * before + sums)
        t.store(Y[b, g, h, i, slice(None)], t.vec(out, vector.where(total > 0.0, o / total, 0.0)))


@flash.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    a, dtype = sizes(op), op.given("Q").dtype
    if not hw.runs(dtype.name):
        raise Unsuited(f"the matrix unit of {hw.machine.name} has no {dtype}")
    if op.tensor("qk_matmul_output") or op.tensor("nonpad_kv_seqlen"):
        raise Unsuited("flash attention neither returns scores nor takes lengths per batch")
    q, kv = np.minimum(c.q, a.queries), np.minimum(c.kv, max(a.keys, 1))
    heads, item = np.minimum(c.heads, a.group), dtype.itemsize
    pairs, rounds, blocks = visited(a, q, kv)
    groups = a.batch * a.kv_heads * -(-a.group // heads)
    work = np.maximum(groups * blocks, 1)
    share = groups * -(-work // hw.cores) / work  # rounds of the busiest core, per head group
    rows = heads * q
    products = hw.matrix_cycles(rows, kv, a.head_dim, dtype.name)
    products = products + hw.matrix_cycles(rows, a.value_dim, kv, dtype.name)
    masks = (3 if a.softcap else 0) + (2 if op.tensor("attn_mask") else 0)
    simple = (4 + masks) * heads * pairs + rounds * rows * (2 * a.value_dim + 8)
    simple = simple + blocks * rows * 3 * a.value_dim
    doubled = rows * (a.head_dim + kv + a.value_dim) + kv * (a.head_dim + a.value_dim)
    divisions = blocks * rows * a.value_dim
    vector_cycles = hw.vector_cycles(simple, divisions, heads * pairs, rounds * 6) * share
    packed_run = (a.head_dim if a.packed else kv * a.head_dim) * item
    return Claim(
        matrix_cycles=rounds * products * share,
        vector_cycles=vector_cycles,
        exposed_cycles=hw.start_cycles((rows + kv) * a.head_dim * item, packed_run)
        + np.where(c.acc_slots == 1, rounds * share, 1)
        * (products + 2 * hw.matrix_overhead_cycles())
        + hw.store_cycles(rows * a.value_dim * item),
        dram_read_bytes=op.bytes("Q")
        + groups * rounds * kv * (a.head_dim + a.value_dim) * item
        + op.bytes("attn_mask"),
        dram_write_bytes=op.bytes("Y"),
        run_bytes=packed_run,
        sram_bytes=c.slots * doubled * item
        + rows * (a.value_dim + 5) * 4
        + (2 * rows * kv * 4 if op.tensor("attn_mask") else 0),
        acc_bytes=c.acc_slots * rows * (kv + a.value_dim) * 4,
        rounds=rounds * share,
        slots=c.slots,
    )
