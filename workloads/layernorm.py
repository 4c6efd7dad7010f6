"""One layer normalization over the rows of a matrix."""

from npusim import Graph, GraphBuilder, Normal, Size


def layernorm(*, rows: Size = 4096, columns: Size = 4096, dtype: str = "bf16") -> Graph:
    """Each of `rows` rows of `columns` elements, with scale and bias."""
    g = GraphBuilder("layernorm", {"rows": rows, "columns": columns, "dtype": dtype})
    x = g.input("x", (rows, columns), dtype)
    scale = g.weight("scale", (columns,), dtype, Normal(0.1, loc=1.0))
    bias = g.weight("bias", (columns,), dtype, Normal(0.02))
    return g.build(
        g.add("LayerNormalization", x, scale, bias, name="layernorm", axis=-1, epsilon=1e-5)
    )
