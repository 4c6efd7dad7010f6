"""One matrix product."""

from npusim import Graph, GraphBuilder, Normal, Size


def matmul(
    *, m: Size = 2048, n: Size = 2048, k: Size = 2048, batch: Size = 1, dtype: str = "bf16"
) -> Graph:
    """[m, k] times [k, n]; with batch other than 1 as many independent products of that size."""
    sizes = {"m": m, "n": n, "k": k, "batch": batch, "dtype": dtype}
    g = GraphBuilder("matmul", sizes)
    lead = () if batch == 1 else (batch,)
    a = g.input("a", (*lead, m, k), dtype)
    b = g.weight("b", (*lead, k, n), dtype, Normal(k**-0.5))
    return g.build(g.add("MatMul", a, b, name="matmul"))
