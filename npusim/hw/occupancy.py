"""How many blocks of a kernel are on a core at once, and what keeps more away (A65)."""

from __future__ import annotations

from dataclasses import dataclass

from npusim.hw.simt import Simt


@dataclass(frozen=True)
class Occupancy:
    """Resident blocks and warps, their share of the warps that a core can hold, and the limit."""

    blocks: int
    warps: int
    share: float
    limit: str


def occupancy(simt: Simt, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Of blocks of so many threads with so many registers each and so much shared memory.

    The least of what warps, blocks, registers and shared memory allow, by the rules that NVIDIA
    publishes for its GPUs. No block at all fits if `blocks` is 0; `limit` says why.
    """
    resident = simt.resident
    warps = -(-threads // simt.warp_lanes)
    of_warp = _up(registers * simt.warp_lanes, resident.registers_at_once)
    by_registers = resident.registers // of_warp if of_warp else resident.warps
    by_registers -= by_registers % resident.warps_at_once
    piece = _up(shared_bytes, resident.shared_bytes_at_once)
    allowed = {
        "warps": resident.warps // warps,
        "blocks": resident.blocks,
        "registers": by_registers // warps,
        "shared memory": simt.shared_bytes // piece if piece else resident.blocks,
    }
    limit = min(allowed, key=lambda name: allowed[name])
    blocks = allowed[limit]
    return Occupancy(blocks, blocks * warps, blocks * warps / resident.warps, limit)


def _up(amount: int, piece: int) -> int:
    """The next multiple of a piece."""
    return -(-amount // piece) * piece
