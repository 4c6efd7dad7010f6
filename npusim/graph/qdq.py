"""int8 models in the QuantizeLinear/DequantizeLinear form that onnxruntime's quantizer writes.

Activations are int8 per tensor, weights symmetric int8 per output channel, biases int32 in units
of input step times weight step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npusim.core.errors import InputError, Problem
from npusim.graph.builder import GraphBuilder
from npusim.graph.onnx_types import Array
from npusim.graph.recipe import Normal

#: Standard deviation of quantized weights: their largest, about four deviations, just fits.
_WEIGHT_DEVIATION = 30.0


@dataclass(frozen=True)
class Quantized:
    """An int8 tensor of a graph with the names of its scale and zero point; `step` per unit."""

    tensor: str
    scale: str
    zero_point: str
    step: float


def quantize(g: GraphBuilder, x: str, largest: float, zero_point: int = 0) -> Quantized:
    """Add a QuantizeLinear of x that holds -largest .. largest without saturating."""
    if not -64 <= zero_point <= 64:
        raise InputError(Problem(f"zero_point={zero_point}; allowed: -64 to 64"))
    step = float(np.float32(largest / (127 - abs(zero_point))))
    scale = g.constant(f"{x}.scale", np.float32(step))
    zero = g.constant(f"{x}.zero_point", np.int8(zero_point))
    return Quantized(
        g.add("QuantizeLinear", x, scale, zero, name=f"{x}.quantize"), scale, zero, step
    )


def requantize(g: GraphBuilder, x: str, like: Quantized) -> Quantized:
    """Add a QuantizeLinear of x with the scale of another tensor, as pools and moves have."""
    name = g.add("QuantizeLinear", x, like.scale, like.zero_point, name=f"{x}.quantize")
    return Quantized(name, like.scale, like.zero_point, like.step)


def dequantize(g: GraphBuilder, x: Quantized) -> str:
    """Add the DequantizeLinear that turns x back into fp32."""
    name = x.tensor.removesuffix(".quantize")
    return g.add("DequantizeLinear", x.tensor, x.scale, x.zero_point, name=f"{name}.dequantize")


def weight(
    g: GraphBuilder, name: str, shape: Sequence[int], fan_in: int, axis: int
) -> tuple[str, Array]:
    """A dequantized int8 weight with deviation fan_in^-1/2, and its fp32 step per channel.

    The steps of the channels along `axis` differ by up to a quarter.
    """
    spread = 1 + 0.25 * np.sin(np.arange(shape[axis]))
    steps = (spread * fan_in**-0.5 / _WEIGHT_DEVIATION).astype(np.float32)
    values = g.weight(f"{name}.weight", shape, "int8", Normal(_WEIGHT_DEVIATION))
    scale = g.constant(f"{name}.weight.scale", steps)
    zero = g.constant(f"{name}.weight.zero_point", np.zeros(shape[axis], np.int8))
    node = f"{name}.weight.dequantize"
    return g.add("DequantizeLinear", values, scale, zero, name=node, axis=axis), steps


def bias(g: GraphBuilder, name: str, x: Quantized, steps: Array) -> str:
    """A dequantized int32 bias, N(0, 0.02), in units of the input's step times the weight's."""
    units = (np.float32(x.step) * steps).astype(np.float32)
    values = g.weight(f"{name}.bias", units.shape, "int32", Normal(0.02 / float(units.mean())))
    scale = g.constant(f"{name}.bias.scale", units)
    zero = g.constant(f"{name}.bias.zero_point", np.zeros(units.shape, np.int32))
    return g.add("DequantizeLinear", values, scale, zero, name=f"{name}.bias.dequantize", axis=0)
