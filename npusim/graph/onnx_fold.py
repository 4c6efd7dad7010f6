"""What of an imported model can be computed once and for all: constants and shape arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from npusim.graph.builder import GraphBuilder
from npusim.graph.infer import infer
from npusim.graph.ir import Node
from npusim.graph.onnx_types import Array
from npusim.graph.ops import operator

#: Largest results, in elements, that are folded: moved data, and computed data.
_MOVED, _COMPUTED = 1 << 24, 1 << 16


def folded(node: Node, builder: GraphBuilder) -> Sequence[Array | None] | None:
    """The node's results if they do not depend on the model's inputs and are not too large.

    Quantized weights stay quantized. A Shape is known as soon as its input's shape is;
    everything else needs constant inputs. Results have the dtypes that inference gives them.
    """
    tensors = [builder.tensor(name) if name else None for name in node.inputs]
    values = [builder.value(name) if name else None for name in node.inputs]
    known = all(v is not None for v, name in zip(values, node.inputs, strict=True) if name)
    shape_only = node.op in ("Shape", "Size")
    op = operator(node.op)
    if op.family == "quantize" or not (known or shape_only):
        return None
    constants = {n: v for n, v in zip(node.inputs, values, strict=True) if v is not None}
    results = infer(node, tensors, constants)
    moved = op.family in ("view", "movement", "gather") or node.op == "Cast"
    largest = max((prod(r[0]) for r in results if r is not None), default=0)
    if largest > (_MOVED if moved else _COMPUTED):
        return None
    if shape_only and values[0] is None:
        values = [_of_shape(t.shape) if t is not None else None for t in tensors]
    arrays = op.reference(node, values)
    return [
        None if a is None or r is None else a.astype(r[1].numpy, copy=False)
        for a, r in zip(arrays, results, strict=True)
    ]


def _of_shape(shape: tuple[int, ...]) -> Array:
    """An array that has a shape and no memory."""
    return np.broadcast_to(np.zeros((), np.bool_), shape)
