"""The network between cores and memories: a crossbar (A17), or routers on a grid (A42, A43).

Nodes are the cores by their number; what lies behind the network has negative numbers. In a
crossbar any node reaches any other in `latency`, and what is shared are the two ports of each
core. On a grid a transfer also occupies every link on its way; it is cut through, so the head
moves on while the rest follows, and the length is paid once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npusim.core.jit import jit, jit_inline
from npusim.hw.machine import Machine
from npusim.machine.clock import occupy
from npusim.machine.links import WAYS, GridParams, grid_params, hops, router, step
from npusim.program.program import Ints

#: The node of DRAM and shared SRAM where it does not matter which part of them is asked.
MEMORY = -1
#: Bandwidths are whole thousandths of a byte per cycle.
_MILLI = 1000


class NetworkParams(NamedTuple):
    """Times in ticks, bandwidths in thousandths of a byte per network cycle, positions in state.

    A memory place without a bandwidth of its own has 0.
    """

    grid: GridParams
    cycle: int
    latency: int
    request: int
    hop: int
    port: int
    memory_port: int
    link: int
    flit_bytes: int
    header_bytes: int
    packet_bytes: int
    cores: int
    channels: int
    dram_places: int
    shared_places: int
    at_inward: int
    at_outward: int
    at_links: int
    at_places: int
    at_marks: int
    places: int


def network_params(machine: Machine) -> NetworkParams:
    """The machine's network in ticks."""
    noc, grid = machine.noc, machine.noc.grid
    cycle, g = machine.tick_hz // noc.clock_hz, grid_params(noc)
    dram = shared = 0
    if grid is not None:
        dram = len(grid.dram_places(machine.dram.channels))
        shared = len(grid.shared_places(machine.cores))
    ends = (machine.cores + dram + shared) * max(g.networks, 1)
    return NetworkParams(
        grid=g,
        cycle=cycle,
        latency=noc.latency_cycles * cycle,
        request=grid.request_cycles * cycle if grid else 0,
        hop=grid.hop_cycles * cycle if grid else 0,
        port=_milli(noc.port_bytes_per_cycle),
        memory_port=_milli(grid.memory_port_bytes_per_cycle or 0) if grid else 0,
        link=_milli(grid.link_bytes_per_cycle) if grid else 0,
        flit_bytes=grid.flit_bytes if grid else 1,
        header_bytes=grid.header_flits * grid.flit_bytes if grid else 0,
        packet_bytes=grid.packet_bytes if grid else 1,
        cores=machine.cores,
        channels=machine.dram.channels,
        dram_places=dram,
        shared_places=shared,
        at_inward=0,
        at_outward=ends,
        at_links=2 * ends,
        at_places=2 * ends + g.networks * g.rows * g.columns * WAYS,
        at_marks=2 * ends + g.networks * g.rows * g.columns * WAYS + ends // max(g.networks, 1),
        places=2 * ends + g.networks * g.rows * g.columns * WAYS,
    )


def _milli(bytes_per_cycle: float) -> int:
    return round(bytes_per_cycle * _MILLI)


def network_state(machine: Machine) -> Ints:
    """Clocks, all idle: ports in and out of every node, links; then the router of every node.

    Behind them, for each port and link, the multicast that it carried last, when that was through,
    and what it had waited by then; in front of these, which multicast is the latest.
    """
    p, grid = network_params(machine), machine.noc.grid
    marks = np.zeros(1 + 3 * p.places, np.int64)
    if grid is None:
        return np.concatenate([np.zeros(p.at_marks, np.int64), marks])
    nodes = grid.core_places(machine.cores) + grid.dram_places(machine.dram.channels)
    nodes += grid.shared_places(machine.cores)
    routers = np.array([router(place, grid) for place in nodes], np.int64)
    return np.concatenate([np.zeros(p.at_places, np.int64), routers, marks])


@jit_inline
def dram_node(channel: int, p: NetworkParams) -> int:
    """The node where a DRAM channel is reached."""
    return -1 - channel * p.dram_places // p.channels


@jit_inline
def shared_node(part: int, slices: int, p: NetworkParams) -> int:
    """The node where one of the slices of the shared SRAM is reached."""
    return -1 - p.dram_places - part * p.shared_places // slices


@jit_inline
def ask(t: int, core: int, node: int, queue: int, p: NetworkParams, s: Ints) -> int:
    """When a read request that a core's queue sent at t reaches the node that it asks.

    It takes no bandwidth: it is one flit.
    """
    if p.grid.networks > 0:
        t += p.request + p.hop * _apart(core, node, queue, p, s)
    return t + p.latency


