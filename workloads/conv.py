"""One two-dimensional convolution."""

from typing import Annotated

from npusim import Between, Graph, GraphBuilder, InputError, Normal, Size


def conv(
    *,
    channels: Size = 64,
    filters: Size = 64,
    height: Size = 56,
    width: Size = 56,
    kernel: Size = 3,
    stride: Size = 1,
    pad: Annotated[int, Between(0)] = 1,
    dilation: Size = 1,
    groups: Size = 1,
    batch: Size = 1,
    dtype: str = "bf16",
) -> Graph:
    """A square kernel over [batch, channels, height, width]; the default is a ResNet-50 layer."""
    if channels % groups or filters % groups:
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
