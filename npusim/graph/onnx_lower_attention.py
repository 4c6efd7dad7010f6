"""The two attention operators of com.microsoft in terms of the default domain's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npusim.core.errors import InputError, Problem
from npusim.graph.foreign import Emitter, ForeignNode, Signature

_ATTENTION = Signature(
    attributes={
        "do_rotary": (0,),
        "mask_filter_value": None,
        "num_heads": None,
        "past_present_share_buffer": (0,),
        "qkv_hidden_sizes": None,
        "rotary_embedding_dim": (0,),
        "scale": None,
        "unidirectional": (0, 1),
    },
    inputs=(
        "input",
        "weights",
        "bias",
        "mask_index",
        "past",
        "attention_bias",
        "past_sequence_length",
    ),
    outputs=("output", "present"),
    refused=("past_sequence_length",),
)

_GROUP_QUERY_ATTENTION = Signature(
    attributes={
        "causal": (0, 1),
        "do_rotary": (0, 1),
        "k_norm_epsilon": None,
        "k_quant_type": ("NONE",),
        "kv_cache_bit_width": (0,),
        "kv_num_heads": None,
        "local_window_size": None,
        "num_heads": None,
        "q_norm_epsilon": None,
        "qk_norm_epsilon": None,
        "qk_output": (0,),
        "rotary_interleaved": (0, 1),
        "scale": None,
        "sliding_window_cache": (0,),
        "smooth_softmax": (-1, 0),
        "softcap": None,
        "v_quant_type": ("NONE",),
    },
    inputs=(
        "query",
        "key",
        "value",
        "past_key",
        "past_value",
        "seqlens_k",
        "total_sequence_length",
        "cos_cache",
        "sin_cache",
        "position_ids",
        "attention_bias",
        "head_sink",
        "k_scale",
        "v_scale",
        "q_norm_weight",
        "k_norm_weight",
        "query_seqlens",
    ),
    outputs=("output", "present_key", "present_value", "output_qk"),
    refused=("head_sink", "k_scale", "v_scale", "query_seqlens", "output_qk"),
)


def lower_attention(node: ForeignNode, emit: Emitter) -> None:
    """Attention with a packed projection: MatMul, Add, Split, the attention, stacked caches."""
    _ATTENTION.check(node)
    heads, filtered = node.required("num_heads"), node.attributes.get("mask_filter_value", -1e4)
    if filtered > -1e4:
        raise InputError(Problem(f"mask_filter_value={filtered} would let masked keys be seen"))
    packed = emit.add("MatMul", node.input(0), node.input(1), part="qkv")
    if node.input(2):
        packed = emit.add("Add", packed, node.input(2), part="qkv_bias")
    third = emit.tensor(packed).shape[-1] // 3
    sizes = node.attributes.get("qkv_hidden_sizes") or [third] * 3
    past = _unstacked(node, emit) if node.input(4) else []
    mask = _attention_mask(node, emit)
    present = [node.part("present_key"), node.part("present_value")] if node.output(1) else []
    emit.add(
        "Attention",
        *_split(node, emit, packed, sizes),
        *([mask, *past] if mask or past else []),
        part="attention",
        outputs=[node.output(0), *present],
        q_num_heads=heads,
        kv_num_heads=heads,
        is_causal=node.attributes.get("unidirectional", 0),
        scale=node.attributes.get("scale") or None,
    )
    if present:
        axis = emit.constant("stack_axis", np.array([0], np.int64))
        stacked = [emit.add("Unsqueeze", p, axis, part=f"stack{i}") for i, p in enumerate(present)]
        emit.add("Concat", *stacked, part="present", outputs=[node.output(1)], axis=0)


def _split(node: ForeignNode, emit: Emitter, packed: str, sizes: Sequence[int]) -> list[str]:
    lengths = emit.constant("split_sizes", np.array(sizes, np.int64))
    names = [node.part(part) for part in ("q", "k", "v")]
    emit.add("Split", packed, lengths, part="split", outputs=names, axis=-1)
    return names


def _unstacked(node: ForeignNode, emit: Emitter) -> list[str]:
    """Keys and values of a cache [2, batch, heads, past, size]."""
    rows = [emit.constant(f"row{index}", np.array(index, np.int64)) for index in (0, 1)]
    return [
        emit.add("Gather", node.input(4), row, part=part, axis=0)
        for row, part in zip(rows, ("past_key", "past_value"), strict=True)
    ]


def _attention_mask(node: ForeignNode, emit: Emitter) -> str:
    """mask_index [batch, keys] or [batch, queries, keys] and attention_bias as one mask."""
    raw, added = node.input(3), node.input(5)
    if not raw:
        return added
    shape = emit.tensor(raw).shape
    if len(shape) not in (2, 3):
        wanted = "(batch, total_sequence_length) or (batch, sequence_length, total_sequence_length)"
        raise InputError(Problem(f"mask_index {list(shape)} is not supported (allowed: {wanted})"))
    emit.note("a query all of whose keys are masked gives 0, not the mean over masked keys")
    seen = emit.add("Cast", raw, part="mask", to=9)
    axes = emit.constant("mask_axes", np.array([1, 2] if len(shape) == 2 else [1], np.int64))
    seen = emit.add("Unsqueeze", seen, axes, part="mask4d")
    if not added:
        return seen
    hidden = emit.constant("hidden", np.array(-np.inf).astype(emit.tensor(added).dtype.numpy))
    return emit.add("Where", seen, added, hidden, part="masked_bias")


def lower_group_query_attention(node: ForeignNode, emit: Emitter) -> None:
    """Grouped heads with caches: optionally unpacked, normalized per head and rotated first."""
    _GROUP_QUERY_ATTENTION.check(node)
    heads, kv_heads = node.required("num_heads"), node.required("kv_num_heads")
    q, k, v = (node.input(index) for index in range(3))
    if not k:
        size = emit.tensor(q).shape[-1] // (heads + 2 * kv_heads)
        q, k, v = _split(node, emit, q, [heads * size, kv_heads * size, kv_heads * size])
    if node.input(14):
        q = _head_norm(node, emit, q, "q", heads)
        k = _head_norm(node, emit, k, "k", kv_heads)
    if node.attributes.get("do_rotary", 0):
        q, k = _rotated(node, emit, q, k)
    past, bias = [node.input(3), node.input(4)], node.input(10)
    present = [node.output(1), node.output(2)] if node.output(1) or node.output(2) else []
    emit.add(
        "Attention",
        *(q, k, v, *([bias, *past] if any(past) else [bias] if bias else [])),
        part="attention",
        outputs=[node.output(0), *present],
        q_num_heads=heads,
        kv_num_heads=kv_heads,
        is_causal=node.attributes.get("causal", 1),
        scale=node.attributes.get("scale") or None,
        softcap=node.attributes.get("softcap") or None,
        left_window_size=_left_window(node),
    )
    emit.note("seqlens_k is taken to be past + new - 1 for every sample: no padding")


def _left_window(node: ForeignNode) -> int | None:
    """onnxruntime's window counts the query's own position, ONNX's what is to the left of it."""
    window = node.attributes.get("local_window_size", -1)
    return int(window) - 1 if window > 0 else None


