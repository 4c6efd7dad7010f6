"""NaN, infinity, ties, empties and overflow: every case of the table that concerns one operator.

`expected` decides; where it is a sentence, WRITTEN_OUT holds what it says. The columns with the
answers of other implementations are second opinions that sometimes disagree.
"""

from __future__ import annotations

import ast
import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npusim import Filled, GraphBuilder, InputError, Node
from npusim.graph.ops import operator

TABLE = Path(__file__).parents[1] / "data/numerics/corner_cases.csv"
ROWS = [
    row
    for row in csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines())
    if row["why_or_source"] != "npusim level, not run"
]
NAN, INF = np.nan, np.inf

#: (operator, case) -> the values that the sentence in `expected` describes, or an exception.
WRITTEN_OUT: dict[tuple[str, str], Any] = {
    ("ArgMax", "tie: select_last_index=1"): 1,
    ("ArgMin", "NaN"): 1,
    ("TopK", "k = 0"): [],
    ("TopK", "NaN largest"): [NAN],
    ("Softmax", "axis=0 vs default -1"): [0.5, 0.5, 0.5, 0.5],
    ("Softmax", "zero-size axis"): np.zeros((2, 0)),
    ("Sigmoid", "extremes"): [0, 1, 2.23e-39, NAN],
    ("HardSwish", "NaN/-inf"): [NAN, NAN, 0],
    ("Add", "broadcast with zero dim (0,3)+(1,3)"): np.zeros((0, 3)),
    ("Add", "broadcast scalar rank 0"): [3, 3, 3, 3],
    ("Add", "incompatible (2,)+(3,)"): InputError,
    ("MatMul", "K=0"): np.zeros((2, 3)),
    ("MatMul", "vector @ vector -> scalar"): np.array(32.0),
    ("MatMul", "batch broadcast (2,1,2,3)@(4,3,2)"): np.full((2, 4, 2, 2), 3.0),
    ("MatMul", "NaN confined to its row"): [NAN, NAN, 2, 2],
    ("MatMulInteger", "u8 x s8 with zero points"): -32512,
    ("MatMulInteger", "K=65536 of 255*127 needs int32: 2.12e9"): 2122383360,
    ("Gemm", "beta with C broadcast, transB"): [3.5, 4, 4.5, 5] * 2,
    ("BatchNormalization", "var=0, eps"): [316.2277, 316.2277],
    ("Conv", "1x1 input 1x1 kernel"): 6,
    ("Conv", "auto_pad SAME_UPPER even kernel"): [4, 4, 4, 2] * 3 + [2, 2, 2, 1],
    ("Conv", "group=depthwise"): np.full((1, 4, 1, 1), 9.0),
    ("MaxPool", "padding must be -inf not 0"): [-5] * 9,
    ("MaxPool", "NaN in window"): NAN,  # implementation defined: ours is that of Max
    ("AveragePool", "count_include_pad=0"): [1] * 9,
    ("GlobalAveragePool", "fp16 sum overflow 4096 x 100"): 100,
    ("Gather", "out of range"): InputError,
    ("Gather", "empty indices"): np.zeros(0),
    ("Slice", "start beyond end"): np.zeros(0),
    ("Concat", "negative axis with empty tensor"): np.ones((1, 2)),
    ("Reshape", "0 copies dim, -1 infers"): np.zeros((2, 12)),
    ("Reshape", "allowzero=1 with empty"): np.zeros((3, 0)),
    ("Transpose", "rank-0 / empty perm"): np.array(3.0),
    ("Expand", "to smaller shape keeps"): np.ones((3, 4)),
    ("Pad", "reflect with pad >= dim"): [2, 3, 2, 1, 2, 3],  # defined as numpy's
    ("Split", "uneven with num_outputs"): [1, 2, 3],
    ("Cast", "fp32->bf16 NaN payload"): [NAN],
    ("QuantizeLinear", "NaN / inf"): [0, 127, -128],  # NaN is undefined by ONNX: 0 here
    ("DynamicQuantizeLinear", "all positive input keeps 0 in range"): [85, 170, 255],
    ("Attention", "bool mask fully masked row"): [2, 3, 0, 0],
    ("Attention", "NaN in masked-out V"): [NAN] * 4,  # 0 times NaN, as both references have it
    ("Attention", "GQA 2 q heads 1 kv head"): [1, 1, 1, 1],
    ("Cast", "float->int8 out of range"): [44, -44, 0, 127],  # wraps; 127.9 towards zero
}
#: Input dtypes where the table's numbers alone do not tell.
DTYPES = {
    ("Add", "int8 wraps? (Add int8 opset14)"): ("int8", "int8"),
    ("Div", "int truncates toward zero"): ("int32", "int32"),
    ("Mod", "fmod=0 int: sign of divisor"): ("int32", "int32"),
    ("MatMul", "int32 product wrap"): ("int32", "int32"),
    ("MatMulInteger", "u8 x s8 with zero points"): ("uint8", "int8", "uint8", "int8"),
    ("QuantizeLinear", "NaN / inf"): ("float32", "float32", "int8"),
    ("Softmax", "fp16 range"): ("float16",),
    ("Gelu", "tanh approx fp16 x=100 (x^3 overflows fp16)"): ("float16",),
    ("MatMul", "fp16 partial-sum overflow that cancels"): ("float16", "float16"),
    ("LayerNormalization", "fp16 input 300..303: x^2 > 65504"): ("float16", "float16"),
    ("RMSNormalization", "fp16 x=300 squares overflow fp16"): ("float16", "float16"),
}
#: Arrays of which the table gives only shape, dtype and sum.
WHOLE = {
    "shape(4, 3, 2) float32 sum=24.0 nan=0": np.ones((4, 3, 2), np.float32),
    "shape(1, 65536) uint8 sum=16711680.0 nan=0": np.full((1, 65536), 255, np.uint8),
    "shape(65536, 1) int8 sum=8323072.0 nan=0": np.full((65536, 1), 127, np.int8),
    "shape(1, 4, 3, 3) float32 sum=36.0 nan=0": np.ones((1, 4, 3, 3), np.float32),
    "shape(4, 1, 3, 3) float32 sum=36.0 nan=0": np.ones((4, 1, 3, 3), np.float32),
    "shape(1, 1, 64, 64) float16 sum=409600.0 nan=0": np.full((1, 1, 64, 64), 100, np.float16),
    "shape(2, 3, 4) float32 sum=0.0 nan=0": np.zeros((2, 3, 4), np.float32),
}


