"""A small residual convolution net: strided, depthwise and pointwise convolutions, pools."""

from npusim import Graph, GraphBuilder, InputError, Normal, Size
from npusim.graph import qdq


def conv_block(
    *,
    batch: Size = 1,
    image: Size = 224,
    channels: Size = 64,
    dtype: str = "fp32",
    zero_point: int = 0,
) -> Graph:
    """From [batch, 3, image, image] to the mean of each channel, [batch, channels, 1, 1].

    The stem of ResNet (convolution and pool of stride 2) and one block of MobileNet (depthwise
    and pointwise convolution) with a residual. dtype=int8 gives the quantized model with fp32
    input and output, its BatchNormalizations folded into the convolutions.
    """
    sizes = {"batch": batch, "image": image, "channels": channels, "dtype": dtype}
    g = GraphBuilder("conv_block", sizes | {"zero_point": zero_point})
    if dtype == "int8":
        return _quantized(g, batch, image, channels, zero_point)
    if zero_point:
        raise InputError(f"conv_block: zero_point={zero_point} needs dtype=int8; found {dtype}")
    x = g.input("x", (batch, 3, image, image), dtype)
    stem = _conv_norm(g, "stem", x, 3, channels, kernel=7, stride=2, dtype=dtype)
    stem = g.add("Relu", stem, name="stem_relu")
    pool = _max_pool(g, stem)
    y = _conv_norm(g, "depthwise", pool, channels, channels, 3, 1, dtype, groups=channels)
    y = g.add("Relu", y, name="depthwise_relu")
    y = _conv_norm(g, "pointwise", y, channels, channels, kernel=1, stride=1, dtype=dtype)
    y = g.add("Relu", g.add("Add", y, pool, name="add"), name="add_relu")
    return g.build(g.add("GlobalAveragePool", y, name="mean"))


def _conv_norm(
    g: GraphBuilder,
    name: str,
    x: str,
    channels: int,
    filters: int,
    kernel: int,
    stride: int,
    dtype: str,
    groups: int = 1,
) -> str:
    """A convolution that keeps the size but for its stride, and its BatchNormalization."""
    fan_in = channels // groups * kernel * kernel
    shape = (filters, channels // groups, kernel, kernel)
    weight = g.weight(f"{name}.weight", shape, dtype, Normal(fan_in**-0.5))
    y = _convolution(g, name, (x, weight), kernel, stride, groups)
    one, small = Normal(0.1, loc=1.0), Normal(0.02)
    recipes = {"scale": one, "bias": small, "mean": small, "var": one}
    given = [g.weight(f"{name}_norm.{key}", (filters,), dtype, r) for key, r in recipes.items()]
    return g.add("BatchNormalization", y, *given, name=f"{name}_norm", epsilon=1e-5)


def _convolution(
    g: GraphBuilder, name: str, operands: tuple[str, ...], kernel: int, stride: int, groups: int
) -> str:
    square = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
    return g.add("Conv", *operands, name=name, group=groups, **square)


def _max_pool(g: GraphBuilder, x: str) -> str:
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    return g.add("MaxPool", x, name="pool", **window)


def _quantized(g: GraphBuilder, batch: int, image: int, channels: int, zero_point: int) -> Graph:
    """Each activation's largest value is what seeded data reaches, with some room."""

    def conv(
        name: str, x: str, source: qdq.Quantized, depth: int, kernel: int, stride: int, groups: int
    ) -> str:
        shape = (channels, depth // groups, kernel, kernel)
        fan_in = depth // groups * kernel * kernel
        weight, steps = qdq.weight(g, name, shape, fan_in=fan_in, axis=0)
        operands = (x, weight, qdq.bias(g, name, source, steps))
        return _convolution(g, name, operands, kernel, stride, groups)

    def quantized(x: str, largest: float) -> tuple[str, qdq.Quantized]:
        source = qdq.quantize(g, x, largest, zero_point)
        return qdq.dequantize(g, source), source

    x, source = quantized(g.input("x", (batch, 3, image, image), "fp32"), 5.5)
    y = g.add("Relu", conv("stem", x, source, 3, 7, 2, 1), name="stem_relu")
    y, source = quantized(y, 6.5)
    source = qdq.requantize(g, _max_pool(g, y), source)
    pool = qdq.dequantize(g, source)
    y = g.add(
        "Relu", conv("depthwise", pool, source, channels, 3, 1, channels), name="depthwise_relu"
    )
    y, source = quantized(y, 11.0)
    y, _ = quantized(conv("pointwise", y, source, channels, 1, 1, 1), 9.0)
    y = g.add("Relu", g.add("Add", y, pool, name="add"), name="add_relu")
    y, _ = quantized(y, 13.0)
    y, _ = quantized(g.add("GlobalAveragePool", y, name="mean"), 7.0)
    return g.build(y)
