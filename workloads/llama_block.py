"""One decoder layer of Llama-3-8B: RMSNorm, GQA with rotary positions, SwiGLU."""

import numpy as np

from npusim import Computed, Graph, GraphBuilder, InputError, Normal


def llama_block(
    *,
    seq: int = 512,
    batch: int = 1,
    hidden: int = 4096,
    heads: int = 32,
    kv_heads: int = 8,
    head_dim: int = 128,
    ffn: int = 14336,
    phase: str = "prefill",
    past: int = 0,
    cache: int = 0,
    rope_theta: float = 500000.0,
    dtype: str = "bf16",
) -> Graph:
    """A layer over `seq` new tokens behind `past` cached ones (arXiv 2407.21783, table 3).

    phase=prefill computes `seq` tokens; phase=decode one, and its past is 2048 unless given.
    cache=1 returns the keys and values of a prefill without a past too.
    """
    seq, past = _lengths(phase, seq, past)
    _consistent(hidden, heads, kv_heads, head_dim)
    sizes = {"seq": seq, "batch": batch, "hidden": hidden, "heads": heads, "kv_heads": kv_heads}
    sizes |= {"head_dim": head_dim, "ffn": ffn, "phase": phase, "past": past, "cache": cache}
    g = GraphBuilder("llama_block", sizes | {"rope_theta": rope_theta, "dtype": dtype})

    def project(name: str, x: str, rows: int, columns: int) -> str:
        weight = g.weight(f"{name}.weight", (rows, columns), dtype, Normal(rows**-0.5))
        return g.add("MatMul", x, weight, name=name)

    def norm(name: str, x: str) -> str:
        scale = g.weight(f"{name}.weight", (hidden,), dtype, Normal(0.1, loc=1.0))
        return g.add("RMSNormalization", x, scale, name=name, epsilon=1e-5)

    x = g.input("x", (batch, seq, hidden), dtype)
    normed = norm("norm_attn", x)
    q = project("q", normed, hidden, heads * head_dim)
    k = project("k", normed, hidden, kv_heads * head_dim)
    v = project("v", normed, hidden, kv_heads * head_dim)
    cos, sin = _angles(g, batch, seq, past, head_dim, rope_theta, dtype)
    q = g.add("RotaryEmbedding", q, cos, sin, name="rope_q", num_heads=heads)
    k = g.add("RotaryEmbedding", k, cos, sin, name="rope_k", num_heads=kv_heads)
    cached = [
        g.input(f"past_{kind}", (batch, kv_heads, past, head_dim), dtype)
        for kind in ("key", "value")
        if past
    ]
    attention, *present = g.add(
        "Attention",
        *(q, k, v, *(["", *cached] if cached else [])),
        name="attention",
        outputs=["attention", "present_key", "present_value"][: 3 if past or cache else 1],
        q_num_heads=heads,
        kv_num_heads=kv_heads,
        is_causal=1,
    )
    x = g.add("Add", x, project("o", attention, heads * head_dim, hidden), name="add_attn")
    normed = norm("norm_ffn", x)
    gate = project("gate", normed, hidden, ffn)
    up = project("up", normed, hidden, ffn)
    silu = g.add("Mul", gate, g.add("Sigmoid", gate, name="sigmoid"), name="silu")
    down = project("down", g.add("Mul", silu, up, name="mul"), ffn, hidden)
    return g.build([g.add("Add", x, down, name="add_ffn"), *present])


def _lengths(phase: str, seq: int, past: int) -> tuple[int, int]:
    """New and cached tokens; a decode leaves seq at its default or says 1."""
    if phase == "prefill":
        return seq, past
    if phase != "decode":
        raise InputError(f"llama_block: phase={phase!r}; allowed: prefill, decode")
    if seq not in (512, 1):
        raise InputError(f"llama_block: phase=decode makes one token; found seq={seq}")
    return 1, past or 2048


def _consistent(hidden: int, heads: int, kv_heads: int, head_dim: int) -> None:
    if kv_heads < 1 or heads % kv_heads:
        raise InputError(f"llama_block: heads={heads} is no multiple of kv_heads={kv_heads}")
    if head_dim % 2:
        raise InputError(f"llama_block: head_dim={head_dim} must be even to rotate pairs")


def _angles(
    g: GraphBuilder, batch: int, seq: int, past: int, head_dim: int, theta: float, kind: str
) -> tuple[str, str]:
    """Cosines and sines of the rotary angles at positions past .. past + seq - 1."""

    def angles() -> np.ndarray:
        frequency = theta ** (-np.arange(0, head_dim, 2) / head_dim)
        angle = np.outer(np.arange(past, past + seq), frequency)
        return np.broadcast_to(angle, (batch, seq, head_dim // 2))

    shape = (batch, seq, head_dim // 2)
    cos = g.weight("rope.cos", shape, kind, Computed(lambda: np.cos(angles()), "rotary cosines"))
    sin = g.weight("rope.sin", shape, kind, Computed(lambda: np.sin(angles()), "rotary sines"))
    return cos, sin
