"""The network between cores and memories: a crossbar, or routers on a grid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from npusim.hw import placement
from npusim.hw.placement import Placement, row_by_row, sides
from npusim.hw.quantities import Bytes, Cycles, Entries, Hertz, Quantity, Spec

Rate = Annotated[float, Quantity("bytes_per_cycle", whole=False, at_least=0.001)]
Few = Annotated[int, Quantity("number", at_most=64)]
Side = Annotated[int, Quantity("number", at_most=256)]
Place = tuple[int, int]


class Places(Spec):
    """Which routers of a grid have what; see npusim.hw.placement for how places are written."""

    cores: Placement = ""
    """One place per core, in their order; without it row by row from the top left."""
    dram: Placement = ""
    """Where DRAM is reached, channels dealt out in order; without it down the left and right
    edges, one place per channel."""
    shared: Placement = ""
    """Where the shared SRAM is reached, requests dealt out by address; without it at every core."""


class Grid(Spec):
    """Routers in rows and columns, and the links between neighbours."""

    rows: Side
    """Rows of routers (y); a ring has one."""
    columns: Side
    """Columns of routers (x)."""
    networks: Few = 1
    """Identical networks side by side; DMA queue q uses number q modulo this."""
    one_way: bool = False
    """Whether links lead one way only: right and down in even networks, left and up in odd ones."""
    first: Literal["x", "y", "alternate"] = "x"
    """Which way a packet goes first; alternate: x in even networks, y in odd ones."""
    hop_cycles: Cycles
    """From router to router."""
    flit_bytes: Bytes
    """Width of a link: the piece that moves in one cycle."""
    link_bytes_per_cycle: Rate
    """Bandwidth of a link in use, headers included; at most one flit per cycle."""
    header_flits: Annotated[int, Quantity("number", at_least=0, at_most=64)] = 1
    """Flits before the data of every packet, and of a read request."""
    packet_bytes: Bytes = 8192
    """Most data in one packet."""
    request_cycles: Cycles = 0
    """Fixed cost of a read request at both ends together, besides the way there."""
    memory_port_bytes_per_cycle: Rate | None = None
    """Bandwidth of each place of DRAM and shared SRAM, each way; absent if never a limit."""
    virtual_channels: Few = 2
    """Packets that may share a link at a time (per class and side of a ring's seam)."""
    buffer_flits: Entries = 16
    """Flits that a virtual channel holds at the end of a link."""
    request_queue: Entries = 4
    """Read requests that wait at the endpoint that answers them; more wait in the network."""
    places: Places = Places()
    """Where cores and memories are attached."""

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Rates above a flit per cycle, packets of part of a flit, places outside the grid."""
        if self.link_bytes_per_cycle > self.flit_bytes:
            yield (
                "link_bytes_per_cycle",
                f"must be at most one flit per cycle, {self.flit_bytes} B, "
                f"found {self.link_bytes_per_cycle:g}",
            )
        if self.packet_bytes % self.flit_bytes:
            yield "packet_bytes", f"must be whole flits of {self.flit_bytes} B"
        for name in ("cores", "dram", "shared"):
            for x, y in placement.places(getattr(self.places, name) or "x0 y0"):
                if x >= self.columns or y >= self.rows:
                    yield (
                        f"places.{name}",
                        f"must lie inside {self.columns} columns x {self.rows} rows, "
                        f"found x{x} y{y}",
                    )
                    break

    @property
    def nodes(self) -> int:
        """Routers of one network."""
        return self.rows * self.columns

    def core_places(self, cores: int) -> list[Place]:
        """Where the cores are, in their order."""
        text = self.places.cores
        return placement.places(text) if text else row_by_row(cores, self.columns)

    def dram_places(self, channels: int) -> list[Place]:
        """Where DRAM is reached; channel c at number c x places // channels."""
        text = self.places.dram
        return placement.places(text) if text else sides(channels, self.rows, self.columns)

    def shared_places(self, cores: int) -> list[Place]:
        """Where the shared SRAM is reached."""
        text = self.places.shared
        return placement.places(text) if text else self.core_places(cores)


class Noc(Spec):
    """The network between cores and memories."""

    kind: Literal["crossbar", "ring", "mesh", "torus"]
    """Topology; all but a crossbar have a grid."""
    clock_hz: Hertz
    """Clock of the network and of the shared SRAM."""
    port_bytes_per_cycle: Rate
    """Bandwidth of a core's port to each network, each way."""
    latency_cycles: Cycles
    """One way through an idle network; on a grid into and out of it, without the hops."""
    grid: Grid | None = None
    """Routers and links; absent in a crossbar."""

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """A grid that does not go with the kind of network."""
        grid = self.grid
        if self.kind == "crossbar":
            if grid is not None:
                yield "grid", "a crossbar has none; kinds with one: ring, mesh, torus"
            return
        if grid is None:
            yield "grid", f"a {self.kind} needs one: rows, columns, hop_cycles, ..."
            return
        if self.kind == "ring" and grid.rows != 1:
            yield "grid.rows", f"must be 1 in a ring, found {grid.rows}"
        if self.kind == "mesh" and grid.one_way:
            yield "grid.one_way", "must be false in a mesh: there would be no way back"
        if self.port_bytes_per_cycle > grid.flit_bytes:
            yield (
                "port_bytes_per_cycle",
                f"must be at most one flit per cycle, {grid.flit_bytes} B, "
                f"found {self.port_bytes_per_cycle:g}",
            )

    def misplaced(self, cores: int, channels: int, shared: bool) -> Iterator[tuple[str, str]]:
        """What does not go with the cores, DRAM channels and shared SRAM of the machine."""
        grid = self.grid
        if grid is None:
            return
        found = grid.core_places(cores)
        if not grid.places.cores and cores > grid.nodes:
            yield (
                "grid.rows",
                f"must give room to {cores} cores, found {grid.rows} rows x {grid.columns}",
            )
        elif len(found) != cores:
            yield "grid.places.cores", f"must be {cores} places, one per core, found {len(found)}"
        elif len(set(found)) != cores:
            twice = next(place for place in found if found.count(place) > 1)
            yield "grid.places.cores", f"must differ, found x{twice[0]} y{twice[1]} twice"
        if len(grid.dram_places(channels)) > channels:
            yield "grid.places.dram", f"must be at most {channels} places, one per DRAM channel"
        if grid.places.shared and not shared:
            yield "grid.places.shared", "there is no shared SRAM to place"
