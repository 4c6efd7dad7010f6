"""Data sheet of uniform traffic on grids: how far it goes, and which load its links allow.

With F the flits per node and cycle, each as likely for every node, a link carries F / nodes for
every pair of nodes whose way leads over it. The network is full when the busiest one carries 1.
"""

from __future__ import annotations

import numpy as np
import pytest

from npusim.machine.links import DOWN, LEFT, RIGHT, UP, WAYS, grid_params, hops
from npusim.machine.replay import replay

FLIT = 32


def pairs(grids, nodes):
    """One flit from every node to every other."""
    both = [(a, b) for a in range(nodes) for b in range(nodes) if a != b]
    return grids.transfers(*((a, b, FLIT, 100 * k) for k, (a, b) in enumerate(both)))


def loads(npu, grids, kind, k):
    """How many pairs of nodes each link serves: [routers, ways]."""
    machine = grids.grid(npu, kind, k, k)
    carried = replay(machine, pairs(grids, k * k)).link_bytes[0] / FLIT
    assert carried.shape == (k * k, WAYS)
    return carried


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("mesh", 0.5),  # M47: 4 / k
        ("torus", 1.0),  # M49: 8 / k, both ways of equal length used alike
    ],
)
def test_load_at_which_uniform_traffic_fills_the_busiest_link(npu, grids, kind, expected):
    assert 64 / loads(npu, grids, kind, 8).max() == pytest.approx(expected, rel=1e-3)


def test_mean_way_through_a_mesh(npu, grids):
    """M48: 2 (k - 1 / k) / 3 hops on 8 x 8, a node's way to itself included."""
    shape = grid_params(grids.grid(npu, "mesh", 8, 8).noc)
    ways = [hops(0, a, b, shape) for a in range(64) for b in range(64)]
    assert np.mean(ways) == pytest.approx(5.25, abs=1e-9)
    assert loads(npu, grids, "mesh", 8).sum() == sum(ways)


def test_bandwidth_of_a_cut_through_the_middle(npu, grids):
    """M50: 4 x 4 mesh with links of 64 B per cycle, 2 k of them cut: 512 B per cycle, both ways.

    Every node sends to its mirror image, as much as it can.
    """
    k, size, cycles = 4, 512, {}
    wide = ("noc.grid.flit_bytes=64", "noc.grid.link_bytes_per_cycle=64",
            "noc.port_bytes_per_cycle=64")  # fmt: skip
    machine = grids.grid(npu, "mesh", k, k, *wide)
    mirror = [(row * k + x, row * k + k - 1 - x) for row in range(k) for x in range(k)]
    for times in (20, 120):
        rows = [(a, b, size, 0) for _ in range(times) for a, b in mirror]
        seen = replay(machine, grids.transfers(*rows))
        across = seen.link_bytes[0].reshape(k, k, WAYS)
        cut = across[:, 1, RIGHT].sum() + across[:, 2, LEFT].sum()
        assert cut == times * k * k * size
        assert across[:, :, [DOWN, UP]].sum() == 0
        cycles[times] = (seen.end.max(), cut)
    steady = (cycles[120][1] - cycles[20][1]) / (cycles[120][0] - cycles[20][0])
    assert steady == pytest.approx(512, rel=1e-3)
