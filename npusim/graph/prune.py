"""Leaves out what contributes nothing to a graph's outputs."""

from __future__ import annotations

from dataclasses import replace

from npusim.graph.ir import Graph


def prune(graph: Graph) -> Graph:
    """The graph without operators and tensors that no output needs; notes name unused inputs."""
    needed = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.present_outputs()):
            kept.append(node)
            needed.update(node.present_inputs())
    nodes = tuple(reversed(kept))
    written = {name for node in nodes for name in node.present_outputs()}
    tensors = {n: t for n, t in graph.tensors.items() if n in needed or n in written}
    unused = [name for name in graph.inputs if name not in needed]
    notes = tuple(f"input {name!r} is not used" for name in unused)
    inputs = tuple(name for name in graph.inputs if name in needed)
    return replace(graph, nodes=nodes, tensors=tensors, inputs=inputs, notes=graph.notes + notes)
