"""One decoder layer of Llama-3-8B: RMSNorm, GQA with rotary positions, SwiGLU."""

from typing import Annotated, Literal

import numpy as np

from npusim import Between, Computed, Graph, GraphBuilder, InputError, Normal, Size


def llama_block(
    *,
    seq: Size = 512,
    batch: Size = 1,
    hidden: Size = 4096,
    heads: Size = 32,
    kv_heads: Size = 8,
    head_dim: Size = 128,
    ffn: Size = 14336,
    phase: str = "prefill",
    past: Annotated[int, Between(0)] = 0,
    cache: Literal[0, 1] = 0,
    rope_theta: Annotated[float, Between(1)] = 500000.0,
    dtype: str = "bf16",
) -> Graph:
    """A layer over `seq` new tokens behind `past` cached ones (arXiv 2407.21783, table 3).

    phase=prefill computes `seq` tokens; phase=decode one, and its past is 2048 unless given.
    cache=1 returns the keys and values of a prefill without a past too.
    """
    seq, past = _lengths(phase, seq, past)
    _consistent(heads, kv_heads, head_dim)
    sizes = {"seq": seq, "batch": batch, "hidden": hidden, "heads": heads, "kv_heads": kv_heads}
    sizes |= {"head_dim": head_dim, "ffn": ffn, "phase": phase, "past": past, "cache": cache}
    g = GraphBuilder("llama_block", sizes | {"rope_theta": rope_theta, "dtype": dtype})
    x = g.input("x", (batch, seq, hidden), dtype)
    normed = _norm(g, "norm_attn", x)
    q = _project(g, "q", normed, heads * head_dim)
    k = _project(g, "k", normed, kv_heads * head_dim)
    v = _project(g, "v", normed, kv_heads * head_dim)
    cos, sin = _angles(g, (batch, seq, head_dim // 2), past, rope_theta, dtype)
    q = g.add("RotaryEmbedding", q, cos, sin, name="rope_q", num_heads=heads)
    k = g.add("RotaryEmbedding", k, cos, sin, name="rope_k", num_heads=kv_heads)
    cached = (batch, kv_heads, past, head_dim)
    attention, *present = _attention(g, (q, k, v), heads, cached, keep=bool(past or cache))
    x = g.add("Add", x, _project(g, "o", attention, hidden), name="add_attn")
    return g.build([_feed_forward(g, x, ffn), *present])


def _lengths(phase: str, seq: int, past: int) -> tuple[int, int]:
    """New and cached tokens; a decode leaves seq at its default or says 1."""
    if phase == "prefill":
        return seq, past
    if phase != "decode":
        raise InputError(f"llama_block: phase={phase!r}; allowed: prefill, decode")
    if seq not in (512, 1):
        raise InputError(f"llama_block: phase=decode makes one token; found seq={seq}")
    return 1, past or 2048


def _consistent(heads: int, kv_heads: int, head_dim: int) -> None:
    if heads % kv_heads:
        raise InputError(f"llama_block: heads={heads} is no multiple of kv_heads={kv_heads}")
    if head_dim % 2:
        raise InputError(f"llama_block: head_dim={head_dim} must be even to rotate pairs")


def _project(g: GraphBuilder, name: str, x: str, columns: int) -> str:
    rows, dtype = g.tensor(x).shape[-1], g.tensor(x).dtype
    weight = g.weight(f"{name}.weight", (rows, columns), dtype, Normal(rows**-0.5))
    return g.add("MatMul", x, weight, name=name)


def _norm(g: GraphBuilder, name: str, x: str) -> str:
    hidden, dtype = g.tensor(x).shape[-1], g.tensor(x).dtype
    scale = g.weight(f"{name}.weight", (hidden,), dtype, Normal(0.1, loc=1.0))
    return g.add("RMSNormalization", x, scale, name=name, epsilon=1e-5)


def _angles(
    g: GraphBuilder, shape: tuple[int, int, int], past: int, theta: float, dtype: str
) -> tuple[str, str]:
    """Cosines and sines [batch, seq, head_dim / 2] at positions past, past + 1, ..."""
    _, seq, half = shape

    def angles() -> np.ndarray:
        frequency = theta ** (-np.arange(half) / half)
        return np.broadcast_to(np.outer(np.arange(past, past + seq), frequency), shape)

    cos = g.weight("rope.cos", shape, dtype, Computed(lambda: np.cos(angles()), "rotary cosines"))
    sin = g.weight("rope.sin", shape, dtype, Computed(lambda: np.sin(angles()), "rotary sines"))
    return cos, sin


def _attention(
    g: GraphBuilder, qkv: tuple[str, str, str], heads: int, cached: tuple[int, ...], keep: bool
) -> tuple[str, ...]:
    """Causal attention behind a cache [batch, kv_heads, past, head_dim], which may be empty."""
    dtype, past = g.tensor(qkv[0]).dtype, cached[2]
    before = [g.input(f"past_{part}", cached, dtype) for part in ("key", "value") if past]
    return g.add(
        "Attention",
        *(*qkv, *(["", *before] if before else [])),
        name="attention",
        outputs=["attention", "present_key", "present_value"][: 3 if keep else 1],
        q_num_heads=heads,
        kv_num_heads=cached[1],
        is_causal=1,
    )


def _feed_forward(g: GraphBuilder, x: str, ffn: int) -> str:
    normed = _norm(g, "norm_ffn", x)
    gate = _project(g, "gate", normed, ffn)
    up = _project(g, "up", normed, ffn)
    silu = g.add("Mul", gate, g.add("Sigmoid", gate, name="sigmoid"), name="silu")
    down = _project(g, "down", g.add("Mul", silu, up, name="mul"), g.tensor(x).shape[-1])
    return g.add("Add", x, down, name="add_ffn")
