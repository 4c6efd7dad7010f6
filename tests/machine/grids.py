"""Machines whose network is a grid, and transfers over it."""

from __future__ import annotations

import numpy as np

from npusim.machine.links import step
from npusim.machine.replay import replay
from npusim.machine.transfers import Transfers

FLIT = 32


def grid(npu, kind="mesh", rows=8, columns=8, *fields):
    """npu_a on a grid with a core at every router, and links of one 32 B flit per cycle."""
    return npu(
        f"cores={rows * columns}", f"noc.kind={kind}", f"noc.port_bytes_per_cycle={FLIT}",
        "noc.latency_cycles=0", f"noc.grid.rows={rows}", f"noc.grid.columns={columns}",
        "noc.grid.hop_cycles=4", f"noc.grid.flit_bytes={FLIT}",
        f"noc.grid.link_bytes_per_cycle={FLIT}", "noc.grid.header_flits=0", *fields,
    )  # fmt: skip


def route(which, source, target, shape):
    """All links from router to router in a network, in order."""
    found, at = [], source
    while at != target:
        link, at = step(which, at, target, shape)
        found.append(int(link))
    return np.array(found, np.int64)


def transfers(*rows):
    """Rows of (core, other, bytes, issue cycle), writes on network 0 unless they say more."""
    full = [
        (row[4] if len(row) > 4 else 0, *row[:4], row[5] if len(row) > 5 else 1) for row in rows
    ]
    return Transfers(*np.array(full, np.int64).T)


def ends(machine, model, *rows):
    """When each of the rows is done."""
    return replay(machine, transfers(*rows), model).end.tolist()


def uniform(nodes, flits_per_cycle, cycles, seed=0):
    """One-flit packets from every node to any, at random times."""
    draw = np.random.default_rng(seed)
    issue, source = np.nonzero(draw.random((cycles, nodes)) < flits_per_cycle)
    target, zero = draw.integers(0, nodes, len(issue)), np.zeros(len(issue), np.int64)
    return Transfers(zero, source, target, zero + FLIT, issue, zero + 1)
