"""Shapes and dtypes of an operator's results, by ONNX's own inference at opset 28."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npusim.core.dtypes import DType
from npusim.core.errors import InputError, Problem
from npusim.graph.ir import Node, Tensor
from npusim.graph.onnx_types import Array, element_type, of_element_type, to_proto
from npusim.graph.ops import operator
from npusim.graph.ops.base import at_node

OPSET = 28
#: Larger constants never decide a shape; they are not handed to the inference.
_LARGEST_SHAPE_DATA = 1024

Shape = tuple[int, ...]


def infer(
    node: Node, inputs: Sequence[Tensor | None], constants: Mapping[str, Array]
) -> list[tuple[Shape, DType] | None]:
    """Shape and dtype of each of the node's outputs, None for an absent one.

    `constants` are the values known of input tensors (a Reshape's shape). Raises InputError
    naming the operator and the shapes it was given: inconsistent shapes or dtypes, a use that
    npusim does not support, or a shape that depends on values known only when the model runs.
    """
    import onnx
    from onnx import defs, shape_inference

    op = operator(node.op)
    schema = defs.get_schema(node.op, OPSET, "")
    _check_types(schema, node, inputs)
    types = {t.name: _type_proto(t) for t in inputs if t is not None}
    data = {name: to_proto(v) for name, v in constants.items() if v.size <= _LARGEST_SHAPE_DATA}
    try:
        found = shape_inference.infer_node_outputs(
            schema,
            to_node_proto(node),
            types,
            data,
            opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        )
    except (shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError) as error:
        raise _refused(node, inputs, str(error)) from None
    results = [_static(node, inputs, name, found) if name else None for name in node.outputs]
    _check_use(op.problems, node, inputs, results)
    return results


def to_node_proto(node: Node) -> Any:
    """The node as an onnx.NodeProto."""
    from onnx import helper

    proto = helper.make_node(node.op, node.inputs, node.outputs, name=node.name)
    for key, value in sorted(node.attributes.items()):
        stored = to_proto(value) if hasattr(value, "dtype") else value
        proto.attribute.append(helper.make_attribute(key, stored))
    return proto


def _check_types(schema: Any, node: Node, inputs: Sequence[Tensor | None]) -> None:
    """Each input has a dtype that the schema allows, and inputs of one type variable agree."""
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    bound: dict[str, Tensor] = {}
    if not schema.min_input <= len(inputs) <= schema.max_input:
        raise _refused(node, inputs, f"takes {schema.min_input} to {schema.max_input} inputs")
    for index, given in enumerate(inputs):
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        if given is None:
            if formal.option == formal.option.Single:
                raise _refused(node, inputs, f"input {formal.name} is required")
            continue
        kinds = allowed.get(formal.type_str, [formal.type_str])
        if f"tensor({_onnx_name(given.dtype)})" not in kinds:
            raise _refused(node, inputs, f"input {formal.name} cannot be {given.dtype}")
        first = bound.setdefault(formal.type_str, given)
        variadic_mix = formal.option == formal.option.Variadic and not formal.is_homogeneous
        if first.dtype is not given.dtype and not variadic_mix:
            raise _refused(node, inputs, f"{first.name} and {given.name} must have one dtype")


def _onnx_name(kind: DType) -> str:
    names = {
        "fp64": "double",
        "fp32": "float",
        "fp16": "float16",
        "bf16": "bfloat16",
        "fp8e4m3": "float8e4m3fn",
        "fp8e5m2": "float8e5m2",
    }
    return names.get(kind.name, kind.name)


def _type_proto(tensor: Tensor) -> Any:
    from onnx import helper

    return helper.make_tensor_type_proto(element_type(tensor.dtype), tensor.shape)


def _static(
    node: Node, inputs: Sequence[Tensor | None], name: str, found: Mapping[str, Any]
) -> tuple[Shape, DType]:
    proto = found.get(name)
    if proto is None or not proto.HasField("tensor_type"):
        first = inputs[0] if inputs else None
        if first is None:
            raise _refused(node, inputs, f"the type of {name} is unknown")
        return first.shape, first.dtype  # function operators without inference keep the shape
    kind = of_element_type(proto.tensor_type.elem_type)
    dims = proto.tensor_type.shape.dim
    if not proto.tensor_type.HasField("shape") or not all(d.HasField("dim_value") for d in dims):
        raise _refused(
            node, inputs, f"the shape of {name} depends on values that the model computes"
        )
    return tuple(int(d.dim_value) for d in dims), kind


def _check_use(
    problems: Any,
    node: Node,
    inputs: Sequence[Tensor | None],
    results: Sequence[tuple[Shape, DType] | None],
) -> None:
    outputs = [
        Tensor(name, *result, "intermediate") if result is not None else None
        for name, result in zip(node.outputs, results, strict=True)
    ]
    try:
        found = problems(node, inputs, outputs)
    except InputError as error:
        raise InputError(*(at_node(node, problem) for problem in error.problems)) from None
    if found:
        raise InputError(*(_problem(node, inputs, message) for message in found))


def _refused(node: Node, inputs: Sequence[Tensor | None], why: str) -> InputError:
    return InputError(_problem(node, inputs, why))


def _problem(node: Node, inputs: Sequence[Tensor | None], why: str) -> Problem:
    reason = why.replace("[ShapeInferenceError] ", "").replace("[TypeInferenceError] ", "").strip()
    given = ", ".join(f"{t.name} {list(t.shape)} {t.dtype}" for t in inputs if t is not None)
    return at_node(node, Problem(reason, hints=(f"inputs: {given or 'none'}",)))
