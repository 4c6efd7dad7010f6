"""Conversion between dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from npusim.graph.ir import Node
from npusim.graph.onnx_types import of_element_type
from npusim.graph.ops.base import Array, Arrays, Operator, is_float, needed

_FLOAT8 = (np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2))


def to_float(x: Array, storage: np.dtype[Any], saturating: bool) -> Array:
    """x rounded to nearest even in a float dtype; an fp8 saturates (infinity too) if asked to."""
    if storage not in _FLOAT8 or not saturating:
        return x.astype(storage)
    largest = float(ml_dtypes.finfo(storage).max)
    return np.clip(x.astype(np.float64), -largest, largest).astype(storage)


class Cast(Operator):
    """The values in another dtype: floats to nearest even, floats to integers towards zero.

    What does not fit an integer wraps or is undefined, as in ONNX; an fp8 saturates by default.
    FLOPs: 0, a conversion.
    """

    family = "elementwise"
    defaults = {"round_mode": "up", "saturate": 1, "to": None}

    def _values(self, node: Node, inputs: Arrays) -> Sequence[Array | None]:
        x, kind = needed(inputs[0]), of_element_type(self.attribute(node, "to"))
        if kind.is_float:
            return [to_float(x, kind.numpy, bool(self.attribute(node, "saturate")))]
        if kind.name == "bool":
            return [x != 0]
        if is_float(x) and kind.itemsize < 8:
            return [x.astype(np.float64).astype(np.int64).astype(kind.numpy)]
        return [x.astype(kind.numpy)]
