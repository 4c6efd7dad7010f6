"""One softmax over the rows of a matrix."""

from npusim import Graph, GraphBuilder, Size


def softmax(*, rows: Size = 4096, columns: Size = 4096, dtype: str = "bf16") -> Graph:
    """Each of `rows` rows of `columns` elements sums to 1."""
    g = GraphBuilder("softmax", {"rows": rows, "columns": columns, "dtype": dtype})
    x = g.input("x", (rows, columns), dtype)
    return g.build(g.add("Softmax", x, name="softmax", axis=-1))
