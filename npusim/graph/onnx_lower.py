"""Replaces the com.microsoft operators of transformer exports by operators of the default domain.

Specification: docs/ContribOperators.md of onnxruntime. What has no counterpart is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from npusim.core.errors import InputError, Problem, choose_from
from npusim.graph.onnx_types import Array

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class ForeignNode:
    """A node as it stands in the file, of whatever domain; absent inputs and outputs are ''."""

    name: str
    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    def input(self, index: int) -> str:
        """The input at `index`, '' if it is absent."""
        return self.inputs[index] if index < len(self.inputs) else ""

    def output(self, index: int) -> str:
        """The output at `index`, '' if it is not asked for."""
        return self.outputs[index] if index < len(self.outputs) else ""


class Emitter(Protocol):
    """What a lowering writes to: operators and constants named after the node it replaces."""

    def add(
        self,
        op: str,
        *inputs: str,
        part: str,
        outputs: Sequence[str] | None = None,
        **attributes: Any,
    ) -> str:
        """Add an operator called NODE.part; returns its first output."""

    def constant(self, part: str, values: Array) -> str:
        """Add a constant called NODE.part; returns its name."""

    def shape(self, tensor: str) -> tuple[int, ...]:
        """The shape of a tensor that exists already."""

    def note(self, text: str) -> None:
        """Record what the lowering takes for granted."""


def lower(node: ForeignNode, emit: Emitter) -> None:
    """Write the operators that replace a com.microsoft node; InputError for what they cannot."""
    LOWERED[node.op](node, emit)


def _refuse(
    node: ForeignNode, allowed: Mapping[str, Any], inputs: Mapping[int, str], outputs: int
) -> None:
    """Refuse attributes that are none of `allowed` or differ from its value (None: any), the
    inputs whose names `inputs` gives, and outputs beyond the number supported."""
    problems = []
    for name, value in node.attributes.items():
        if name not in allowed:
            text = f"attribute {name!r} is unknown"
            problems.append(Problem(text, hints=choose_from(name, list(allowed))))
        elif allowed[name] is not None and value not in allowed[name]:
            known = ", ".join(str(v) for v in allowed[name])
            problems.append(Problem(f"attribute {name}={value} is not supported (allowed: {known})"))
    known_inputs = max(inputs, default=-1) + 1
    for index, name in enumerate(node.inputs):
        refused = inputs.get(index)
        if name and refused:
            problems.append(Problem(f"input {refused!r} is not supported"))
        elif name and inputs and index >= known_inputs:
            problems.append(Problem(f"input {index} ({name!r}) is unknown"))
    if any(node.outputs[outputs:]):
        problems.append(Problem(f"output {outputs} is not supported"))
    if problems:
        raise InputError(*problems)


def _fast_gelu(node: ForeignNode, emit: Emitter) -> None:
    _refuse(node, {}, {2: "unknown"}, 1)
    x = node.input(0)
    if node.input(1):
        x = emit.add("Add", x, node.input(1), part="bias")
    emit.add("Gelu", x, part="gelu", outputs=[node.output(0)], approximate="tanh")


def _skip_layer_norm(node: ForeignNode, emit: Emitter) -> None:
    _refuse(node, {"epsilon": None}, {5: "unknown"}, 4)
    skip, gamma, beta, bias = (node.input(index) for index in range(1, 5))
    last = node.output(3)
    named = [last] if last else None
    total = emit.add(
        "Add", node.input(0), skip, part="skip", outputs=None if bias else named
    )
    if bias:
        total = emit.add("Add", total, bias, part="bias", outputs=named)
    _layer_norm(node, emit, total, (gamma, beta), list(node.outputs[:3]))


def _layer_norm(
    node: ForeignNode, emit: Emitter, x: str, scale: Sequence[str], outputs: Sequence[str]
) -> None:
    epsilon = node.attributes.get("epsilon", 1e-12)
    operands = [x, *(name for name in scale if name)]
    while outputs and not outputs[-1]:
        outputs = outputs[:-1]
    emit.add(
        "LayerNormalization", *operands, part="norm", outputs=outputs, axis=-1, epsilon=epsilon
    )


def _embed_layer_norm(node: ForeignNode, emit: Emitter) -> None:
    _refuse(node, {"epsilon": None, "mask_index_type": (0, 1)}, {9: "unknown"}, 3)
    ids, segments, words, places, kinds = (node.input(index) for index in range(5))
    position_ids = node.input(8)
    if not position_ids:
        rows = np.arange(emit.shape(ids)[1], dtype=np.int64)[None]
        position_ids = emit.constant("positions", rows)
    parts = [emit.add("Gather", words, ids, part="words")]
    parts.append(emit.add("Gather", places, position_ids, part="places"))
    if segments:
        parts.append(emit.add("Gather", kinds, segments, part="segments"))
    named = [node.output(2)] if node.output(2) else None
    total = emit.add("Add", parts[0], parts[1], part="sum", outputs=None if segments else named)
    if segments:
        total = emit.add("Add", total, parts[2], part="segment_sum", outputs=named)
    _layer_norm(node, emit, total, (node.input(5), node.input(6)), [node.output(0)])
    if node.output(1):
        _mask_index(node, emit)


def _mask_index(node: ForeignNode, emit: Emitter) -> None:
    """How many tokens of each sample the mask keeps; zeros without a mask."""
    mask, batch = node.input(7), emit.shape(node.input(0))[0]
    if not mask:
        zeros = emit.constant("no_mask", np.zeros(batch, np.int32))
        emit.add("Identity", zeros, part="mask_index", outputs=[node.output(1)])
        return
    axis = emit.constant("mask_axis", np.array([1], np.int64))
    emit.add("ReduceSum", mask, axis, part="mask_index", outputs=[node.output(1)], keepdims=0)


def _attention(node: ForeignNode, emit: Emitter) -> None:
    allowed = {
        "do_rotary": (0,),
        "mask_filter_value": None,
        "num_heads": None,
        "past_present_share_buffer": (0,),
        "qkv_hidden_sizes": None,
        "rotary_embedding_dim": (0,),
        "scale": None,
        "unidirectional": None,
    }
    _refuse(node, allowed, {6: "past_sequence_length"}, 2)
    filtered, heads = node.attributes.get("mask_filter_value", -1e4), node.attributes["num_heads"]
    if filtered > -1e4:
        raise InputError(f"mask_filter_value={filtered}: masked keys would be seen")
    x, weights, bias = (node.input(index) for index in range(3))
    packed = emit.add("MatMul", x, weights, part="qkv")
    if bias:
        packed = emit.add("Add", packed, bias, part="qkv_bias")
    sizes = node.attributes.get("qkv_hidden_sizes")
    q, k, v = _split(emit, packed, sizes or [emit.shape(packed)[-1] // 3] * 3)
    past = _unstacked(node, emit) if node.input(4) else ()
    mask = _attention_mask(node, emit)
    keep = bool(node.output(1))
    present = [emit_name(node, part) for part in ("present_key", "present_value") if keep]
    operands = [q, k, v, *([mask, *past] if mask or past else [])]
    emit.add(
        "Attention",
        *operands,
        part="attention",
        outputs=[node.output(0), *present],
        q_num_heads=heads,
        kv_num_heads=heads,
        is_causal=node.attributes.get("unidirectional", 0),
        scale=node.attributes.get("scale") or None,
    )
    if keep:
        axis = emit.constant("stack_axis", np.array([0], np.int64))
        stacked = [emit.add("Unsqueeze", p, axis, part=f"stack{i}") for i, p in enumerate(present)]
        emit.add("Concat", *stacked, part="present", outputs=[node.output(1)], axis=0)


def emit_name(node: ForeignNode, part: str) -> str:
    """The name of a part of a lowered node."""
    return f"{node.name}.{part}"


def _split(emit: Emitter, packed: str, sizes: Sequence[int]) -> list[str]:
    lengths = emit.constant("split_sizes", np.array(sizes, np.int64))
    names = [f"{packed}.{part}" for part in ("q", "k", "v")]
    emit.add("Split", packed, lengths, part="split", outputs=names, axis=-1)
    return names


def _unstacked(node: ForeignNode, emit: Emitter) -> tuple[str, ...]:
    """Keys and values of a cache [2, batch, heads, past, size]."""
    rows = [emit.constant(f"row{index}", np.array(index, np.int64)) for index in (0, 1)]
    return tuple(
        emit.add("Gather", node.input(4), row, part=part, axis=0)
        for row, part in zip(rows, ("past_key", "past_value"), strict=True)
    )


def _attention_mask(node: ForeignNode, emit: Emitter) -> str:
    """mask_index [batch, keys] or [batch, queries, keys] and attention_bias as one mask."""
    raw, added = node.input(3), node.input(5)
    if not raw:
        return added
    shape = emit.shape(raw)
    if len(shape) not in (2, 3):
        wanted = "(batch, total_sequence_length) or (batch, sequence_length, total_sequence_length)"
        raise InputError(Problem(f"mask_index {list(shape)} is not supported (allowed: {wanted})"))
    seen = emit.add("Cast", raw, part="mask", to=9)
    axes = emit.constant("mask_axes", np.array([1, 2] if len(shape) == 2 else [1], np.int64))
    seen = emit.add("Unsqueeze", seen, axes, part="mask4d")
    if not added:
        return seen
    kind = emit.dtype(added)
    hidden = emit.constant("hidden", np.array(-np.inf).astype(kind))
    return emit.add("Where", seen, added, hidden, part="masked_bias")


def _group_query_attention(node: ForeignNode, emit: Emitter) -> None:
    _refuse_group_query(node)
    heads, kv_heads = node.attributes["num_heads"], node.attributes["kv_num_heads"]
    q, k, v = (node.input(index) for index in range(3))
    if not k:
        size = emit.shape(q)[-1] // (heads + 2 * kv_heads)
        q, k, v = _split(emit, q, [heads * size, kv_heads * size, kv_heads * size])
    if node.input(14):
        epsilon = node.attributes.get("qk_norm_epsilon", 1e-6)
        q = _head_norm(node, emit, q, "q", heads, epsilon)
        k = _head_norm(node, emit, k, "k", kv_heads, epsilon)
    if node.attributes.get("do_rotary", 0):
        q, k = _rotated(node, emit, q, k)
    present = [node.output(1), node.output(2)]
    past, bias = [node.input(3), node.input(4)], node.input(10)
    outputs = [node.output(0), *(present if any(present) else [])]
    emit.add(
        "Attention",
        *(q, k, v, *([bias, *past] if any(past) else [bias] if bias else [])),
        part="attention",
        outputs=[name or emit_name(node, f"present{i}") for i, name in enumerate(outputs)],
        q_num_heads=heads,
        kv_num_heads=kv_heads,
        is_causal=node.attributes.get("causal", 1),
        scale=node.attributes.get("scale") or None,
        softcap=node.attributes.get("softcap") or None,
        left_window_size=_left_window(node),
    )
    emit.note("seqlens_k is taken to be past + new - 1 for every sample: no padding")


def _refuse_group_query(node: ForeignNode) -> None:
    allowed = {
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
    }
    refused = {11: "head_sink", 12: "k_scale", 13: "v_scale", 16: "query_seqlens"}
    _refuse(node, allowed, refused, 3)


def _left_window(node: ForeignNode) -> int | None:
    """onnxruntime's window counts the query's own position, ONNX's what is to the left of it."""
    window = node.attributes.get("local_window_size", -1)
    return window - 1 if window > 0 else None


