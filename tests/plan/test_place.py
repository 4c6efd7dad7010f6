"""Where the graph's tensors lie: addresses, aliases, caches in place, what is kept on the chip."""

from __future__ import annotations

import numpy as np
import pytest

from npusim import GraphBuilder, Plan, fuse, keep, on
from npusim.core.errors import InputError
from npusim.machine.functional import Functional
from npusim.plan.lower import lower
from npusim.program.kinds import Space


def lowered(samples, npu, graph, *steps, settings=()):
    rest = [on("*").host(because="not the point")]
    plan = Plan("p", steps=[*rest, *steps])
    return lower(graph, npu(*settings), plan, samples.KERNELS)


def boxes(program):
    """(space, low, high) of each graph tensor's buffer."""
    found = {}
    for name, region in program.tensors.items():
        buffer = int(program.regions.buffer[region])
        low = int(program.buffers.offset[buffer])
        found[name] = (int(program.buffers.space[buffer]), low,
                       low + int(program.buffers.size_bytes[buffer]))  # fmt: skip
    return found


def test_inputs_weights_and_results_have_places_of_their_own(samples, npu):
    program = lowered(samples, npu, samples.diamond()).program
    found = boxes(program)
    assert found.keys() == {"x", "y", "sum", "act", "neg", "out"}
    ordered = sorted(found.values())
    assert all(a[2] <= b[1] for a, b in zip(ordered, ordered[1:], strict=False))
    assert set(program.initial) == {"x", "y"}


def test_addresses_are_given_inputs_first_then_weights_then_results(samples, npu):
    g = GraphBuilder("order")
    w = g.constant("w", np.ones((4, 8), np.float32))
    x = g.input("x", (4, 8), "fp32")
    graph = g.build(g.add("Add", w, x, name="y"))
    found = boxes(lowered(samples, npu, graph).program)
    assert found["x"][1] < found["w"][1] < found["y"][1]


def test_a_view_is_its_source_s_bytes(samples, npu):
    g = GraphBuilder("views")
    x = g.input("x", (4, 8), "fp32")
    shape = g.constant("shape", np.array([2, 16], np.int64))
    seen = g.add("Reshape", x, shape, name="seen")
    twice = g.add("Flatten", seen, name="twice", axis=0)
    graph = g.build(g.add("Relu", twice, name="act"))
    plan = Plan("p", steps=[on(op="Relu").host(because="x")])
    program = lower(graph, npu(), plan, samples.KERNELS).program
    buffers = {name: int(program.regions.buffer[program.tensors[name]])
               for name in ("x", "seen", "twice")}  # fmt: skip
    assert len(set(buffers.values())) == 1
    reader = Functional(program, graph, lambda name: np.arange(32, dtype=np.float32)
                        .reshape(4, 8) if name == "x" else np.array([2, 16]))  # fmt: skip
    done = reader.run()
    assert done.value("seen", (2, 16))[1, 0] == 16


def cache_graph(past: int = 5, new: int = 3, reread: bool = False):
    """Attention whose key and value caches grow by `new` rows."""
    g = GraphBuilder("cache")
    heads, size = 2, 4
    q, k, v = (g.input(name, (1, heads, new, size), "fp32") for name in "qkv")
    pk, pv = (g.input(name, (1, heads, past, size), "fp32") for name in ("pk", "pv"))
    out = g.add(
        "Attention", q, k, v, "", pk, pv, name="attn", outputs=("y", "nk", "nv"), is_causal=1
    )
    results = [*out]
    if reread:
        results.append(g.add("Relu", pk, name="again"))
    return g.build(results)


def test_a_cache_grows_in_place(samples, npu):
    """The past lies in front of the present, row by row, head by head; the notes say so."""
    found = lowered(samples, npu, cache_graph())
    program = found.program
    assert found.notes == (
        "pk lies in front of nk: the cache grows in place",
        "pv lies in front of nv: the cache grows in place",
    )
    past, present = program.tensors["pk"], program.tensors["nk"]
    assert program.regions.buffer[past] == program.regions.buffer[present]
    strides = program.regions.strides[past][-2:]
    assert strides.tolist() == [8 * 4 * 4, 4] or program.regions.sizes[past][-1] == 5 * 4
    assert {"pk", "pv"} <= set(program.initial)
    assert "nk" not in program.initial


def test_values_of_a_cache_in_place(samples, npu):
    graph = cache_graph()
    program = lowered(samples, npu, graph).program
    draw = np.random.Generator(np.random.Philox(key=1))
    values = {
        name: draw.normal(size=graph.tensors[name].shape).astype(np.float32)
        for name in graph.inputs
    }
    done = Functional(program, graph, values.__getitem__).run()
    expected = np.concatenate([values["pk"], values["k"]], axis=2)
    assert np.array_equal(done.value("nk", expected.shape), expected)
    assert np.array_equal(done.value("pk", (1, 2, 5, 4)), values["pk"])


def test_a_past_that_others_read_too_has_its_own_place(samples, npu):
    found = lowered(samples, npu, cache_graph(reread=True))
    assert found.notes == ("pv lies in front of nv: the cache grows in place",)
    program = found.program
    buffers = [int(program.regions.buffer[program.tensors[n]]) for n in ("pk", "nk")]
    assert buffers[0] != buffers[1]


def test_kept_tensors_lie_in_shared_sram(samples, npu):
    found = boxes(lowered(samples, npu, samples.diamond(), keep("sum", "a*")).program)
    spaces = {name: box[0] for name, box in found.items()}
    assert {name for name, space in spaces.items() if space == Space.SHARED} == {"sum", "act"}


def test_what_shared_sram_cannot_keep_is_an_error(samples, npu):
    with pytest.raises(InputError, match="sum needs 512 B of shared, which is absent"):
        lowered(samples, npu, samples.diamond(), keep("sum"), settings=("shared_sram=null",))


def test_a_tensor_inside_a_fused_group_has_no_place(samples, npu):
    """It is a tap, in fp32, of which tiles show pieces."""
    g = GraphBuilder("pair")
    x, y = (g.input(name, (8, 16), "bf16") for name in "xy")
    graph = g.build(g.add("Relu", g.add("Add", x, y, name="sum"), name="act"))
    plan = Plan("p", steps=[fuse("sum", "act").use(samples.add_relu())])
    program = lower(graph, npu(), plan, samples.KERNELS).program
    assert "sum" not in program.tensors
    tap = int(program.regions.buffer[program.taps["sum"]])
    assert program.buffers.space[tap] == Space.TAP
    values = {name: np.full((8, 16), -1.5).astype(graph.tensors[name].dtype.numpy) for name in "xy"}
    done = Functional(program, graph, values.__getitem__).run()
    assert (done.memory.values(program.taps["sum"], (8, 16)) == -3).all()
    assert (done.value("act", (8, 16)).astype(np.float32) == 0).all()


def test_a_tensor_that_others_read_keeps_its_place(samples, npu):
    """Its readers are all in layers that make it, or it must reach memory."""
    steps = fuse("sum", "act").use(samples.add_relu())
    program = lowered(samples, npu, samples.line(), steps).program
    assert "sum" not in program.tensors
    assert "act" in program.tensors
    with pytest.raises(
        InputError, match=r"sum never leaves the core, but \['act', 'neg'\] read it"
    ):
        lowered(samples, npu, samples.diamond(), steps)
