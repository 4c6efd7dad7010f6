"""Compares device values with float64 references, operator by operator or several as one."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np

from npusim.check.deviation import worst_element
from npusim.check.propagate import Error, propagated
from npusim.check.rounding import Bound, Rounding
from npusim.check.tolerance import bounds
from npusim.core.dtypes import DType, of_numpy
from npusim.graph.ir import Graph, Node
from npusim.graph.onnx_types import Array
from npusim.graph.ops import operator


@dataclass(frozen=True)
class Check:
    """The verdict on one output of one operator.

    `tolerance_ratio` is the largest |error| / tolerance, `max_error` the |error| there and
    `where` its index (None if the output is empty or without error). `nonfinite` counts elements
    that are NaN or infinite in the reference; they are only compared by kind.
    """

    operator: str
    output: str
    validated: bool
    max_error: float
    tolerance_ratio: float
    where: tuple[int, ...] | None
    message: str
    nonfinite: int = 0


@dataclass(frozen=True)
class _Known:
    """A tensor inside the checked operators: its reference, and how far off it may be."""

    value: Array
    error: Error | None


def check_operator(
    graph: Graph, node: Node, values: Mapping[str, Array], rounding: Rounding
) -> list[Check]:
    """One verdict per present output; `values` holds the device's arrays of inputs and outputs.

    The reference is computed from the device's inputs, so errors do not add up over operators.
    Raises KeyError if an array is missing.
    """
    checks = check_group(graph, [node], values, rounding)
    checked = {check.output for check in checks}
    missing = [name for name in node.present_outputs() if name not in checked]
    if missing:
        raise KeyError(missing[0])
    return checks


def check_group(
    graph: Graph, nodes: Sequence[Node], values: Mapping[str, Array], rounding: Rounding
) -> list[Check]:
    """Operators checked as one: a verdict per output that `values` holds.

    `nodes` are in order. `values` must hold the inputs that none of them writes; what they pass
    to each other is the reference's own, off by at most its own bound, one rounding to the
    graph's dtype, and what came in with its inputs.
    """
    known: dict[str, _Known] = {}
    last = {name: index for index, node in enumerate(nodes) for name in node.inputs}
    checks: list[Check] = []
    for index, node in enumerate(nodes):
        wanted = {name for name in node.outputs if last.get(name, -1) > index}
        checks += _check_node(graph, node, values, known, wanted, rounding)
        for name in [n for n in known if last[n] <= index]:
            del known[name]
    return checks


def _check_node(
    graph: Graph,
    node: Node,
    values: Mapping[str, Array],
    known: dict[str, _Known],
    wanted: Container[str],
    rounding: Rounding,
) -> Iterator[Check]:
    """Check an operator's results, and keep those that later ones want."""
    operands = [_operand(graph, name, values, known) if name else None for name in node.inputs]
    inputs = [None if operand is None else operand.value for operand in operands]
    errors = [None if operand is None else operand.error for operand in operands]
    references = operator(node.op).reference(node, inputs)
    own = bounds(node, inputs, references, rounding)
    passed = propagated(node, inputs, errors, references)
    for name, reference, bound, error in zip(node.outputs, references, own, passed, strict=True):
        if reference is None:
            continue
        if name in values:
            yield _verdict(node, name, values[name], reference, bound, error)
        if name in wanted:
            kind = graph.tensors[name].dtype
            known[name] = _Known(reference, _rounded(reference, bound, error, kind))


def _operand(
    graph: Graph, name: str, values: Mapping[str, Array], known: Mapping[str, _Known]
) -> _Known:
    """What an operator read. A tap wider than the graph's dtype may have been rounded to it."""
    if name in known:
        return known[name]
    value, kind = values[name], graph.tensors[name].dtype
    if kind.is_float and value.dtype.itemsize > kind.itemsize:
        return _Known(value, _rounded(value.astype(np.float64), Bound(), None, kind))
    return _Known(value, None)


def _rounded(reference: Array, bound: Bound, error: Error | None, kind: DType) -> Error | None:
    """The error of a tensor that stays inside, whether it is rounded to the graph's dtype or not.

    A rounding is uniform (deviation: bound / sqrt(3)); an operator's own bound has room enough
    that a quarter of it is more than the deviation. Errors are kept in fp32.
    """
    if bound.exact:
        return error
    size = np.abs(reference).astype(np.float32)
    own = np.asarray(bound.absolute, np.float32) + np.float32(bound.relative) * size
    step = np.float32(kind.unit_roundoff) * size
    whole, spread = own + step, own / 4 + step / np.float32(sqrt(3))
    if error is not None and kind.is_float:
        whole, spread = whole + error.bound, np.sqrt(np.square(spread) + np.square(error.spread))
    elif error is not None:
        whole, spread = np.maximum(whole, error.bound), np.maximum(spread, error.spread)
    for part in (whole, spread):
        part[~np.isfinite(part)] = 0.0
    return Error(whole, spread)


def _with_inputs(bound: Bound, error: Error | None, kind: DType) -> Bound:
    """The bound widened by what came in with the inputs; of integers either moves a rounding."""
    if error is None:
        return bound
    add = np.add if kind.is_float else np.maximum
    return replace(bound, absolute=np.asarray(add(bound.absolute, error.bound)), exact=False)


def _verdict(
    node: Node, output: str, device: Array, reference: Array, bound: Bound, error: Error | None
) -> Check:
    what = f"{node.op} {node.name!r}, output {output!r}"
    if device.shape != reference.shape:
        text = f"{what}: got shape {list(device.shape)}, expected {list(reference.shape)}"
        return Check(node.name, output, False, inf, inf, None, text)
    worst = worst_element(device, reference, _with_inputs(bound, error, of_numpy(device.dtype)))
    wild = int(reference.size - np.count_nonzero(np.isfinite(reference)))
    if worst.index is None:
        return Check(node.name, output, True, worst.error, worst.ratio, None, bound.note, wild)
    where = tuple(int(i) for i in np.unravel_index(worst.index, reference.shape))
    valid = worst.ratio <= 1
    message = bound.note
    if not valid:
        got, expected = (x.reshape(-1)[worst.index] for x in (device, reference))
        message = (
            f"{what}{list(where)}: got {float(got):.9g}, expected {float(expected):.9g}, "
            f"error {worst.error:.3g}, tolerance {worst.tolerance:.3g}; "
            f"{worst.failed} of {reference.size} elements beyond theirs"
            + (f" ({bound.note})" if bound.note else "")
        )
    return Check(node.name, output, valid, worst.error, worst.ratio, where, message, wild)
