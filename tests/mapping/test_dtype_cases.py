"""Known encodings and roundings of number formats, by the references and on npu_a."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from npusim.core.dtypes import dtype
from npusim.graph.onnx_types import element_type
from npusim.graph.ops import operator
from npusim.plan.language import AUTO
from npusim.plan.lower import lower

TABLE = Path(__file__).parents[1] / "data/numerics/dtype_cases.csv"
#: Formats of the table that machines here compute with, by its names.
FORMATS = {
    "float8_e4m3fn": "fp8e4m3",
    "float8_e5m2": "fp8e5m2",
    "bfloat16": "bf16",
    "float16": "fp16",
    "int8": "int8",
    "uint8": "uint8",
}
EIGHT_BITS = ("fp8e4m3", "fp8e5m2")


def rows_of(kind):
    with TABLE.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == kind]
    return [row for row in rows if row["dtype"] in FORMATS]


def of_code(text, kind):
    """The number with this code, 0x7c, in a format."""
    code = np.array([int(text.split("=")[0], 16)], f"u{dtype(kind).itemsize}")
    return code.view(dtype(kind).numpy)


def computed(bench, op, operands, attributes):
    """What the reference of an operator gives, and what npu_a does."""
    graph = bench.single(op, operands, attributes)
    outcome = bench.compute(graph, lower(graph, bench.machine, AUTO, bench.all_kernels))
    assert outcome.failures == []
    (node,) = graph.nodes
    return operator(op).reference(node, operands)[0], outcome.value("y")


def assert_same_bits(found, wanted):
    assert found.dtype == wanted.dtype
    missing = np.isnan(wanted.astype(np.float64))
    assert np.array_equal(np.isnan(found.astype(np.float64)), missing)
    assert np.array_equal(found[~missing].view(np.uint8), wanted[~missing].view(np.uint8))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "float16"])
def test_decoding(bench, name):
    rows, kind = [row for row in rows_of("decode") if row["dtype"] == name], FORMATS[name]
    codes = np.concatenate([of_code(row["input"], kind) for row in rows])
    wanted = np.array([float(row["expected"]) for row in rows])
    for found in computed(bench, "Cast", [codes], {"to": element_type(dtype("fp32"))}):
        assert_same_bits(found.astype(np.float64), wanted)


ENCODINGS = [("nonsat", name) for name in ("float8_e4m3fn", "float8_e5m2", "bfloat16", "float16")]
ENCODINGS += [("sat", name) for name in ("float8_e4m3fn", "float8_e5m2")]


@pytest.mark.parametrize("mode, name", ENCODINGS)
def test_encoding(bench, mode, name):
    """Only the eight-bit formats have a Cast that saturates."""
    rows, kind = [r for r in rows_of(f"encode_rne_{mode}") if r["dtype"] == name], FORMATS[name]
    given = np.array([float(row["input"]) for row in rows], np.float32)
    wanted = np.concatenate([of_code(row["expected"], kind) for row in rows])
    saturate = {"saturate": int(mode == "sat")} if kind in EIGHT_BITS else {}
    attributes = {"to": element_type(dtype(kind)), **saturate}
    for found in computed(bench, "Cast", [given], attributes):
        assert_same_bits(found, wanted)


@pytest.mark.parametrize("kind", EIGHT_BITS)
def test_every_code_of_eight_bits(bench, kind):
    codes = np.arange(256, dtype=np.uint8).view(dtype(kind).numpy)
    for found in computed(bench, "Cast", [codes], {"to": element_type(dtype("fp32"))}):
        assert_same_bits(found.astype(np.float32), codes.astype(np.float32))


QUANTIZED = rows_of("quantize_linear")


@pytest.mark.parametrize("row", QUANTIZED, ids=[f"{r['dtype']} {r['input']}" for r in QUANTIZED])
def test_quantization(bench, row):
    x, scale, zero = (float(n) for n in re.findall(r"=(\S+)", row["input"]))
    operands = [
        np.array([x], np.float32),
        np.float32(scale),
        np.array(zero).astype(dtype(FORMATS[row["dtype"]]).numpy),
    ]
    for found in computed(bench, "QuantizeLinear", operands, {}):
        assert found.tolist() == [int(row["expected"])]