def numbers(text: str) -> Any:
    """A list as the table writes it: nan, inf, true, numbers that start with a point."""
    text = re.sub(r"(?<![\w.])(-?)\.(\d)", r"\g<1>0.\2", text)
    names = {"nan": "None", "inf": "1e999", "true": "True", "false": "False"}
    for name, value in names.items():
        text = re.sub(rf"\b{name}\b", value, text)
    return ast.literal_eval(re.sub(r"\(.*?\)", "", text))


def flat(value: Any) -> np.ndarray:
    found = np.asarray(value, dtype=object).reshape(-1)
    return np.array([NAN if v is None else float(v) for v in found])


def array(text: str, kind: str | None) -> np.ndarray | None:
    if text == "None":
        return None
    if text in WHOLE:
        return WHOLE[text]
    empty = re.match(r"empty shape(\(.*?\)) (\w+)", text)
    if empty:
        return np.zeros(ast.literal_eval(empty[1]), empty[2])
    shaped = re.match(r"shape(\(.*?\)) (.*)", text)
    values, shape = (shaped[2], ast.literal_eval(shaped[1])) if shaped else (text, None)
    found = flat(numbers(values))
    if kind is None:
        whole = not re.search(r"\.|nan|inf|e", values.replace("True", "").replace("False", ""))
        kind = "bool" if "True" in values or "False" in values else "int64" if whole else "float32"
    return found.astype(kind).reshape(shape if shape is not None else found.shape)


def node_of(row: dict[str, str]) -> tuple[Node, list[np.ndarray | None]]:
    texts = row["input"].split("; ")
    kinds = DTYPES.get((row["op"], row["case"]), (None,) * len(texts))
    arrays = [array(text, kind) for text, kind in zip(texts, kinds, strict=True)]
    attributes = ast.literal_eval(row["attrs"]) if row["attrs"] else {}
    attributes = {k: tuple(v) if isinstance(v, list) else v for k, v in attributes.items()}
    if row["case"] == "fp32->bf16 NaN payload":
        attributes["to"] = 16  # the table tells the target in words
    if row["op"] == "QuantizeLinear":
        attributes = {}
    names = tuple("" if a is None else f"x{i}" for i, a in enumerate(arrays))
    count = {"TopK": 2, "Split": 2, "DynamicQuantizeLinear": 3}.get(row["op"], 1)
    return Node(
        "corner", row["op"], names, tuple(f"y{i}" for i in range(count)), attributes
    ), arrays


def wanted_of(row: dict[str, str]) -> Any:
    """The values, or the exception, that the table expects."""
    key = (row["op"], row["case"])
    if key in WRITTEN_OUT:
        return WRITTEN_OUT[key]
    text = re.match(r"\[.*?\](?=$|:|;| )", row["expected"])
    assert text is not None, "neither a list nor written out"
    return flat(numbers(text[0]))


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['op']}: {row['case']}" for row in ROWS])
def test_corner_case(row):
    wanted = wanted_of(row)
    node, arrays = node_of(row)
    if wanted is InputError:
        with pytest.raises(InputError, match=row["op"]):
            _build_and_run(node, arrays)
        return
    got = operator(node.op).reference(node, arrays)[0]
    assert got is not None
    if isinstance(wanted, np.ndarray) and wanted.ndim != 1:
        assert got.shape == wanted.shape
    floats = [x.dtype for x in arrays if x is not None and x.dtype.kind == "f"]
    with np.errstate(over="ignore"):
        stored = got.astype(floats[0]) if floats and got.dtype == np.float64 else got
    # the table has four digits; nothing is forgiven around zero
    np.testing.assert_allclose(stored.astype(np.float64).reshape(-1), flat(wanted), rtol=2e-3)


def _build_and_run(node: Node, arrays: list[np.ndarray | None]) -> None:
    """Wrong shapes must fail when the graph is built, wrong values when it runs."""
    g = GraphBuilder("corner")
    for name, value in zip(node.inputs, arrays, strict=True):
        if value is not None:
            g.weight(name, value.shape, str(value.dtype), Filled(0.0))
    g.add(node.op, *node.inputs, name=node.op, outputs=node.outputs, **node.attributes)
    operator(node.op).reference(node, arrays)


def test_every_written_out_case_exists():
    assert WRITTEN_OUT.keys() | DTYPES.keys() <= {(row["op"], row["case"]) for row in ROWS}
    assert len(ROWS) == 98
