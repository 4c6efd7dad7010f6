"""Transfers whose issue times are known, and when they were done."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npusim.hw.machine import Machine
from npusim.program.program import Ints


@dataclass(frozen=True)
class Transfers:
    """One row per transfer, int64: network, nodes (see machine.network), bytes, issue cycle.

    Node `core` issues; it reads from node `other`, or writes to it where `writes` is 1. Cycles
    are those of the network.
    """

    network: Ints
    core: Ints
    other: Ints
    size_bytes: Ints
    issue: Ints
    writes: Ints

    def __len__(self) -> int:
        return len(self.issue)

    def rows(self) -> Ints:
        """All columns side by side, in the order of the class."""
        columns = (self.network, self.core, self.other, self.size_bytes, self.issue, self.writes)
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Replayed:
    """The network cycle in which each transfer's last byte was there, and bytes over links.

    `link_bytes` [networks, routers, four ways out], headers included; empty where a model does
    not count them.
    """

    end: Ints
    link_bytes: Ints


def memory_cycles(machine: Machine) -> int:
    """Network cycles from a read's arrival at DRAM to its first data, on an idle bank (A46)."""
    return int(np.ceil(machine.dram.unloaded_read_ns * machine.noc.clock_hz / 1e9))
