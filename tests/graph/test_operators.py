"""What holds for all operators: names, attributes, refusals; and the work of each family."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import Given, Graph, GraphBuilder, InputError, Node, Normal, dtype
from npusim.check.compare import check_operator
from npusim.check.rounding import Rounding
from npusim.graph.evaluate import evaluate, initial_values
from npusim.graph.ops import operator, operators

MUST_HAVE = """
    MatMul Gemm Conv ConvTranspose Attention RotaryEmbedding RMSNormalization
    LayerNormalization GroupNormalization InstanceNormalization BatchNormalization Softmax
    TensorScatter Relu LeakyRelu Clip Sigmoid Tanh Gelu Erf Swish SwiGLU HardSigmoid
    HardSwish Add Sub Mul Div Pow Sqrt Reciprocal Exp Log Neg Abs Min Max Sin Cos Where
    Equal Less Greater And Not ReduceSum ReduceMean ReduceMax ArgMax TopK CumSum MaxPool
    AveragePool GlobalAveragePool Resize Pad Reshape Transpose Concat Split Slice Gather
    ScatterND ScatterElements Squeeze Unsqueeze Expand Flatten Cast Shape Range
    ConstantOfShape Trilu OneHot QuantizeLinear DequantizeLinear MatMulInteger
    DynamicQuantizeLinear ConvInteger QLinearConv GatherElements Identity Sum Mean ReduceMin
    ReduceProd LogSoftmax Constant Tile