def _head_norm(node: ForeignNode, emit: Emitter, x: str, which: str, heads: int) -> str:
    """RMS normalization of every head, with the weight that belongs to q or k."""
    weight = node.input(14 if which == "q" else 15)
    batch, seq, hidden = emit.tensor(x).shape
    per_head, joined = [batch, seq, heads, hidden // heads], [batch, seq, hidden]
    split = emit.constant(f"{which}_heads", np.array(per_head, np.int64))
    join = emit.constant(f"{which}_joined", np.array(joined, np.int64))
    common = node.attributes.get("qk_norm_epsilon", 1e-6)
    epsilon = node.attributes.get(f"{which}_norm_epsilon", common)
    y = emit.add("Reshape", x, split, part=f"{which}_split")
    y = emit.add("RMSNormalization", y, weight, part=f"{which}_norm", axis=-1, epsilon=epsilon)
    return emit.add("Reshape", y, join, part=f"{which}_join")


def _rotated(node: ForeignNode, emit: Emitter, q: str, k: str) -> tuple[str, str]:
    """q and k rotated at their positions, by default those behind the past."""
    cos, sin, positions = (node.input(index) for index in (7, 8, 9))
    batch, seq, hidden = emit.tensor(q).shape
    if not positions:
        past = emit.tensor(node.input(3)).shape[2] if node.input(3) else 0
        rows = np.tile(np.arange(past, past + seq, dtype=np.int64), (batch, 1))
        positions = emit.constant("positions", rows)
    heads, kv_heads = node.required("num_heads"), node.required("kv_num_heads")
    rotated = 2 * emit.tensor(cos).shape[1]

    def turned(x: str, part: str, count: int) -> str:
        return emit.add(
            "RotaryEmbedding",
            *(x, cos, sin, positions),
            part=part,
            num_heads=count,
            interleaved=node.attributes.get("rotary_interleaved", 0),
            rotary_embedding_dim=rotated if rotated != hidden // heads else None,
        )

    return turned(q, "rope_q", heads), turned(k, "rope_k", kv_heads)
