"""Writes a graph as an ONNX file, its weights made from their recipes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from npusim.core.dtypes import DType, dtype
from npusim.core.errors import InputError, Place, Problem
from npusim.graph.infer import OPSET, to_node_proto
from npusim.graph.ir import Graph, Node, Tensor
from npusim.graph.onnx_import import SIZES_KEY
from npusim.graph.onnx_types import Array, element_type, of_element_type, to_proto
from npusim.graph.recipe import realize

#: The oldest format that knows every dtype written here; readers refuse versions they do not know.
_IR_VERSION = 10
#: Weights beyond this are written to a file beside the model (a protobuf ends at 2 GiB).
_EXTERNAL_BYTES = 3 << 29
_WIDENED = ("fp64", "fp32", "fp16", "bf16")
#: Opset 28 only adds dtypes to these that npusim does not have; onnxruntime 1.32 knows them at 25.
_UNCHANGED_SINCE_25 = ("Cast", "DequantizeLinear", "OneHot", "QuantizeLinear")


def export_onnx(
    graph: Graph, path: str | Path, float_dtype: str | None = None, seed: int = 0
) -> None:
    """Write the graph to `path`; complete or not at all.

    `float_dtype` (float32) stores every float tensor in that dtype, values unchanged where it
    is the wider one, so that onnxruntime can run a bf16 model; fp8 stays. Weights beyond 1.5 GiB
    go to `path`.data. Raises InputError if the file cannot be written.
    """
    target = Path(path)
    kind = dtype(float_dtype) if float_dtype else None
    if kind is not None and not kind.is_float:
        raise InputError(Problem(f"--dtype {float_dtype}: expected a float dtype"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
            _write(graph, Path(folder), target, kind, seed)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(Problem(f"cannot write the model: {reason}", Place(str(target)))) from None


def _write(graph: Graph, folder: Path, target: Path, kind: DType | None, seed: int) -> None:
    """Write beside the target, then rename: the data first, the model that needs it last."""
    model = _model(graph, kind)
    weights = list(graph.weights())
    total = sum(t.size * _stored(t.dtype, kind).itemsize for t in weights)
    data = f"{target.name}.data" if total > _EXTERNAL_BYTES else None
    if data is None:
        for t in weights:
            model.graph.initializer.append(to_proto(_values(t, kind, seed), t.name))
    else:
        with (folder / data).open("wb") as stream:
            for t in weights:
                model.graph.initializer.append(_external(t, kind, seed, stream, data))
    (folder / target.name).write_bytes(model.SerializeToString())
    if data is not None:
        os.replace(folder / data, target.parent / data)
    os.replace(folder / target.name, target)


def _model(graph: Graph, kind: DType | None) -> Any:
    from onnx import helper

    nodes = [to_node_proto(_widened(node, kind)) for node in graph.nodes]
    inputs, outputs = (
        [_value_info(graph.tensors[name], kind) for name in names]
        for names in (graph.inputs, graph.outputs)
    )
    body = helper.make_graph(nodes, graph.name, inputs, outputs)
    imports = [helper.make_opsetid("", _opset(graph))]
    model = helper.make_model(body, opset_imports=imports, producer_name="npusim")
    model.ir_version = _IR_VERSION
    helper.set_model_props(model, {SIZES_KEY: json.dumps(dict(graph.sizes), sort_keys=True)})
    return model


def _opset(graph: Graph) -> int:
    """28, or 25 where the graph has operators whose form of 28 runtimes do not know yet."""
    from onnx import defs

    used = {node.op for node in graph.nodes}
    others = used.difference(_UNCHANGED_SINCE_25)
    newest = max((defs.get_schema(op, OPSET).since_version for op in others), default=1)
    return 25 if used != others and newest <= 25 else OPSET


def _stored(found: DType, kind: DType | None) -> DType:
    return kind if kind is not None and found.name in _WIDENED else found


def _value_info(tensor: Tensor, kind: DType | None) -> Any:
    from onnx import helper

    number = element_type(_stored(tensor.dtype, kind))
    return helper.make_tensor_value_info(tensor.name, number, tensor.shape)


def _values(tensor: Tensor, kind: DType | None, seed: int) -> Array:
    if tensor.recipe is None:
        raise InputError(Problem(f"weight {tensor.name!r} has no values"))
    values = realize(tensor.recipe, tensor.shape, tensor.dtype, seed, tensor.name)
    return values.astype(_stored(tensor.dtype, kind).numpy, copy=False)


def _external(tensor: Tensor, kind: DType | None, seed: int, stream: Any, file: str) -> Any:
    """Write the values behind those already in the stream; returns the tensor that finds them."""
    import onnx

    start = stream.tell()
    values = _values(tensor, kind, seed)
    stream.write(values.tobytes())
    proto = onnx.TensorProto(name=tensor.name, dims=tensor.shape)
    proto.data_type = element_type(_stored(tensor.dtype, kind))
    proto.data_location = onnx.TensorProto.EXTERNAL
    where = {"location": file, "offset": start, "length": stream.tell() - start}
    for key, value in where.items():
        proto.external_data.add(key=key, value=str(value))
    return proto


def _widened(node: Node, kind: DType | None) -> Node:
    """The node with every dtype that its attributes name replaced."""
    if kind is None:
        return node
    attributes: Mapping[str, Any] = {
        key: _widened_attribute(key, value, kind) for key, value in node.attributes.items()
    }
    return Node(node.name, node.op, node.inputs, node.outputs, attributes)


def _widened_attribute(key: str, value: Any, kind: DType) -> Any:
    if key in ("to", "output_dtype", "precision", "softmax_precision") and value:
        return element_type(_stored(of_element_type(value), kind))
    if key == "value" and hasattr(value, "dtype"):
        from npusim.core.dtypes import of_numpy

        return value.astype(_stored(of_numpy(value.dtype), kind).numpy)
    return value