"""


def test_the_operators_that_models_need_are_there():
    assert set(MUST_HAVE.split()) <= set(operators())


def test_unknown_operator_names_the_nearest():
    with pytest.raises(InputError) as error:
        operator("Softmaxx")
    assert "operator 'Softmaxx' is not supported" in str(error.value)
    assert "nearest: Softmax" in str(error.value)


@pytest.mark.parametrize("name", operators())
def test_attributes_and_defaults_are_those_of_opset_28(name):
    from onnx import defs, helper

    schema = defs.get_schema(name, 28)
    honoured = operator(name).defaults
    assert set(honoured) <= set(schema.attributes)
    left_out = set(schema.attributes) - set(honoured)
    assert left_out <= {"value_string", "value_strings", "sparse_value"}
    for key, ours in honoured.items():
        stated = schema.attributes[key].default_value
        theirs = helper.get_attribute_value(stated) if stated.name else None
        theirs = theirs.decode() if isinstance(theirs, bytes) else theirs
        same = np.float32(ours) == np.float32(theirs) if isinstance(ours, float) else ours == theirs
        assert same, f"{key}: {ours}, ONNX has {theirs}"


def one(op: str, *inputs: tuple | np.ndarray, outputs: int = 1, **attributes) -> Graph:
    """One operator on bf16 tensors of these shapes, or on constants."""
    g = GraphBuilder("one")
    names = []
    for index, given in enumerate(inputs):
        if isinstance(given, np.ndarray):
            names.append(g.constant(f"x{index}", given))
        else:
            names.append(g.weight(f"x{index}", given, "bf16", Normal()) if given else "")
    return g.build(g.add(op, *names, name="op", outputs=outputs, **attributes))


def flops(graph: Graph) -> int:
    (node,) = graph.nodes
    inputs, outputs = graph.operand_tensors(node), graph.result_tensors(node)
    return operator(node.op).flops(node, inputs, outputs)


def minimum_bytes(graph: Graph) -> int:
    (node,) = graph.nodes
    inputs, outputs = graph.operand_tensors(node), graph.result_tensors(node)
    return operator(node.op).minimum_bytes(node, inputs, outputs)


def test_flops_of_matrix_products():
    assert flops(one("MatMul", (3, 8, 16), (16, 4))) == 2 * 3 * 8 * 16 * 4
    assert flops(one("MatMul", (16,), (16,))) == 2 * 16
    assert flops(one("Gemm", (8, 16), (4, 16), (4,), transB=1)) == 2 * 8 * 16 * 4 + 32
    assert flops(one("Gemm", (16, 8), (16, 4), (4,), transA=1, beta=0.5)) == 1024 + 64
    assert flops(one("Gemm", (8, 16), (16, 4), (4,), beta=0.0)) == 1024


def test_flops_of_convolutions_leave_padding_out():
    inner = one("Conv", (1, 3, 8, 8), (4, 3, 3, 3))
    assert flops(inner) == 2 * 6 * 6 * 4 * 27
    padded = one("Conv", (1, 3, 8, 8), (4, 3, 3, 3), (4,), pads=[1, 1, 1, 1])
    taps = (3 * 8 - 2) ** 2  # along each axis the two outer windows lose one tap
    assert flops(padded) == 2 * taps * 3 * 4 + 4 * 64
    depthwise = one("Conv", (1, 6, 8, 8), (6, 1, 3, 3), group=6)
    assert flops(depthwise) == 2 * 36 * 9 * 6
    dilated = one("Conv", (1, 1, 8), (1, 1, 3), dilations=[2], strides=[2], pads=[1, 2])
    assert flops(dilated) == 2 * (2 + 3 + 3 + 2)
    assert flops(one("ConvTranspose", (1, 3, 4, 4), (3, 5, 2, 2), strides=[2, 2])) == 2 * 48 * 20


def test_flops_of_attention_count_visible_pairs():
    packed = {"q_num_heads": 4, "kv_num_heads": 2}
    per_pair = 2 * (8 + 8) + 6
    q, kv = (1, 5, 32), (1, 5, 16)
    assert flops(one("Attention", q, kv, kv, **packed)) == 4 * 25 * per_pair
    assert flops(one("Attention", q, kv, kv, is_causal=1, **packed)) == 4 * 15 * per_pair
    past = (1, 2, 3, 8)
    behind = one("Attention", q, kv, kv, (), past, past, outputs=3, is_causal=1, **packed)
    assert flops(behind) == 4 * (15 + 5 * 3) * per_pair
    window = one("Attention", q, kv, kv, is_causal=1, left_window_size=1, **packed)
    assert flops(window) == 4 * (1 + 2 * 4) * per_pair
    masked = one("Attention", q, kv, kv, (5, 5), softcap=30.0, **packed)
    assert flops(masked) == 4 * 25 * (per_pair + 4)


@pytest.mark.parametrize(
    ("op", "inputs", "per_element"),
    [
        ("Add", ((4, 6), (4, 6)), 1),
        ("Max", ((4, 6), (6,), (4, 1)), 2),
        ("Sigmoid", ((4, 6),), 1),
        ("Gelu", ((4, 6),), 5),
        ("Swish", ((4, 6),), 2),
        ("SwiGLU", ((4, 6), (4, 6)), 3),
        ("Softmax", ((4, 6),), 5),
        ("LayerNormalization", ((4, 6), (6,), (6,)), 7),
        ("RMSNormalization", ((4, 6), (6,)), 4),
        ("ReduceSum", ((4, 6), np.array([1])), 1),
        ("Transpose", ((4, 6),), 0),
        ("Where", (np.ones((4, 6), bool), (4, 6), (6,)), 0),
        ("Cast", ((4, 6),), 0),
        ("Clip", ((4, 6), np.float32(0), ()), 1),
    ],
)
def test_flops_per_element(op, inputs, per_element):
    attributes = {"to": 1} if op == "Cast" else {}
    inputs = tuple(
        x.astype("bfloat16") if op == "Clip" and isinstance(x, np.generic) else x for x in inputs
    )
    inputs = tuple(np.asarray(x) if isinstance(x, np.generic) else x for x in inputs)
    assert flops(one(op, *inputs, **attributes)) == per_element * 24


def test_flops_of_rotary_embedding_and_pools():
    full = one("RotaryEmbedding", (1, 4, 2 * 8), (1, 4, 4), (1, 4, 4), num_heads=2)
    assert flops(full) == 3 * 64
    partial = one(
        "RotaryEmbedding",
        *((1, 4, 2 * 8), (1, 4, 2), (1, 4, 2)),
        num_heads=2,
        rotary_embedding_dim=4,
    )
    assert flops(partial) == 3 * 32
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    assert flops(one("MaxPool", (1, 3, 8, 8), **pool)) == 3 * 16 * 3
    assert flops(one("AveragePool", (1, 3, 8, 8), **pool)) == 3 * 16 * 4
    assert flops(one("GlobalAveragePool", (1, 3, 8, 8))) == 192


def test_minimum_bytes_count_every_tensor_once():
    assert minimum_bytes(one("MatMul", (8, 16), (16, 4))) == 2 * (128 + 64 + 32)
    assert minimum_bytes(one("Relu", (8, 16))) == 2 * 256
    assert minimum_bytes(one("Reshape", (8, 16), np.array([16, 8]))) == 0
    assert minimum_bytes(one("Flatten", (8, 4, 4))) == 0
    assert minimum_bytes(one("Shape", (8, 4, 4))) == 0


def test_a_gather_reads_only_its_rows():
    assert minimum_bytes(one("Gather", (1000, 64), np.array([3, 5]))) == 2 * 2 * 64 * 2 + 16
    cut = one("Slice", (1000, 64), np.array([0]), np.array([2]))
    assert minimum_bytes(cut) == 2 * 2 * 64 * 2 + 16
    cache = one("TensorScatter", (1, 8, 1000, 64), (1, 8, 1, 64), np.array([7]))
    assert minimum_bytes(cache) == 2 * 8 * 64 * 2 + 8


REFUSED = [
    (
        "BatchNormalization",
        ((1, 3, 4), *[(3,)] * 4),
        {"training_mode": 1},
        "op outputs should be 3",
    ),
    ("Gelu", ((3,),), {"approximate": "erf"}, "approximate='erf' is not supported"),
    ("Relu", ((3,),), {"alpha": 1.0}, "attribute 'alpha' is not supported"),
    ("Softmax", ((3,),), {"axes": 1}, "attribute 'axes' is not supported; nearest: axis"),
    ("Attention", ((1, 2, 6), (1, 2, 6), (1, 2, 6)), {}, "expected to have q_num_heads"),
    (
        "Attention",
        ((1, 3, 2, 8), (1, 2, 2, 8), (1, 2, 2, 8)),
        {},
        "3 query heads are no multiple of 2 KV heads",
    ),
    *(
        (
            "Attention",
            ((1, 3, 2, 8), (1, 3, 5, 8), (1, 3, 5, 8), mask),
            {},
            f"attn_mask {list(mask)} does not broadcast to [batch, heads, queries, keys]",
        )
        for mask in ((2, 6), (3, 5), (1, 2, 2, 5), (2, 3, 2, 5), (1, 1, 1, 2, 5))
    ),
    ("RotaryEmbedding", ((1, 2, 8), (1, 2, 3), (1, 2, 3)), {"num_heads": 2}, "cos_cache (1, 2, 3)"),
    ("Conv", ((1, 4, 8), (4, 3, 3)), {}, "4 channels, 1 groups and weight (4, 3, 3) do not fit"),
    ("ScatterND", ((4,), np.array([[1]]), (1,)), {"reduction": "sub"}, "reduction='sub'"),
    ("Pad", ((4,), np.array([1, 1])), {"mode": "mirror"}, "mode='mirror'"),
    ("Resize", ((1, 1, 4), (), (), np.array([1, 1, 8])), {"mode": "area"}, "mode='area'"),
    ("MatMul", ((2, 3), (4, 5)), {}, "Incompatible dimensions for matrix multiplication"),
    ("MatMul", ((2, 3), np.ones((3, 2), np.float32)), {}, "x0 and x1 must have one dtype"),
    ("Not", ((2, 3),), {}, "input X cannot be bf16"),
    ("Add", ((2, 3),), {}, "takes 2 to 2 inputs"),
    ("Conv", ((1, 4, 8), ()), {}, "input W is required"),
]


@pytest.mark.parametrize(("op", "inputs", "attributes", "message"), REFUSED)
def test_refusals_name_operator_node_and_inputs(op, inputs, attributes, message):
    with pytest.raises(InputError) as error:
        one(op, *inputs, **attributes)
    text = str(error.value)
    assert f"{op} 'op': " in text and message in text and error.value.exit_code == 2


def test_a_shape_error_shows_both_shapes():
    with pytest.raises(InputError, match=r"inputs: x0 \[2, 3\] bf16, x1 \[4, 5\] bf16"):
        one("MatMul", (2, 3), (4, 5))


def test_indices_out_of_range_name_the_operator():
    node = Node("rows", "Gather", ("x", "i"), ("y",))
    with pytest.raises(InputError, match=r"Gather 'rows': index 4 is outside -4..3"):
        operator("Gather").reference(node, [np.zeros((4, 2)), np.array([0, 4])])


def test_results_follow_the_outputs_that_are_asked_for():
    node = Node("n", "LayerNormalization", ("x", "s"), ("y", "", "deviation"))
    y, mean, deviation = operator("LayerNormalization").reference(
        node, [np.ones((2, 4), np.float32), np.ones(4, np.float32)]
    )
    assert y.shape == (2, 4) and mean is None and deviation.shape == (2, 1)


def test_a_large_weight_is_never_converted_as_a_whole():
    import tracemalloc

    import ml_dtypes

    a = np.ones((8, 4096), ml_dtypes.bfloat16)
    b = np.ones((4096, 8192), ml_dtypes.bfloat16)
    node = Node("n", "MatMul", ("a", "b"), ("y",))
    tracemalloc.start()
    (y,) = operator("MatMul").reference(node, [a, b])
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert y.dtype == np.float64 and (y == 4096).all()
    assert peak_bytes < 80 << 20 < b.size * 8


def test_moved_data_keeps_its_dtype_and_arithmetic_is_float64():
    import ml_dtypes

    x = np.arange(6, dtype=np.float32).reshape(2, 3).astype(ml_dtypes.bfloat16)
    moved = operator("Transpose").reference(Node("n", "Transpose", ("x",), ("y",)), [x])[0]
    added = operator("Add").reference(Node("n", "Add", ("x", "x"), ("y",)), [x, x])[0]
    assert moved.dtype == x.dtype and added.dtype == np.float64


def test_constants_are_known_to_inference():
    g = GraphBuilder("shapes")
    x = g.input("x", (2, 12), "fp32")
    shape = g.weight("shape", (3,), "int64", Given(np.array([2, 3, -1])))
    assert g.tensor(g.add("Reshape", x, shape, name="y")).shape == (2, 3, 4)


EMPTY = [
    ("MatMul", [(0, 4), (4, 3)], {}),
    ("Conv", [(0, 2, 5, 5), (4, 2, 3, 3)], {}),
    ("ConvTranspose", [(0, 2, 5, 5), (2, 4, 3, 3)], {}),
    ("Attention", [(1, 0, 8), (1, 0, 8), (1, 0, 8)], {"q_num_heads": 2, "kv_num_heads": 2}),
    ("Attention", [(1, 3, 8), (1, 0, 8), (1, 0, 8)], {"q_num_heads": 2, "kv_num_heads": 2}),
    ("RotaryEmbedding", [(1, 0, 8), (1, 0, 2), (1, 0, 2)], {"num_heads": 2}),
    ("LayerNormalization", [(0, 4), (4,)], {}),
    ("RMSNormalization", [(0, 4), (4,)], {}),
    ("GroupNormalization", [(0, 4, 3), (4,), (4,)], {"num_groups": 2}),
    ("InstanceNormalization", [(0, 4, 3), (4,), (4,)], {}),
    ("BatchNormalization", [(0, 4, 3), *[(4,)] * 4], {}),
    ("Softmax", [(0, 4)], {}),
    ("MaxPool", [(0, 2, 6)], {"kernel_shape": [2]}),
    ("AveragePool", [(0, 2, 6)], {"kernel_shape": [2]}),
    ("GlobalAveragePool", [(0, 2, 6)], {}),
    ("Add", [(0, 4), (4,)], {}),
    ("Transpose", [(0, 4)], {"perm": [1, 0]}),
    ("Gelu", [(0, 4)], {}),
]


@pytest.mark.parametrize(("op", "shapes", "attributes"), EMPTY)
def test_empty_tensors_are_computed_and_checked(op, shapes, attributes):
    graph = one(op, *shapes, **attributes)
    (node,) = graph.nodes
    values = initial_values(graph, 0)
    results = evaluate(graph, values)
    device = {k: v.astype(graph.tensors[k].dtype.numpy) for k, v in results.items()}
    assert results["op"].shape == graph.tensors["op"].shape
    assert not np.isnan(results["op"]).any()
    (verdict,) = check_operator(graph, node, {**values, **device}, Rounding(dtype("fp32")))
    assert verdict.validated and verdict.tolerance_ratio == 0
    assert flops(graph) == 0 or op == "Attention"


def test_a_dtype_that_is_not_allowed_is_told_with_those_that_are():
    g = GraphBuilder("int8")
    names = [g.input(name, (4, 4), "int8") for name in ("a", "b")]
    with pytest.raises(InputError) as error:
        g.add("MatMul", *names, name="op")
    text = str(error.value)
    assert "input A cannot be int8" in text
    assert "allowed: fp64, fp32, fp16, bf16, int64, int32, uint64, uint32" in text
    assert "int8 is multiplied between DequantizeLinear and QuantizeLinear" in text
