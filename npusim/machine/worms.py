"""Transfers as packets of the wormhole model: routes, links and tables, network by network."""

from __future__ import annotations

import numpy as np

from npusim.core.jit import jit, jit_inline
from npusim.hw.machine import Machine
from npusim.hw.noc import Grid
from npusim.machine import wormhole as w
from npusim.machine.links import DOWN, RIGHT, WAYS, GridParams, step
from npusim.machine.network import NetworkParams, network_params, network_state
from npusim.machine.transfers import Replayed, Transfers, memory_cycles
from npusim.machine.wormhole import EJECT, GROUPS, INJECT, PARTS, PORTS, WormholeParams
from npusim.program.program import Ints


def replay(machine: Machine, transfers: Transfers) -> Replayed:
    """Flit by flit; each network by itself."""
    grid = _grid(machine)
    p, state, rows = network_params(machine), network_state(machine), transfers.rows()
    routers = state[p.at_places :]
    end = np.zeros(len(transfers), np.int64)
    carried = np.zeros((grid.networks, grid.nodes, INJECT), np.int64)
    for network in range(grid.networks):
        mine = np.flatnonzero(transfers.network == network)
        of, pieces = _pieces(rows[mine], grid.packet_bytes)
        reads = int((pieces[:, 5] == 0).sum())
        packets = _packets(machine, pieces, reads, routers)
        links = _links(machine, p, routers)
        _run(grid, packets, links, reads, network, p.grid)
        done = np.zeros(len(mine), np.int64)
        np.maximum.at(done, of, packets[reads:, w.P_DONE])
        end[mine] = done
        carried[network] = links[:, w.L_FLITS].reshape(grid.nodes, PORTS)[:, :INJECT]
    return Replayed(end, carried * grid.flit_bytes)


def _grid(machine: Machine) -> Grid:
    assert machine.noc.grid is not None, "a crossbar has no routers"
    return machine.noc.grid


