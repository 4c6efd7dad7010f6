"""How long the copies of a program keep ports and links of the network busy, each on its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from npusim.hw.machine import Machine
from npusim.machine import dma
from npusim.machine.dram import dram_params
from npusim.machine.dram.mapping import locate
from npusim.machine.links import GridParams, grid_params, router, step
from npusim.measure.traffic import region_bytes
from npusim.program.kinds import Kind
from npusim.program.program import Program

#: A core by its number; -1 and below are places of DRAM, and behind them of shared SRAM.
Node = int
Transfers = Counter[tuple[int, Node, Node]]


def network_loads(program: Program, machine: Machine) -> Iterator[tuple[str, float]]:
    """Kind of port or link, and the seconds that the busiest of them carries data.

    Multicasts are left out: where they part is the engine's business.
    """
    ends = _transfers(program, machine)
    noc, grid = machine.noc, machine.noc.grid
    port = noc.port_bytes_per_cycle * noc.clock_hz
    out, into, place = Counter[object](), Counter[object](), Counter[object]()
    links: Counter[int] = Counter()
    shape = grid_params(noc)
    routers = _routers(machine)
    for (network, source, target), size in ends.items():
        (out if source >= 0 else place)[network, source, "out"] += size
        (into if target >= 0 else place)[network, target, "in"] += size
        if grid is not None and source in routers and target in routers:
            for link in _way(network, routers[source], routers[target], shape):
                links[link] += size
    headers = ", headers included" if grid is not None else ""
    yield f"a core's port out to a network{headers}", max(out.values(), default=0) / port
    yield f"a core's port in from a network{headers}", max(into.values(), default=0) / port
    if grid is not None:
        rate = grid.link_bytes_per_cycle * noc.clock_hz
        yield "the busiest link between routers", max(links.values(), default=0) / rate
        if grid.memory_port_bytes_per_cycle is not None:
            rate = grid.memory_port_bytes_per_cycle * noc.clock_hz
            yield (
                "a memory's port to a network, headers included",
                (max(place.values(), default=0) / rate),
            )


def _transfers(program: Program, machine: Machine) -> Transfers:
    """Bytes on the network, headers included, by (network, source, target)."""
    table, grid = dma.walks(program, machine, None).table, machine.noc.grid
    who, single = program.rows_of(Kind.COPY), np.diff(program.multicasts.ptr) == 0
    core = np.array([s.core for s in program.streams])[program.instructions.stream[who]]
    size = region_bytes(program)[program.copies.destination]
    networks = grid.networks if grid is not None else 1
    found: Transfers = Counter()
    for row in np.flatnonzero(single).tolist():
        network, wire = int(table[row, dma.QUEUE]) % networks, _on_wire(int(size[row]), machine)
        mine = int(core[row])
        for end, at, inward in (
            (dma.FROM, dma.FROM_CORE, True), (dma.TO, dma.TO_CORE, False),
        ):  # fmt: skip
            if table[row, end] == dma.LOCAL:
                continue
            nodes = [int(table[row, at])]
            if table[row, end] == dma.DRAM:
                nodes = _dram_nodes(int(table[row, dma.BASE]), int(size[row]), machine)
            elif table[row, end] == dma.SHARED:
                nodes = _shared_nodes(machine)
            for node in nodes:
                way = (network, node, mine) if inward else (network, mine, node)
                found[way] += wire // len(nodes)
    return found


def _on_wire(size: int, machine: Machine) -> int:
    """Bytes of a copy in flits with headers, request by request."""
    grid, request = machine.noc.grid, machine.core.dma.request_bytes
    if grid is None:
        return size
    one = min(size, request)
    flits = -(-one // grid.flit_bytes) + grid.header_flits * -(-one // grid.packet_bytes)
    return flits * grid.flit_bytes * -(-size // one)


def _dram_nodes(address: int, size: int, machine: Machine) -> list[Node]:
    """Where a copy meets DRAM: the place of a single granule, else all places evenly."""
    grid, dram = machine.noc.grid, machine.dram
    if grid is None:
        return [-1]
    places = len(grid.dram_places(dram.channels))
    if size > dram.granule_bytes:
        return [-1 - n for n in range(places)]
    channel = locate(address // dram.burst_bytes, dram_params(machine))[0]
    return [-1 - channel * places // dram.channels]


def _shared_nodes(machine: Machine) -> list[Node]:
    """Where a copy meets the shared SRAM: all of its places evenly."""
    grid = machine.noc.grid
    if grid is None:
        return [-1]
    first = -1 - len(grid.dram_places(machine.dram.channels))
    return [first - n for n in range(len(grid.shared_places(machine.cores)))]


def _routers(machine: Machine) -> dict[Node, int]:
    """The router of each node, cores and memories; none in a crossbar."""
    grid = machine.noc.grid
    if grid is None:
        return {}
    places = [*grid.dram_places(machine.dram.channels), *grid.shared_places(machine.cores)]
    cores = {n: router(place, grid) for n, place in enumerate(grid.core_places(machine.cores))}
    return cores | {-1 - n: router(place, grid) for n, place in enumerate(places)}


def _way(network: int, at: int, to: int, shape: GridParams) -> Iterator[int]:
    """The links from router to router."""
    while at != to:
        link, at = step(network, at, to, shape)
        yield int(link)
