"""Mistakes in matrix products and what follows them."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import GraphBuilder, Grid, Integers


def followed(bench):
    """A product and Relu, as one group."""
    builder = GraphBuilder("relu")
    inputs = [builder.input(n, s, "fp32") for n, s in (("a", (40, 130)), ("b", (130, 50)))]
    last = builder.add("MatMul", *inputs, name="y")
    return builder.build(builder.add("Relu", last, name="z"))


def quantized(bench):
    """A product of int8 with zero points, quantized again."""
    builder = GraphBuilder("quantized")
    shapes = {"x": (40, 64), "w": (64, 50)}
    names = [builder.input(n, s, "int8", Integers(-128, 127)) for n, s in shapes.items()]
    step, out = (builder.constant(n, np.float32(v)) for n, v in (("s", 0.02), ("t", 0.05)))
    zeros = [builder.constant(f"z{n}", np.int8(n)) for n in (7, 0, 11)]
    real = [
        builder.add("DequantizeLinear", n, step, z, name=f"{n}.real")
        for n, z in zip(names, zeros[:2], strict=True)
    ]
    last = builder.add("MatMul", *real, name="y")
    return builder.build(builder.add("QuantizeLinear", last, out, zeros[2], name="q"))


def gated(bench):
    builder = GraphBuilder("gated")
    x = builder.input("x", (40, 72), "bf16")
    gate, up = (
        builder.add("MatMul", x, builder.input(f"w{n}", (72, 50), "bf16"), name=n)
        for n in ("gate", "up")
    )
    gate = builder.add("Relu", gate, name="relu")
    return builder.build(builder.add("Mul", gate, up, name="h"))


def normed(bench):
    builder = GraphBuilder("normed")
    x, scale = builder.input("x", (40, 72), "bf16"), builder.input("scale", (72,), "bf16")
    normal = builder.add("RMSNormalization", x, scale, name="norm")
    weights = [builder.input(f"w{n}", (72, 50), "bf16") for n in range(2)]
    products = [builder.add("MatMul", normal, w, name=f"p{n}") for n, w in enumerate(weights)]
    return builder.build(products)


MATMUL = ("MatMul", [(70, 130), (130, 65)])
SQUARE = ("MatMul", [(64, 64), (64, 64)])
BF16 = ("MatMul", [(70, 130), (130, 65)], {"kind": "bf16"})
GEMM = ("Gemm", [(70, 40), (40, 65), (65,)], {"alpha": 0.5, "beta": 2.0})
TILES = {"m": 32, "n": 32, "k": 32, "grid": Grid(m=2)}
SPLIT_K = {**TILES, "grid": Grid(k=2)}
SMALL = {"m": 32, "n": 32, "k": 32}

LOOP = ("_multiply.py", "for p in K.tiles(self.k):")
SUMS = ("_multiply.py", "self.acc, left, right, first=p.first, zero_a=zero_a")
DTYPE = ("matmul.py", "op.accumulate(A.dtype), B.dtype)")
ADDED = ("matmul.py", "t.store(piece, scaled, via=out, epilogue=product.epilogue, add_over=parts)")
BETA = ("matmul.py", 'else bias * op.attribute("beta")')
BIAS = ("matmul.py", "[piece.key[2:]]")
ZEROS = ("matmul.py", "product.zero(0), product.zero(1))")

#: name -> graph, kernel, choices, (file, right), wrong, what else is expected
MISTAKES = {
    "a tile of K left out": (
        MATMUL, "matmul", TILES, LOOP,
        "for p in (q for q in K.tiles(self.k) if q.first or not q.last):", {},
    ),
    "a tile of K added twice": (
        MATMUL, "matmul", TILES, LOOP,
        "for p in (q for q in K.tiles(self.k) for _ in range(1 + q.last)):", {},
    ),
    "the last tile of a core's K not clipped": (
        ("MatMul", [(40, 130), (130, 50)]), "matmul", {**SPLIT_K, "k": 40}, LOOP,
        "for p in (type(q)('k', q.start, min(self.k, A.k.size - q.start), q.index, q.first, "
        "q.last) for q in K.tiles(self.k)):", {},
    ),
    "operands swapped": (
        SQUARE, "matmul", TILES, SUMS, "self.acc, right, left, first=p.first, zero_a=zero_a", {},
    ),
    "sums that go on from the tile before": (
        SQUARE, "matmul", TILES, SUMS,
        "self.acc, left, right, first=p.first and j.first, zero_a=zero_a", {},
    ),
    "every product overwrites the sum": (
        MATMUL, "matmul", TILES, SUMS, "self.acc, left, right, first=True, zero_a=zero_a", {},
    ),
    "tiles of the result exchanged": (
        SQUARE, "matmul", TILES, ("_multiply.py", "finish(C[x, y, i, j]"), "finish(C[x, y, j, i]",
        {},
    ),
    "sums of bf16 products kept in bf16": (
        BF16, "matmul", TILES, DTYPE, "A.dtype, B.dtype)",
        {"by": "checker", "says": ("wrong accumulate dtype", "in fp32, C is bf16")},
    ),
    "sums of int8 products kept in fp32": (
        quantized, "matmul", TILES, DTYPE, 't.acc("fp32", 1, 1).dtype, B.dtype)',
        {"by": "checker", "says": ("wrong accumulate dtype", "in int32, C is fp32")},
    ),
    "parts of a split sum not added up": (
        MATMUL, "matmul", SPLIT_K, ADDED, ADDED[1].replace("=parts", "=None"), {},
    ),
    "what follows applied to parts of a split sum": (
        followed, "matmul", SPLIT_K, ADDED,
        "shown = product.epilogue.apply(t, piece, scaled, out)\n"
        "        t.store(piece, t.vec(sums, shown), via=out, add_over=parts)",
        {"operators": ("y", "z")},
    ),
    "bias of the first columns for all": (
        GEMM, "matmul", SMALL, BIAS, "[piece.key[2], slice(0, piece.shape[1])]", {},
    ),
    "bias scaled with alpha": (
        GEMM, "matmul", SMALL, BETA, BETA[1].replace("beta", "alpha"), {},
    ),
    "zero points of the operands exchanged": (
        quantized, "matmul", SMALL, ZEROS, "product.zero(1), product.zero(0))", {},
    ),
    "gate and up exchanged": (
        gated, "gated_ffn", {"m": 32, "f": 32, "k": 32},
        ("gated_ffn.py", "for name, total in zip(results, sums, strict=True):"),
        "for name, total in zip(results, sums[::-1], strict=True):",
        {"operators": ("gate", "relu", "up", "h")},
    ),
    "normalized rows never handed over": (
        normed, "norm_qkv", SMALL, ("norm_qkv.py", "            t.store(normal[r, c], tile)\n"), "",
        {
            "operators": ("norm", "p0", "p1"), "by": "checker",
            "says": ("is read without a value", "nothing writes normalized"),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_is_found(bench, plant, tmp_path, name):
    plant.assert_found(bench, tmp_path, plant.planted(*MISTAKES[name]))
