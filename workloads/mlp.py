"""A multilayer perceptron: MatMul, Add and Relu per layer."""

from typing import Annotated

from npusim import Between, Graph, GraphBuilder, InputError, Normal, Size
from npusim.graph import qdq


def mlp(
    *,
    batch: Size = 128,
    inputs: Size = 784,
    hidden: Size = 1024,
    outputs: Size = 10,
    layers: Annotated[int, Between(1, 1000)] = 3,
    dtype: str = "bf16",
    zero_point: int = 0,
) -> Graph:
    """`layers` layers from `inputs` over `hidden` to `outputs` features; the last has no Relu.

    dtype=int8 gives the quantized model with fp32 input and output; its activations have the
    given zero point.
    """
    sizes = {"batch": batch, "inputs": inputs, "hidden": hidden, "outputs": outputs}
    sizes |= {"layers": layers, "dtype": dtype, "zero_point": zero_point}
    widths = [inputs, *[hidden] * (layers - 1), outputs]
    if dtype == "int8":
        return _quantized(GraphBuilder("mlp", sizes), batch, widths, zero_point)
    if zero_point:
        raise InputError(f"mlp: zero_point={zero_point} needs dtype=int8; found dtype={dtype}")
    g = GraphBuilder("mlp", sizes)
    x = g.input("x", (batch, inputs), dtype)
    for index, (rows, columns) in enumerate(zip(widths, widths[1:], strict=False), start=1):
        weight = g.weight(f"fc{index}.weight", (rows, columns), dtype, Normal(rows**-0.5))
        bias = g.weight(f"fc{index}.bias", (columns,), dtype, Normal(0.02))
        x = g.add("MatMul", x, weight, name=f"fc{index}")
        x = g.add("Add", x, bias, name=f"bias{index}")
        if index < layers:
            x = g.add("Relu", x, name=f"relu{index}")
    return g.build(x)


def _quantized(g: GraphBuilder, batch: int, widths: list[int], zero_point: int) -> Graph:
    layers, deviation = len(widths) - 1, 1.0
    x = qdq.quantize(g, g.input("x", (batch, widths[0]), "fp32"), 4.5, zero_point)
    for index, (rows, columns) in enumerate(zip(widths, widths[1:], strict=False), start=1):
        weight, steps = qdq.weight(g, f"fc{index}", (rows, columns), fan_in=rows, axis=1)
        y = g.add("MatMul", qdq.dequantize(g, x), weight, name=f"fc{index}")
        y = g.add("Add", y, qdq.bias(g, f"fc{index}", x, steps), name=f"bias{index}")
        if index < layers:
            y = g.add("Relu", y, name=f"relu{index}")
        x = qdq.quantize(g, y, 5.5 * deviation, zero_point)
        deviation *= 0.5**0.5  # what Relu leaves of the deviation
    return g.build(qdq.dequantize(g, x))