def _head_norm(
    node: ForeignNode, emit: Emitter, x: str, which: str, heads: int, epsilon: float
) -> str:
    """RMS normalization of every head, with the weight that belongs to q or k."""
    weight = node.input(14 if which == "q" else 15)
    batch, seq, hidden = emit.shape(x)
    split = emit.constant(f"{which}_heads", np.array([batch, seq, heads, hidden // heads], np.int64))
    joined = emit.constant(f"{which}_joined", np.array([batch, seq, hidden], np.int64))
    y = emit.add("Reshape", x, split, part=f"{which}_split")
    epsilon = node.attributes.get(f"{which}_norm_epsilon", epsilon)
    y = emit.add("RMSNormalization", y, weight, part=f"{which}_norm", axis=-1, epsilon=epsilon)
    return emit.add("Reshape", y, joined, part=f"{which}_join")


def _rotated(node: ForeignNode, emit: Emitter, q: str, k: str) -> tuple[str, str]:
    """q and k rotated at their positions, by default those behind the past."""
    cos, sin, positions = (node.input(index) for index in (7, 8, 9))
    batch, seq, hidden = emit.shape(q)
    past = emit.shape(node.input(3))[2] if node.input(3) else 0
    if not positions:
        rows = np.broadcast_to(np.arange(past, past + seq, dtype=np.int64), (batch, seq))
        positions = emit.constant("positions", np.ascontiguousarray(rows))
    heads, kv_heads = node.attributes["num_heads"], node.attributes["kv_num_heads"]
    rotated = 2 * emit.shape(cos)[1]
    attributes = {
        "interleaved": node.attributes.get("rotary_interleaved", 0),
        "rotary_embedding_dim": rotated if rotated != hidden // heads else None,
    }
    turned = [
        emit.add(
            "RotaryEmbedding",
            *(x, cos, sin, positions),
            part=part,
            num_heads=count,
            **attributes,
        )
        for x, part, count in ((q, "rope_q", heads), (k, "rope_k", kv_heads))
    ]
    return turned[0], turned[1]


LOWERED: Mapping[str, Callable[[ForeignNode, Emitter], None]] = {
    "Attention": _attention,
    "EmbedLayerNormalization": _embed_layer_norm,
    "FastGelu": _fast_gelu,
    "GroupQueryAttention": _group_query_attention,
    "SkipLayerNormalization": _skip_layer_norm,
}
