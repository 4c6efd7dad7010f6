"""What the vector unit computes: expressions evaluated in fp32 or integers, rounded once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npusim.core.dtypes import DType
from npusim.graph.ops.unary import erf

Array = NDArray[Any]
Number = Any


def evaluate(tree: Any, sources: Sequence[Array], immediates: Sequence[float]) -> Array:
    """The value of an expression; `sources` are arrays in storage dtypes."""
    return _evaluated(tree, sources, immediates, {})


def _evaluated(
    tree: Any, sources: Sequence[Array], immediates: Sequence[float], known: dict[Any, Array]
) -> Array:
    """`known` holds the values of what occurred before; nothing is computed twice."""
    if tree not in known:
        known[tree] = _computed(tree, sources, immediates, known)
    return known[tree]


def _computed(
    tree: Any, sources: Sequence[Array], immediates: Sequence[float], known: dict[Any, Array]
) -> Array:
    if tree[0] == "source":
        return widen(sources[tree[1]])
    if tree[0] == "immediate":
        return np.float64(immediates[tree[1]])  # type: ignore[return-value]
    operands = [_evaluated(child, sources, immediates, known) for child in tree[1:]]
    return _FUNCTIONS[tree[0]](*_alike(operands))


def widen(array: Array) -> Array:
    """As the vector unit reads it: floats as fp32, small integers as int32."""
    kind = array.dtype
    if kind == np.float32 or kind in (np.int32, np.int64, np.bool_, np.uint32, np.uint64):
        return array
    if kind.kind in "iu":
        return array.astype(np.int32)
    return to_fp32(array)


def to_fp32(array: Array) -> Array:
    """Exact; bf16 by moving its bits, which is several times faster than a cast."""
    if array.dtype.name == "bfloat16":
        wide = array.view(np.uint16).astype(np.uint32)
        np.left_shift(wide, 16, out=wide)
        return wide.view(np.float32)
    return array.astype(np.float32)


def narrow(value: Array, to: DType) -> Array:
    """Rounded to nearest even into the storage dtype; fp8 saturates, as ONNX Cast does.

    What is in the storage dtype already stays as it is: a host's fp64, an fp8 that overflowed.
    """
    if value.dtype == to.numpy:
        return value
    if to.name.startswith("fp8"):
        return np.clip(value, -to.largest, to.largest).astype(to.numpy)
    if value.dtype == np.float64 and to.is_float:
        value = value.astype(np.float32)
    return value.astype(to.numpy, copy=False)


def _alike(operands: list[Number]) -> list[Number]:
    """Integers beside floats become fp32; numbers take the dtype of the arrays beside them."""
    arrays = [a for a in operands if isinstance(a, np.ndarray) and a.dtype != np.bool_]
    if not arrays:
        return [np.float32(a) if isinstance(a, np.float64) else a for a in operands]
    floats = any(a.dtype.kind == "f" for a in arrays)
    whole = all(float(a).is_integer() for a in operands if isinstance(a, np.float64))
    target = np.dtype(np.float32) if floats or not whole else np.result_type(*arrays)
    return [a if _is_bool(a) or a.dtype == target else a.astype(target) for a in operands]


def _is_bool(a: Number) -> bool:
    return isinstance(a, np.ndarray) and a.dtype == np.bool_


def _divide(a: Array, b: Array) -> Array:
    if np.asarray(a).dtype.kind in "iu":
        quotient = np.abs(a) // np.where(b == 0, 1, np.abs(b))
        return np.where((a < 0) != (b < 0), -quotient, quotient).astype(np.asarray(a).dtype)
    return a / b


def _causal(scores: Array, offset: Array) -> Array:
    rows, columns = scores.shape[-2:]
    seen = np.arange(columns)[None, :] <= np.arange(rows)[:, None] + int(offset)
    return np.where(seen, scores, np.float32(-np.inf))


def _since(scores: Array, offset: Array) -> Array:
    rows, columns = scores.shape[-2:]
    seen = np.arange(columns)[None, :] >= np.arange(rows)[:, None] + int(offset)
    return np.where(seen, scores, np.float32(-np.inf))


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small)).astype(np.float32)


def _whole(x: Array) -> Array:
    return np.trunc(x) if x.dtype.kind == "f" else x


_FUNCTIONS: Mapping[str, Callable[..., Array]] = MappingProxyType(
    {
        "abs": np.abs,
        "add": np.add,
        "and": np.logical_and,
        "causal": _causal,
        "ceil": np.ceil,
        "clip": np.clip,
        "cos": np.cos,
        "div": _divide,
        "eq": np.equal,
        "erf": lambda x: erf(x.astype(np.float64)).astype(np.float32),
        "exp": np.exp,
        "expm1": np.expm1,
        "floor": np.floor,
        "fmod": np.fmod,
        "ge": np.greater_equal,
        "gt": np.greater,
        "is_nan": np.isnan,
        "le": np.less_equal,
        "log": np.log,
        "lt": np.less,
        "max": np.maximum,
        "min": np.minimum,
        "mod": np.mod,
        "mul": np.multiply,
        "ne": np.not_equal,
        "neg": np.negative,
        "not": np.logical_not,
        "or": np.logical_or,
        "pow": np.power,
        "real": lambda x: x.astype(np.float32),
        "reciprocal": lambda x: 1 / x,
        "rint": np.rint,
        "row_max": lambda x: x.max(axis=-1, keepdims=True),
        "row_min": lambda x: x.min(axis=-1, keepdims=True),
        "row_sum": lambda x: x.sum(axis=-1, keepdims=True, dtype=x.dtype),
        "rsqrt": lambda x: 1 / np.sqrt(x),
        "sigmoid": _sigmoid,
        "sign": np.sign,
        "sin": np.sin,
        "since": _since,
        "softplus": lambda x: np.logaddexp(x, np.float32(0)),
        "sqrt": np.sqrt,
        "sub": np.subtract,
        "tanh": np.tanh,
        "where": np.where,
        "whole": _whole,
        "xor": np.logical_xor,
    }
)
