"""Dtypes and tensors between npusim and ONNX protobufs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from npusim.core.dtypes import DType, dtype, names, of_numpy
from npusim.core.errors import InputError, Problem

Array = NDArray[Any]

#: Element types of onnx.TensorProto (onnx.proto, message TensorProto.DataType).
_ELEMENT_TYPES: Mapping[str, int] = {
    "fp32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "fp16": 10,
    "fp64": 11,
    "uint32": 12,
    "uint64": 13,
    "bf16": 16,
    "fp8e4m3": 17,
    "fp8e5m2": 19,
}


def element_type(kind: DType) -> int:
    """ONNX's number of a dtype."""
    return _ELEMENT_TYPES[kind.name]


def of_element_type(number: int) -> DType:
    """The dtype with this ONNX number; InputError that names the type and those supported."""
    for name, candidate in _ELEMENT_TYPES.items():
        if candidate == number:
            return dtype(name)
    import onnx

    known = number in onnx.TensorProto.DataType.values()
    found = onnx.TensorProto.DataType.Name(number) if known else str(number)
    raise InputError(
        Problem(f"element type {found} is not supported", hints=(f"allowed: {', '.join(names())}",))
    )


def to_proto(values: Array, name: str = "") -> Any:
    """An onnx.TensorProto with these values, little endian, whatever the dtype."""
    import onnx

    little = np.ascontiguousarray(values)
    return onnx.TensorProto(
        name=name,
        dims=values.shape,
        data_type=element_type(of_numpy(values.dtype)),
        raw_data=little.tobytes(),
    )


def from_proto(proto: Any) -> Array:
    """The values of an onnx.TensorProto; InputError for an unsupported element type."""
    from onnx import numpy_helper

    kind = of_element_type(proto.data_type)
    values = numpy_helper.to_array(proto)
    return np.asarray(values).astype(kind.numpy, copy=False)


def attributes_of(proto: Any) -> dict[str, Any]:
    """The attributes of an onnx.NodeProto as Python values: text, tuples, arrays."""
    from onnx import TensorProto, helper

    found = {}
    for attribute in proto.attribute:
        value = helper.get_attribute_value(attribute)
        if isinstance(value, TensorProto):
            value = from_proto(value)
        elif isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        elif isinstance(value, list):
            value = tuple(
                v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in value
            )
        found[attribute.name] = value
    return found
