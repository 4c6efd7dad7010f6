"""TEMPORARY stand-in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npusim.core.jit import jit, jit_inline
from npusim.machine import dram

NEVER = 1 << 50
CAP = 65536


class CommandParams(NamedTuple):
    channels: int
    granule: int
    latency: int
    burst: int
    lanes_bytes: int
    cwl: int


def command_params(machine, p):
    import os

    if not os.environ.get("DET"):
        return None
    n = machine.dram.channels
    return CommandParams(n, p.granule_bytes, p.rcd + p.cl, p.burst, p.burst_bytes * p.lanes, p.cwl)


def command_state(k):
    if k is None:
        return np.zeros(0, np.int64)
    return np.zeros(max(k.channels, 1) * (CAP * 3 + 3), np.int64)


@jit
def post(t, piece, address, size, writes, k, ks):
    channel = (address // k.granule) % k.channels
    b = channel * (CAP * 3 + 3)
    start = max(t, ks[b])
    length = -(-size // k.lanes_bytes) * k.burst
    ks[b] = start + length
    tail = ks[b + 2]
    e = b + 3 + 3 * (tail % CAP)
    ks[e], ks[e + 1], ks[e + 2] = start, piece, start + (k.cwl if writes else k.latency + length)
    ks[b + 2] = tail + 1
    return channel


@jit
def due(channel, k, ks):
    b = channel * (CAP * 3 + 3)
    if ks[b + 1] == ks[b + 2]:
        return NEVER
    return ks[b + 3 + 3 * (ks[b + 1] % CAP)]


@jit
def step(channel, now, k, ks, done):
    b = channel * (CAP * 3 + 3)
    n = 0
    while ks[b + 1] < ks[b + 2] and ks[b + 3 + 3 * (ks[b + 1] % CAP)] <= now:
        e = b + 3 + 3 * (ks[b + 1] % CAP)
        done[2 * n], done[2 * n + 1] = ks[e + 1], ks[e + 2]
        n += 1
        ks[b + 1] += 1
    return n


@jit
def flush(t, k, ks):
    return t
