"""Reads an ONNX file as far as ONNX itself goes: parsed, checked, inlined, at opset 28."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from npusim.core.errors import InputError, Place, Problem, nearest
from npusim.graph.infer import OPSET
from npusim.graph.onnx_lower import LOWERED, MICROSOFT
from npusim.graph.ops import operators

T = TypeVar("T")
_STANDARD = ("", "ai.onnx")


def read_model(path: Path) -> Any:
    """The model in the file as an onnx.ModelProto at opset 28, weights in it.

    Raises one InputError, placed at the file, for anything that is wrong with it: missing,
    truncated, no ONNX, unsupported operators (all of them), weights that are not there.
    """
    import onnx

    model = onnx.ModelProto()
    data = _bytes(path)
    guarded(path, "is no ONNX model, or a truncated one", lambda: model.ParseFromString(data))
    if not model.HasField("graph") or not model.opset_import:
        raise InputError(Problem("is no ONNX model, or a truncated one", Place(str(path))))
    guarded(path, "is no valid ONNX model", lambda: _check_names(model.graph))
    _load_external(path, model)
    model = _inlined(path, model)
    _refuse_unknown(path, model.graph.node, _all_standard_names())
    _refuse_shapeless(path, model.graph.input)
    guarded(path, "is no valid ONNX model", lambda: _check(model))
    model = _converted(path, model)
    _refuse_unknown(path, model.graph.node, set(operators()))
    return model


def guarded(path: Path, what: str, call: Callable[[], T]) -> T:
    """The result of a call into onnx; whatever it raises becomes an InputError about the file."""
    try:
        return call()
    except InputError as error:
        at = Place(str(path))
        raise InputError(
            *(Problem(f"{what}: {p.message}", at, p.hints) for p in error.problems)
        ) from None
    except Exception as error:  # onnx raises a dozen unrelated kinds
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = f": {lines[0]}" if lines else ""
        raise InputError(Problem(f"{what}{reason}", Place(str(path)))) from None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(Problem(f"cannot read the model: {reason}", Place(str(path)))) from None


def _check_names(graph: Any) -> None:
    """Protobuf hands damaged text out as bytes, or not at all."""
    names = [value.name for value in (*graph.input, *graph.output, *graph.initializer)]
    for value in graph.input:
        names += [dim.dim_param for dim in value.type.tensor_type.shape.dim]
    for node in graph.node:
        names += [node.name, node.op_type, node.domain, *node.input, *node.output]
        names += [attribute.name for attribute in node.attribute]
    if not all(isinstance(name, str) for name in names):
        raise ValueError("a name is no UTF-8")


def _load_external(path: Path, model: Any) -> None:
    """Weights kept in files beside the model; every one that is missing is named."""
    from onnx import external_data_helper

    stored = [t for t in model.graph.initializer if external_data_helper.uses_external_data(t)]
    missing = []
    for tensor in stored:
        location = external_data_helper.ExternalDataInfo(tensor).location
        if not os.path.isfile(path.parent / location):
            text = f"weight {tensor.name!r} is kept in {location!r}, which does not exist"
            missing.append(Problem(text, Place(str(path))))
    if missing:
        raise InputError(*missing)
    if stored:
        load = external_data_helper.load_external_data_for_model
        guarded(path, "weights cannot be read", lambda: load(model, str(path.parent)))


def _inlined(path: Path, model: Any) -> Any:
    """Functions that the file defines itself are replaced by their bodies."""
    if not model.functions:
        return model
    from onnx import inliner

    return guarded(
        path, "functions cannot be inlined", lambda: inliner.inline_local_functions(model)
    )


def _refuse_shapeless(path: Path, inputs: Iterable[Any]) -> None:
    tensors = [v for v in inputs if v.type.WhichOneof("value") == "tensor_type"]
    names = [v.name for v in tensors if not v.type.tensor_type.HasField("shape")]
    if names:
        raise InputError(
            *(Problem(f"input {n!r}: its rank is unknown", Place(str(path))) for n in names)
        )


def _check(model: Any) -> None:
    """ONNX's checker wants shapes of outputs, which real files lack and the import ignores."""
    import onnx

    tensors = [o for o in model.graph.output if o.type.WhichOneof("value") == "tensor_type"]
    shapeless = [o for o in tensors if not o.type.tensor_type.HasField("shape")]
    for output in shapeless:
        output.type.tensor_type.shape.SetInParent()
    onnx.checker.check_model(model)
    for output in shapeless:
        output.type.tensor_type.ClearField("shape")


def _all_standard_names() -> set[str]:
    from onnx import defs

    schemas = defs.get_all_schemas_with_history()
    return {schema.name for schema in schemas if schema.domain in _STANDARD}


def _refuse_unknown(path: Path, nodes: Iterable[Any], standard: set[str]) -> None:
    """One problem per operator that is not supported, however often it occurs."""
    problems: dict[tuple[str, str], Problem] = {}
    for index, node in enumerate(nodes):
        domain, op = node.domain, node.op_type
        if domain in _STANDARD:
            if op in standard:
                continue
            near, allowed = nearest(op, operators()), f"{len(operators())} of the default domain"
        elif domain == MICROSOFT and op in LOWERED:
            continue
        else:
            near, allowed = nearest(op, LOWERED), f"of {MICROSOFT}: {', '.join(sorted(LOWERED))}"
        name = node.name or f"{op}_{index}"
        label = f"{domain}.{op}" if domain not in _STANDARD else op
        hints = (*((f"nearest: {near}",) if near else ()), f"supported operators: {allowed}")
        problem = Problem(
            f"node {name!r}: operator {label} is not supported", Place(str(path)), hints
        )
        problems.setdefault((domain, op), problem)
    if problems:
        raise InputError(*problems.values())


def _converted(path: Path, model: Any) -> Any:
    from onnx import version_converter

    version = next((o.version for o in model.opset_import if o.domain in _STANDARD), OPSET)
    if version == OPSET:
        return model
    if version > OPSET:
        text = f"uses opset {version}; at most {OPSET} is supported"
        raise InputError(Problem(text, Place(str(path))))
    what = f"cannot be converted from opset {version} to {OPSET}"
    return guarded(path, what, lambda: version_converter.convert_version(model, OPSET))