@jit
def _apart(core: int, node: int, queue: int, p: NetworkParams, s: Ints) -> int:
    """Hops from a core to a node."""
    source, target = s[p.at_places + _end(core, p)], s[p.at_places + _end(node, p)]
    return hops(queue % p.grid.networks, source, target, p.grid)


@jit_inline
def cross(
    issue: int, t: int, waited: int, size: int, source: int, target: int, queue: int,
    p: NetworkParams, s: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Carry data from node to node; (when its last byte is there, ticks waited on the way)."""
    if p.grid.networks > 0:
        return _over_grid(issue, t, waited, size, source, target, queue, p, s, 0)
    length, held = _ticks(size, p.port, p), 0
    if source >= 0:
        t, held = occupy(s, p.at_outward + source, issue, t, waited, length, 0)
    t += p.latency
    if target >= 0:
        t, wait = occupy(s, p.at_inward + target, issue, t, waited + held, length, 0)
        held += wait
    return t, held


@jit
def branch(
    issue: int, t: int, waited: int, size: int, source: int, target: int, queue: int,
    p: NetworkParams, s: Ints,
) -> tuple[int, int]:  # fmt: skip
    """As `cross`, for one of the targets of the latest multicast (A61).

    Ports and links that have carried it for another target already carry it no more.
    """
    if p.grid.networks > 0:
        return _over_grid(issue, t, waited, size, source, target, queue, p, s, s[p.at_marks])
    length = _ticks(size, p.port, p)
    t, held = _once(s, p.at_outward + source, issue, t, waited, length, 0, s[p.at_marks], p)
    t, wait = occupy(s, p.at_inward + target, issue, t + p.latency, waited + held, length, 0)
    return t, held + wait


@jit_inline
def _once(
    s: Ints, which: int, issue: int, t: int, waited: int, length: int, held: int, mark: int,
    p: NetworkParams,
) -> tuple[int, int]:  # fmt: skip
    """Occupy a port or link unless multicast `mark` (0: none) has; (end, ticks waited so far)."""
    noted = p.at_marks + 1 + which
    if mark > 0 and s[noted] == mark:
        return s[noted + p.places], s[noted + 2 * p.places]
    end, wait = occupy(s, which, issue, t, waited + held, length, 0)
    if mark > 0:
        s[noted], s[noted + p.places], s[noted + 2 * p.places] = mark, end, held + wait
    return end, held + wait


@jit
def _over_grid(
    issue: int, t: int, waited: int, size: int, source: int, target: int, queue: int,
    p: NetworkParams, s: Ints, mark: int,
) -> tuple[int, int]:  # fmt: skip
    """Out of the source's port, over the links in order, into the target's port; cut through."""
    which = queue % p.grid.networks
    first, last = _end(source, p), _end(target, p)
    packets = (size + p.packet_bytes - 1) // p.packet_bytes
    flits = (size + p.flit_bytes - 1) // p.flit_bytes
    size = flits * p.flit_bytes + packets * p.header_bytes
    over_link, longest, held = _ticks(size, p.link, p), 0, 0
    rate = p.port if source >= 0 else p.memory_port
    if rate > 0:
        longest = _ticks(size, rate, p)
        port = p.at_outward + first * p.grid.networks + which
        end, held = _once(s, port, issue, t, waited, longest, 0, mark, p)
        t = end - longest
    at, to = s[p.at_places + first], s[p.at_places + last]
    while at != to:
        link, at = step(which, at, to, p.grid)
        end, held = _once(s, p.at_links + link, issue, t, waited, over_link, held, mark, p)
        longest = max(longest, over_link)
        t = end - over_link + p.hop
    rate = p.port if target >= 0 else p.memory_port
    if rate > 0:
        length = _ticks(size, rate, p)
        port = p.at_inward + last * p.grid.networks + which
        end, wait = occupy(s, port, issue, t, waited + held, length, 0)
        held += wait
        longest = max(longest, length)
        t = end - length
    return t + longest + p.latency, held


@jit_inline
def _end(node: int, p: NetworkParams) -> int:
    """The number of a node among all: cores, places of DRAM, places of shared SRAM."""
    return node if node >= 0 else p.cores - 1 - node


@jit_inline
def _ticks(size: int, rate: int, p: NetworkParams) -> int:
    """Ticks in which `size` bytes pass at thousandths of a byte per cycle, rounded up."""
    return (size * p.cycle * _MILLI + rate - 1) // rate
