"""One two-dimensional convolution."""

from npusim import Graph, GraphBuilder, InputError, Normal


def conv(
    *,
    channels: int = 64,
    filters: int = 64,
    height: int = 56,
    width: int = 56,
    kernel: int = 3,
    stride: int = 1,
    pad: int = 1,
    dilation: int = 1,
    groups: int = 1,
    batch: int = 1,
    dtype: str = "bf16",
) -> Graph:
    """A square kernel over [batch, channels, height, width]; the default is a ResNet-50 layer."""
    if groups < 1 or channels % groups or filters % groups:
        raise InputError(f"conv: groups={groups} must divide {channels=} and {filters=}")
    sizes = {"channels": channels, "filters": filters, "height": height, "width": width}
    sizes |= {"kernel": kernel, "stride": stride, "pad": pad, "dilation": dilation}
    g = GraphBuilder("conv", sizes | {"groups": groups, "batch": batch, "dtype": dtype})
    fan_in = channels // groups * kernel * kernel
    x = g.input("x", (batch, channels, height, width), dtype)
    shape = (filters, channels // groups, kernel, kernel)
    weight = g.weight("weight", shape, dtype, Normal(fan_in**-0.5))
    bias = g.weight("bias", (filters,), dtype, Normal(0.02))
    y = g.add(
        "Conv",
        *(x, weight, bias),
        name="conv",
        kernel_shape=[kernel, kernel],
        strides=[stride, stride],
        pads=[pad] * 4,
        dilations=[dilation, dilation],
        group=groups,
    )
    return g.build(y)