def _pieces(rows: Ints, packet_bytes: int) -> tuple[Ints, Ints]:
    """Rows cut into packets, reads before writes; (the row that each is of, the pieces)."""
    count = np.maximum(-(-rows[:, 3] // packet_bytes), 1)
    of = np.repeat(np.arange(len(rows)), count)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count)
    pieces = rows[of]
    pieces[:, 3] = np.minimum(pieces[:, 3] - nth * packet_bytes, packet_bytes)
    order = np.argsort(pieces[:, 5], kind="stable")
    return of[order], pieces[order]


def _packets(machine: Machine, pieces: Ints, reads: int, routers: Ints) -> Ints:
    """The packet table: the requests of all reads, their data, the data of all writes."""
    grid, asked = _grid(machine), pieces[:reads]
    packets = np.zeros((reads + len(pieces), w.P_WIDTH), np.int64)
    at, to = routers[_ends(pieces[:, 1], machine)], routers[_ends(pieces[:, 2], machine)]
    request, data = packets[:reads], packets[reads:]
    request[:, w.P_SOURCE], request[:, w.P_TARGET] = at[:reads], to[:reads]
    request[:, w.P_FLITS] = max(grid.header_flits, 1)
    request[:, w.P_READY] = asked[:, 4] + grid.request_cycles
    writes = pieces[:, 5] == 1
    data[:, w.P_SOURCE], data[:, w.P_TARGET] = np.where(writes, at, to), np.where(writes, to, at)
    data[:, w.P_FLITS] = -(-pieces[:, 3] // grid.flit_bytes) + grid.header_flits
    access = np.where(pieces[:, 2] < 0, memory_cycles(machine), 0)
    data[:, w.P_READY] = np.where(writes, pieces[:, 4], access)
    return packets


def _ends(node: Ints, machine: Machine) -> Ints:
    return np.where(node >= 0, node, machine.cores - 1 - node)


def _links(machine: Machine, p: NetworkParams, routers: Ints) -> Ints:
    """The link table of one network: spacing of flits and delay of every link and port (A45)."""
    grid = _grid(machine)
    links = np.zeros((grid.nodes, PORTS, w.L_WIDTH), np.int64)
    links[:, :, w.L_SPACING] = _spacing(grid, grid.link_bytes_per_cycle)
    links[:, INJECT:, w.L_SPACING] = _spacing(grid, machine.noc.port_bytes_per_cycle)
    if grid.memory_port_bytes_per_cycle:
        memory = np.setdiff1d(routers[p.cores :], routers[: p.cores])
        links[memory, INJECT:, w.L_SPACING] = _spacing(grid, grid.memory_port_bytes_per_cycle)
    inward = machine.noc.latency_cycles // 2
    links[:, :, w.L_DELAY] = grid.hop_cycles
    # The cycle that every packet takes beside its hops is spent where it enters.
    links[:, INJECT, w.L_DELAY] = machine.noc.latency_cycles - inward + 1
    links[:, EJECT, w.L_DELAY] = inward
    return links.reshape(grid.nodes * PORTS, w.L_WIDTH)


def _spacing(grid: Grid, bytes_per_cycle: float) -> int:
    """Parts of a cycle between two flits."""
    return max(round(PARTS * grid.flit_bytes / bytes_per_cycle), PARTS)


def _run(grid: Grid, packets: Ints, links: Ints, reads: int, network: int, g: GridParams) -> None:
    """Move all packets; their times and the links' counts are left in the tables."""
    channels = len(links) * GROUPS * grid.virtual_channels
    p = WormholeParams(
        channels=grid.virtual_channels,
        buffer_flits=grid.buffer_flits,
        request_queue=grid.request_queue,
        reads=reads,
        buffers=channels,
    )
    inputs = np.zeros((channels + 2 * grid.nodes, w.I_WIDTH), np.int64)
    inputs[:, w.I_OWNER] = inputs[:, w.I_OUT] = inputs[:, w.I_FIRST] = -1
    there = np.concatenate([np.arange(reads), np.arange(2 * reads, len(packets))])
    order = there[np.argsort(packets[there, w.P_READY], kind="stable")]
    longest = grid.rows + grid.columns + 2
    hops = np.empty(len(packets) * longest, np.int64)
    groups = np.empty(len(packets) * longest, np.int64)
    _routes(packets, reads, network, g, hops, groups)
    ring = np.zeros(2 * channels * grid.buffer_flits, np.int64)
    last = w.simulate(
        p, order, packets, hops, groups, links, inputs, ring, np.zeros(grid.nodes, np.int64)
    )
    assert last >= 0, "packets wait for one another in a ring"


@jit_inline
def _at_seam(at: int, way: int, g: GridParams) -> bool:
    """Whether a ring begins at this router for packets that leave it this way."""
    place, length = (at % g.columns, g.columns) if way < DOWN else (at // g.columns, g.rows)
    return bool(place == 0 if way in (RIGHT, DOWN) else place == length - 1)


@jit
def _routes(
    packets: Ints, reads: int, network: int, g: GridParams, hops: Ints, groups: Ints
) -> None:
    """Links and groups of channels of every packet, from its endpoint to the other.

    A packet changes its group at the router where its ring begins, also if it starts there, and
    goes back where it turns.
    """
    end, nodes = 0, g.rows * g.columns
    for k in range(packets.shape[0]):
        packets[k, w.P_ROUTE], packets[k, w.P_AT] = end, end - 1
        at, to = packets[k, w.P_SOURCE], packets[k, w.P_TARGET]
        kind, behind, upright = 2 if k >= reads else 0, 0, -1
        hops[end], groups[end] = at * PORTS + INJECT, kind
        end += 1
        while at != to:
            link, after = step(network, at, to, g)
            way = link % WAYS
            if way // 2 != upright:
                behind, upright = 0, way // 2
            if g.wraps and _at_seam(at, way, g):
                behind = 1
            hops[end], groups[end] = (link // WAYS - network * nodes) * PORTS + way, kind + behind
            end += 1
            at = after
        hops[end], groups[end] = at * PORTS + EJECT, kind + behind
        end += 1
