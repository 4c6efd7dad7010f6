"""ONNX's own cases for single operators, against the references.

Every case of an operator we have must pass, but for those that EXPECTED_TO_FAIL explains; and
those must fail, so that the list stays honest.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict

import numpy as np
import pytest

from npusim import InputError, Node
from npusim.graph.onnx_types import attributes_of, from_proto
from npusim.graph.ops import operator, operators

#: Lowest number of passing cases: the table of the specification's node tests, less the failures.
AT_LEAST = {"Attention": 90, "Resize": 38, "Cast": 8, "Clip": 12, "QuantizeLinear": 6, "Conv": 6}

EXPECTED_TO_FAIL = {
    r"(cast|castlike)_.*(FNUZ|E8M0|INT2|INT4|E2M1)": "formats that no machine here computes with",
    r"(de)?quantizelinear_(u?int[24]|float4e2m1)": "packed 2- and 4-bit formats",
    r"batchnorm_.*training_mode": "training",
    r"training_dropout(_default)?(_mask)?$": "training",
    r"equal_string": "text",
    r"identity_(sequence|opt)": "sequences and optional values",
}


def why_not(name: str) -> str | None:
    short = name.removeprefix("test_")
    return next((why for p, why in EXPECTED_TO_FAIL.items() if re.match(p, short)), None)


@pytest.fixture(scope="session")
def cases():
    """The cases of single operators that we have, by operator."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some generators overflow on purpose
        loaded = load_model_tests(kind="node")
    known, found = set(operators()), defaultdict(list)
    for case in loaded:
        nodes = case.model.graph.node
        if len(nodes) == 1 and nodes[0].op_type in known and not nodes[0].domain:
            found[nodes[0].op_type].append(case)
    return found


@pytest.mark.parametrize("op", operators())
def test_cases_of(op, cases):
    passed, wrong = 0, []
    for case in cases[op]:
        expected_failure = why_not(case.name)
        difference = _first_difference(case)
        passed += difference is None
        if (difference is None) == (expected_failure is not None):
            wrong.append(f"{case.name}: {difference or 'passes, although listed as failing'}")
    assert wrong == []
    assert passed >= AT_LEAST.get(op, 1)


def test_every_listed_failure_exists(cases):
    names = [case.name.removeprefix("test_") for found in cases.values() for case in found]
    unused = [p for p in EXPECTED_TO_FAIL if not any(re.match(p, name) for name in names)]
    assert unused == []


def _first_difference(case) -> str | None:
    """What is wrong with the first result that differs; None if all agree."""
    proto = case.model.graph.node[0]
    try:
        node = Node(
            case.name, proto.op_type, tuple(proto.input), tuple(proto.output), attributes_of(proto)
        )
        for inputs, outputs in case.data_sets:
            given, wanted = iter(inputs), iter(outputs)
            arrays = [_array(next(given)) if name else None for name in proto.input]
            for name, got in zip(
                node.outputs, operator(node.op).reference(node, arrays), strict=True
            ):
                if name and (difference := _difference(got, _array(next(wanted)))):
                    return f"{name}: {difference}"
    except (InputError, ValueError) as error:
        return str(error).splitlines()[0]
    return None


def _array(value) -> np.ndarray:
    if isinstance(value, list):
        raise ValueError("a sequence")
    return value if isinstance(value, np.ndarray | np.generic) else from_proto(value)


def _difference(got: np.ndarray | None, wanted: np.ndarray) -> str | None:
    """ONNX's tolerances: 1e-3 relative, 2^-6 for bf16; integers and fp8 exact."""
    if got is None or got.shape != wanted.shape:
        return f"shape {None if got is None else got.shape}, expected {wanted.shape}"
    stored = got.astype(wanted.dtype)
    if wanted.dtype.kind in "biu":
        same = np.array_equal(stored, wanted) and got.dtype.kind in "biu"
        return None if same else f"{got.dtype} {stored.reshape(-1)[:4]}, expected {wanted[:4]}"
    tolerance = {"bfloat16": 2.0**-6, "float16": 2e-3}.get(str(wanted.dtype), 1e-3)
    if "float8" in str(wanted.dtype):
        tolerance = 0.0
    a, b = stored.astype(np.float64), wanted.astype(np.float64)
    close = np.allclose(a, b, rtol=tolerance, atol=1e-5 if tolerance else 0.0, equal_nan=True)
    return None if close else f"{a.reshape(-1)[:4]}, expected {b.reshape(-1)[:4]}"
