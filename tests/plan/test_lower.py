"""From plan to program: layers, loop indices, the host, views; the same program everywhere."""

from __future__ import annotations

import numpy as np

from npusim import GraphBuilder, Plan, fuse, on
from npusim.machine.functional import Functional
from npusim.machine.order import shuffled
from npusim.plan.lower import lower
from npusim.program.checker import problems
from npusim.program.kinds import Kind
from npusim.program.origin import describe


def steps(samples):
    return [
        fuse("sum", "act").use(samples.add_relu()).because("one pass"),
        on("neg", "out").host(because="no kernel of ours"),
    ]


def test_layers_are_decisions_in_program_order(samples, npu):
    found = lower(samples.line(), npu(), Plan("p", steps=steps(samples)), samples.KERNELS)
    layers = found.program.layers
    assert [(layer.name, layer.operator, layer.kernel) for layer in layers] == [
        ("sum+act", "Add+Relu", "add_relu"), ("neg", "Neg", "host"), ("out", "Mul", "host")
    ]  # fmt: skip
    assert [layer.nodes for layer in layers] == [("sum", "act"), ("neg",), ("out",)]
    assert layers[0].step == 'step 1, fuse("sum", "act")'
    assert [d.unit.name for d in found.decisions] == [layer.name for layer in layers]
    assert found.plan.name == "p"


def test_a_layer_knows_the_loops_of_its_kernel(samples, npu):
    found = lower(samples.relu_graph(), npu(), Plan("auto"), samples.KERNELS)
    (layer,) = found.program.layers
    assert layer.axes == ("m",)
    assert layer.step == "chosen by claim"
    last = describe(found.program, len(found.program) - 1)
    assert "m=" in last
    assert "kernel relu" in last


def test_instructions_belong_to_the_layer_that_emitted_them(samples, npu):
    found = lower(samples.line(), npu(), Plan("p", steps=steps(samples)), samples.KERNELS)
    table = found.program.instructions
    assert (np.diff(table.layer) >= 0).all()
    hosts = found.program.rows_of(Kind.HOST)
    assert table.layer[hosts].tolist() == [1, 2]


def test_host_operators_read_and_write_whole_tensors_and_have_a_price(samples, npu):
    found = lower(samples.line(), npu(), Plan("p", steps=steps(samples)), samples.KERNELS)
    program = found.program
    hosts = program.hosts
    assert hosts.node == ("neg", "out")
    reads = [hosts.read[hosts.read_ptr[n] : hosts.read_ptr[n + 1]].tolist() for n in range(2)]
    assert reads == [
        [program.tensors["act"]], [program.tensors["act"], program.tensors["neg"]]
    ]  # fmt: skip
    assert hosts.elements.tolist() == [8 * 16, 8 * 16]


def test_programs_are_legal_and_compute_what_the_graph_says(samples, npu):
    graph = samples.line()
    program = lower(graph, npu(), Plan("p", steps=steps(samples)), samples.KERNELS).program
    assert problems(program, npu()) == []
    draw = np.random.Generator(np.random.Philox(key=6))
    x, y = (draw.integers(-5, 6, (8, 16)).astype(np.float32) for _ in range(2))
    for order in (None, 1, 2):
        reader = Functional(program, graph, {"x": x, "y": y}.__getitem__)
        done = reader.run(None if order is None else shuffled(program, order))
        assert np.array_equal(done.value("out", (8, 16)), -(np.maximum(x + y, 0) ** 2))


def test_views_and_empty_operators_emit_nothing(samples, npu):
    g = GraphBuilder("views")
    shape = g.constant("shape", np.array([8, 4], np.int64))
    seen = g.add("Reshape", g.input("x", (4, 8), "fp32"), shape, name="seen")
    nothing = g.add("Relu", g.input("e", (0, 8), "fp32"), name="nothing")
    graph = g.build([g.add("Relu", seen, name="act"), nothing])
    found = lower(graph, npu(), Plan("auto"), samples.KERNELS)
    kinds = {d.unit.name: d.how for d in found.decisions}
    assert kinds == {"seen": "view", "act": "kernel", "nothing": "nothing"}
    emitted = set(found.program.instructions.layer.tolist())
    names = [layer.name for layer in found.program.layers]
    assert {names[number] for number in emitted} == {"act"}


def test_room_of_one_kernel_is_reused_by_the_next(samples, npu):
    """Forty layers of 2 MiB each in a scratchpad of 4 MiB."""
    g = GraphBuilder("deep")
    value = g.input("x", (1024, 256), "fp32")
    for number in range(40):
        value = g.add("Relu", value, name=f"act{number}")
    plan = Plan("p", steps=[on(op="Relu").use(samples.relu(rows=512))])
    program = lower(g.build(value), npu("cores=1"), plan, samples.KERNELS).program
    assert problems(program, npu("cores=1")) == []
    assert len(program.layers) == 40


HASH = """
import sys
sys.path.insert(0, {folder!r})
import samples
from npusim import Plan, fuse, on
from npusim.hw.loader import load_machine
from npusim.plan.lower import lower
machine = load_machine({machine!r}).machine
steps = [fuse("sum", "act").use(samples.add_relu()), on("neg", "out").host(because="x")]
print(lower(samples.line(), machine, Plan("p", steps=steps), samples.KERNELS).program.hash)
print(lower(samples.relu_graph(), machine, Plan("auto"), samples.KERNELS).program.hash)
"""


def test_a_program_is_the_same_in_every_process(samples, npu, run_python):
    """Whatever the seed of Python's own hashing."""
    from pathlib import Path

    here = Path(__file__).parent
    machine = str(here.parents[1] / "hwconfigs" / "npu_a.yaml")
    code = HASH.format(folder=str(here), machine=machine)
    hashes = [run_python(code, env={"PYTHONHASHSEED": seed}).split() for seed in ("1", "2")]
    assert hashes[0] == hashes[1]
    same = Plan("p", steps=[
        fuse("sum", "act").use(samples.add_relu()), on("neg", "out").host(because="x")
    ])  # fmt: skip
    program = lower(samples.line(), npu(), same, samples.KERNELS).program
    assert program.hash == hashes[0][0]


def test_the_hash_depends_on_what_is_done_and_not_on_who_asked(samples, npu):
    """Another step number is the same program; other tiles are another."""
    one = lower(samples.relu_graph(), npu(), Plan("p", steps=[
        on("act").use(samples.relu(rows=8))]), samples.KERNELS).program  # fmt: skip
    two = lower(samples.relu_graph(), npu(), Plan("p", steps=[
        on("act").host(because="x"), on("act").use(samples.relu(rows=8))]),
        samples.KERNELS).program  # fmt: skip
    three = lower(samples.relu_graph(), npu(), Plan("p", steps=[
        on("act").use(samples.relu(rows=16))]), samples.KERNELS).program  # fmt: skip
    assert one.layers[0].step != two.layers[0].step
    assert one.hash == two.hash != three.hash
