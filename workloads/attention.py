"""One attention over all heads, packed as [batch, seq, heads x head_dim]."""

from typing import Annotated, Literal

from npusim import Between, Graph, GraphBuilder, InputError, Size


def attention(
    *,
    batch: Size = 1,
    heads: Size = 32,
    kv_heads: Size = 8,
    seq: Size = 512,
    past: Annotated[int, Between(0)] = 0,
    head_dim: Size = 128,
    causal: Literal[0, 1] = 1,
    dtype: str = "bf16",
) -> Graph:
    """`seq` queries over `past` + `seq` keys; Llama-3-8B's heads by default."""
    if heads % kv_heads:
        raise InputError(f"attention: {heads=} is no multiple of {kv_heads=}")
    sizes = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "seq": seq, "past": past}
    sizes |= {"head_dim": head_dim, "causal": causal, "dtype": dtype}
    g = GraphBuilder("attention", sizes)
    q = g.input("q", (batch, seq, heads * head_dim), dtype)
    k = g.input("k", (batch, seq, kv_heads * head_dim), dtype)
    v = g.input("v", (batch, seq, kv_heads * head_dim), dtype)
    cache = (batch, kv_heads, past, head_dim)
    cached = [g.input(f"past_{kind}", cache, dtype) for kind in ("key", "value") if past]
    outputs = ["attention", "present_key", "present_value"] if past else ["attention"]
    g.add(
        "Attention",
        *(q, k, v, *(["", *cached] if cached else [])),
        name="attention",
        outputs=outputs,
        q_num_heads=heads,
        kv_num_heads=kv_heads,
        is_causal=causal,
    )
    return g.build(outputs)
