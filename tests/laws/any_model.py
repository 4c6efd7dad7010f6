"""Small models of every kind of work, with sizes that a test draws."""

from npusim import Graph, GraphBuilder, Normal


def any_model(
    *, kind: str = "product", a: int = 8, b: int = 8, c: int = 8, dtype: str = "fp32"
) -> Graph:
    """One of the models below with three sizes."""
    g = GraphBuilder(kind)
    return g.build(MODELS[kind](g, a, b, c, dtype))


def product(g: GraphBuilder, m: int, n: int, k: int, dtype: str) -> list[str]:
    """A product, its bias, an activation, and a second product."""
    x = g.add("MatMul", g.input("x", (m, k), dtype), weight(g, "w", (k, n), dtype), name="fc1")
    x = g.add("Add", x, g.weight("bias", (n,), dtype, Normal(0.1)), name="bias1")
    x = g.add("Relu", x, name="act")
    return [g.add("MatMul", x, weight(g, "w2", (n, m), dtype), name="fc2")]


def attention(g: GraphBuilder, queries: int, past: int, size: int, dtype: str) -> list[str]:
    """Four heads on two of keys, behind a cache."""
    new = [g.input(name, (1, 2, queries, size), dtype) for name in "kv"]
    old = [g.input(f"past_{name}", (1, 2, past, size), dtype) for name in "kv"]
    q, outputs = g.input("q", (1, 4, queries, size), dtype), ["y", "keys", "values"]
    return list(g.add("Attention", q, *new, "", *old, name="y", outputs=outputs, is_causal=1))


def convolution(g: GraphBuilder, channels: int, side: int, filters: int, dtype: str) -> list[str]:
    """A padded convolution, a normalization, and two pools."""
    x = g.input("x", (1, channels, side, side + 1), dtype)
    w = weight(g, "w", (filters, channels, 3, 3), dtype)
    x = g.add("Conv", x, w, name="conv", pads=[1, 1, 1, 1], strides=[2, 1])
    window = {"kernel_shape": [2, 2], "pads": [0, 0, 1, 1]}
    x = g.add("MaxPool", x, name="pool", **window)
    return [x, g.add("GlobalAveragePool", x, name="mean")]


def rows(g: GraphBuilder, height: int, width: int, _: int, dtype: str) -> list[str]:
    """Normalizations and what follows them."""
    x = g.input("x", (height, width), dtype)
    scale = g.weight("scale", (width,), dtype, Normal(0.1, loc=1.0))
    x = g.add("RMSNormalization", x, scale, name="norm", axis=-1, epsilon=1e-5)
    y = g.add("Sigmoid", x, name="sigmoid")
    return [g.add("Softmax", g.add("Mul", x, y, name="swish"), name="softmax", axis=-1)]


def moves(g: GraphBuilder, a: int, b: int, c: int, dtype: str) -> list[str]:
    """Copies only, but for the last."""
    x, y = g.input("x", (a, b, c), dtype), g.input("y", (a, 3, c), dtype)
    joined = g.add("Concat", x, y, name="joined", axis=1)
    turned = g.add("Transpose", joined, name="turned", perm=[2, 0, 1])
    return [turned, g.add("Neg", turned, name="neg")]


def weight(g: GraphBuilder, name: str, shape: tuple[int, ...], dtype: str) -> str:
    """A weight whose products do not grow."""
    return g.weight(name, shape, dtype, Normal(max(shape[0], 1) ** -0.5))


MODELS = {
    "product": product, "attention": attention, "convolution": convolution, "rows": rows,
    "moves": moves,
}  # fmt: skip
