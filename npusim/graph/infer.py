"""Shapes and dtypes of an operator's results, by ONNX's own inference at opset 28."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from npusim.core.dtypes import DType, dtype, names
from npusim.core.errors import InputError, Problem
from npusim.graph.ir import Node, Tensor
from npusim.graph.onnx_types import Array, element_type, of_element_type, to_proto
from npusim.graph.ops import operator
from npusim.graph.ops.base import Operator, at_node

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
    unknown = op.attribute_problems(node)
    if unknown:
        raise InputError(*(_problem(node, inputs, message) for message in unknown))
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
    results = [
        _result(node, inputs, index, found) if name else None
        for index, name in enumerate(node.outputs)
    ]
    _check_use(op, node, inputs, results)
    return results


def to_node_proto(node: Node) -> Any:
    """The node as an onnx.NodeProto."""
    from onnx import AttributeProto, helper

    proto = helper.make_node(node.op, node.inputs, node.outputs, name=node.name)
    for key, value in sorted(node.attributes.items()):
        stored = to_proto(value) if hasattr(value, "dtype") else value
        empty = AttributeProto.INTS if isinstance(value, tuple) and not value else None
        proto.attribute.append(helper.make_attribute(key, stored, attr_type=empty))
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
            why = f"input {formal.name} cannot be {given.dtype}"
            raise _refused(node, inputs, why, *_instead(node, given.dtype, kinds))
        first = bound.setdefault(formal.type_str, given)
        variadic_mix = formal.option == formal.option.Variadic and not formal.is_homogeneous
        if first.dtype is not given.dtype and not variadic_mix:
            raise _refused(node, inputs, f"{first.name} and {given.name} must have one dtype")


def _instead(node: Node, found: DType, kinds: Sequence[str]) -> list[str]:
    """What may stand in the place of a dtype that is not allowed."""
    allowed = [name for name in names() if f"tensor({_onnx_name(dtype(name))})" in kinds]
    hints = [f"allowed: {', '.join(allowed)}"]
    if found.name in ("int8", "uint8") and node.op in ("MatMul", "Gemm", "Conv"):
        hints.append(f"{found} is multiplied between DequantizeLinear and QuantizeLinear")
    return hints


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


def _result(
    node: Node, inputs: Sequence[Tensor | None], index: int, found: Mapping[str, Any]
) -> tuple[Shape, DType]:
    """What ONNX infers of one output, completed by what the operator itself knows."""
    name = node.outputs[index]
    proto = found.get(name)
    kind = _known_type(node, inputs, name, proto)
    if proto is not None and proto.tensor_type.HasField("shape"):
        dims = proto.tensor_type.shape.dim
        if all(dim.HasField("dim_value") for dim in dims):
            return tuple(int(dim.dim_value) for dim in dims), kind
    try:
        shape = operator(node.op).result_shape(node, inputs, index)
    except InputError as error:
        raise InputError(*(at_node(node, problem) for problem in error.problems)) from None
    if shape is None:
        why = f"the shape of {name} depends on values that the model computes"
        raise _refused(node, inputs, why)
    return shape, kind


def _known_type(node: Node, inputs: Sequence[Tensor | None], name: str, proto: Any) -> DType:
    """The dtype ONNX infers; function operators without inference keep that of their input."""
    if proto is not None and proto.HasField("tensor_type"):
        return of_element_type(proto.tensor_type.elem_type)
    if not inputs or inputs[0] is None:
        raise _refused(node, inputs, f"the type of {name} is unknown")
    return inputs[0].dtype


def _check_use(
    op: Operator,
    node: Node,
    inputs: Sequence[Tensor | None],
    results: Sequence[tuple[Shape, DType] | None],
) -> None:
    outputs = [
        Tensor(name, *result, "intermediate") if result is not None else None
        for name, result in zip(node.outputs, results, strict=True)
    ]
    try:
        found = op.problems(node, inputs, outputs)
    except InputError as error:
        raise InputError(*(at_node(node, problem) for problem in error.problems)) from None
    if found:
        raise InputError(*(_problem(node, inputs, message) for message in found))


def _refused(node: Node, inputs: Sequence[Tensor | None], why: str, *hints: str) -> InputError:
    return InputError(_problem(node, inputs, why, *hints))


def _problem(node: Node, inputs: Sequence[Tensor | None], why: str, *hints: str) -> Problem:
    reason = why.replace("[ShapeInferenceError] ", "").replace("[TypeInferenceError] ", "").strip()
    given = ", ".join(f"{t.name} {list(t.shape)} {t.dtype}" for t in inputs if t is not None)
    return at_node(node, Problem(reason, hints=(*hints, f"inputs: {given or 'none'}")))
