"""One attention over all heads, packed as [batch, seq, heads x head_dim]."""

from npusim import Graph, GraphBuilder, InputError


def attention(
    *,
    batch: int = 1,
    heads: int = 32,
    kv_heads: int = 8,
    seq: int = 512,
    past: int = 0,
    head_dim: int = 128,
    causal: int = 1,
    dtype: str = "bf16",
) -> Graph:
    """`seq` queries over `past` + `seq` keys; Llama-3-8B's heads by default."""
    if kv_heads < 1 or heads % kv_heads:
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
