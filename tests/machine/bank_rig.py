"""A slow second opinion on banks: real addresses, one word at a time, one cycle after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from npusim.machine.banks import BankParams, bank_params, layout_period
from npusim.machine.operands import Walk
from npusim.machine.patterns import Group


def banks(npu, *fields: str) -> BankParams:
    """The banks of npu_a's scratchpad with some fields set otherwise."""
    return bank_params(npu(*(f"core.sram.{field}" for field in fields)).core.sram)


def walk(base: int, lanes: Sequence[int], item: int, stride: int, count: int) -> Walk:
    """Accesses to `lanes` at count steps of one stride."""
    where = np.array(lanes, np.int64)
    return Walk(base, item, where, len(lanes), np.array([count]), np.array([stride]))


def bank(address: int, p: BankParams) -> int:
    """The bank of a byte, by its definition."""
    piece = address // p.interleave
    row, column = divmod(piece, p.banks)
    return column ^ (row % p.banks) if p.swizzle else column


def words(base: int, lanes: Sequence[int], item: int, p: BankParams) -> set[int]:
    """Numbers of the words that one access needs."""
    return {(base + lane + byte) // p.width for lane in lanes for byte in range(item)}


def taken_alone(base: int, lanes: Sequence[int], item: int, p: BankParams) -> int:
    """Cycles of one access: words of the busiest bank."""
    needed = [bank(word * p.width, p) for word in words(base, lanes, item, p)]
    return max(needed.count(number) for number in set(needed))


def swept(walk: Walk, slot: int, p: BankParams) -> tuple[int, int]:
    """(accesses, cycles) of a walk, access by access."""
    accesses = cycles = 0
    for step in product(*(range(size) for size in walk.sizes)):
        base = walk.base + sum(int(k * s) for k, s in zip(step, walk.strides, strict=True))
        for first in range(0, len(walk.lanes), walk.chunk):
            lanes = walk.lanes[first : first + walk.chunk].tolist()
            accesses += 1
            cycles += max(taken_alone(base, lanes, walk.item, p), slot)
    return accesses, cycles


@dataclass
class _Stream:
    """One stream on its way: accesses in flight, each the words it still needs by port."""

    walk: Walk
    period: int
    port: int
    at: int = 0
    flying: list[dict[int, int]] = field(default_factory=list)

    def ask(self, p: BankParams) -> None:
        while len(self.flying) < p.depth:
            base = self.walk.base + self.walk.stride * (self.at % self.period)
            needed: dict[int, int] = {}
            for word in words(base, self.walk.lanes[: self.walk.chunk].tolist(), self.walk.item, p):
                number = self.port + bank(word * p.width, p)
                needed[number] = needed.get(number, 0) + 1
            self.flying.append(needed)
            self.at += 1

    def wants(self, port: int) -> dict[int, int] | None:
        return next((needed for needed in self.flying if needed.get(port)), None)


def brute_force(patterns: Sequence[Sequence[Group]], p: BankParams, cycles: int) -> np.ndarray:
    """Accesses that each group (two per pattern) has taken after 0, 1, ... cycles."""
    streams: dict[tuple[int, int], list[_Stream]] = {}
    for n, groups in enumerate(patterns):
        for g, group in enumerate(groups):
            streams[n, g] = [
                _Stream(w, w.followed(p), p.writes_from if writes else 0)
                for w, writes in group.streams
            ]
    taken = np.zeros((cycles + 1, 2 * len(patterns)), np.int64)
    last: dict[int, int] = {}
    free_at = dict.fromkeys(streams, 0)
    for now in range(cycles):
        for found in streams.values():
            for stream in found:
                stream.ask(p)
        for port in range(p.banks + p.writes_from):
            groups = 2 * len(patterns)
            for group in ((last.get(port, 0) + 1 + k) % groups for k in range(groups)):
                mine = streams.get((group // 2, group % 2), ())
                wanting = [needed for s in mine if (needed := s.wants(port))]
                if wanting:
                    wanting[0][port] -= 1
                    last[port] = group
                    break
        taken[now + 1] = taken[now]
        for (n, g), found in streams.items():
            ready = all(not any(stream.flying[0].values()) for stream in found)
            if ready and now >= free_at[n, g]:
                taken[now + 1, 2 * n + g] += 1
                free_at[n, g] = now + patterns[n][g].slot
                for stream in found:
                    del stream.flying[0]
    return taken


__all__ = ["banks", "brute_force", "layout_period", "swept", "taken_alone", "walk"]
