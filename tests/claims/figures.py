"""Recomputes the figures that README.md and docs/ quote: one public function per claim.

A function takes nothing and returns a plain number: a ratio, cycles, a count, bytes. Times and
speeds are not claimed here, since they differ from computer to computer.
"""

from __future__ import annotations

from functools import cache
from math import prod

from npusim import GraphBuilder
from npusim.api.pipeline import run
from npusim.api.request import Request
from npusim.measure.result import Totals
from npusim.measure.work import flops


@cache
def _default() -> Totals:
    """The README's first command; cycles do not depend on values."""
    result = run(Request("llama_block", timing_only=True, out=None)).result
    assert result is not None
    return result.totals


def default_cycles() -> float:
    """Cycles of the README's first command."""
    return _default().cycles


def default_flop_fraction() -> float:
    """Share of the arrays' peak that it sustains."""
    share = _default().flop_fraction
    assert share is not None
    return share


def default_memory_stall() -> float:
    """Share of its core-cycles that waited for memory."""
    share = _default().memory_stall_fraction
    assert share is not None
    return share


def default_over_floor() -> float:
    """Its cycles over what arithmetic and DRAM allow."""
    return _default().cycles / _default().floor_cycles


def padding_share_of_3x3_on_7x7() -> float:
    """Share of the window elements of a padded convolution that are no data."""
    builder = GraphBuilder("padded")
    x, w = builder.input("x", (1, 1, 7, 7), "fp32"), builder.input("w", (1, 1, 3, 3), "fp32")
    graph = builder.build(builder.add("Conv", x, w, name="y", pads=[1, 1, 1, 1]))
    (node,) = graph.nodes
    return 1 - flops(graph, node) / (2 * prod((7, 7, 3, 3)))
