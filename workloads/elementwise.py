"""One element-wise operator on matrices."""

from npusim import Graph, GraphBuilder, InputError, Size

_UNARY = ("Abs", "Cos", "Erf", "Exp", "Gelu", "HardSwish", "Neg", "Relu", "Sigmoid", "Sin", "Tanh")
_BINARY = ("Add", "Div", "Max", "Min", "Mul", "Sub", "SwiGLU")


def elementwise(
    *, op: str = "Add", rows: Size = 4096, columns: Size = 4096, dtype: str = "bf16"
) -> Graph:
    """`op` on one or two [rows, columns] matrices, as it takes."""
    if op not in _UNARY + _BINARY:
        raise InputError(f"elementwise: op={op!r}; allowed: {', '.join(_UNARY + _BINARY)}")
    g = GraphBuilder("elementwise", {"op": op, "rows": rows, "columns": columns, "dtype": dtype})
    operands = [g.input("a", (rows, columns), dtype)]
    if op in _BINARY:
        operands.append(g.input("b", (rows, columns), dtype))
    return g.build(g.add(op, *operands, name="elementwise"))
