"""Replaces the com.microsoft operators of transformer exports by operators of the default domain.

Specification: docs/ContribOperators.md of onnxruntime. What has no counterpart is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from npusim.graph.foreign import Emitter, ForeignNode, Signature
from npusim.graph.onnx_lower_attention import lower_attention, lower_group_query_attention

MICROSOFT = "com.microsoft"
LOWERED = (
    "Attention",
    "EmbedLayerNormalization",
    "FastGelu",
    "GroupQueryAttention",
    "SkipLayerNormalization",
)

_EMBED_LAYER_NORM = Signature(
    attributes={"epsilon": None, "mask_index_type": (0, 1)},
    inputs=(
        "input_ids",
        "segment_ids",
        "word_embedding",
        "position_embedding",
        "segment_embedding",
        "gamma",
        "beta",
        "mask",
        "position_ids",
    ),
    outputs=("output", "mask_index", "embedding_sum"),
)


def lower(node: ForeignNode, emit: Emitter) -> None:
    """Write the operators that replace a com.microsoft node; InputError for what they cannot."""
    match node.op:
        case "Attention":
            lower_attention(node, emit)
        case "GroupQueryAttention":
            lower_group_query_attention(node, emit)
        case "SkipLayerNormalization":
            _skip_layer_norm(node, emit)
        case "EmbedLayerNormalization":
            _embed_layer_norm(node, emit)
        case "FastGelu":
            _fast_gelu(node, emit)


def _fast_gelu(node: ForeignNode, emit: Emitter) -> None:
    Signature({}, ("X", "bias"), ("Y",)).check(node)
    x = node.input(0)
    if node.input(1):
        x = emit.add("Add", x, node.input(1), part="bias")
    emit.add("Gelu", x, part="gelu", outputs=[node.output(0)], approximate="tanh")


def _skip_layer_norm(node: ForeignNode, emit: Emitter) -> None:
    inputs = ("input", "skip", "gamma", "beta", "bias")
    outputs = ("output", "mean", "inv_std_var", "input_skip_bias_sum")
    Signature({"epsilon": None}, inputs, outputs).check(node)
    x, skip, gamma, beta, bias = (node.input(index) for index in range(5))
    named = [node.output(3)] if node.output(3) else None
    total = emit.add("Add", x, skip, part="skip", outputs=None if bias else named)
    if bias:
        total = emit.add("Add", total, bias, part="bias", outputs=named)
    _layer_norm(node, emit, total, (gamma, beta), node.outputs[:3])


def _layer_norm(
    node: ForeignNode, emit: Emitter, x: str, scale: Sequence[str], outputs: Sequence[str]
) -> None:
    operands = [x, *(name for name in scale if name)]
    last = max((i for i, name in enumerate(outputs) if name), default=0)
    emit.add(
        "LayerNormalization",
        *operands,
        part="norm",
        outputs=outputs[: last + 1],
        axis=-1,
        epsilon=node.attributes.get("epsilon", 1e-12),
    )


def _embed_layer_norm(node: ForeignNode, emit: Emitter) -> None:
    _EMBED_LAYER_NORM.check(node)
    ids, segments, words, places, kinds = (node.input(index) for index in range(5))
    position_ids = node.input(8)
    if not position_ids:
        rows = np.arange(emit.tensor(ids).shape[1], dtype=np.int64)[None]
        position_ids = emit.constant("positions", rows)
    word = emit.add("Gather", words, ids, part="words")
    place = emit.add("Gather", places, position_ids, part="places")
    named = [node.output(2)] if node.output(2) else None
    total = emit.add("Add", word, place, part="sum", outputs=None if segments else named)
    if segments:
        kind = emit.add("Gather", kinds, segments, part="segments")
        total = emit.add("Add", total, kind, part="segment_sum", outputs=named)
    _layer_norm(node, emit, total, (node.input(5), node.input(6)), node.outputs[:1])
    if node.output(1):
        _mask_index(node, emit)


def _mask_index(node: ForeignNode, emit: Emitter) -> None:
    """How many tokens of each sample the mask keeps; zeros without a mask."""
    mask, batch = node.input(7), emit.tensor(node.input(0)).shape[0]
    named = [node.output(1)]
    if not mask:
        zeros = emit.constant("no_mask", np.zeros(batch, np.int32))
        emit.add("Identity", zeros, part="mask_index", outputs=named)
        return
    axis = emit.constant("mask_axis", np.array([1], np.int64))
    emit.add("ReduceSum", mask, axis, part="mask_index", outputs=named, keepdims=0)
