"""A machine's DRAM as numbers for compiled code: ticks, counts, shifts, and places in the state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from npusim.hw.dram import Dram
from npusim.hw.machine import Machine
from npusim.machine.dram.layout import (
    ALL,
    BANK,
    BEFORE,
    BOUND,
    BURST,
    CHANNEL,
    COUNTS,
    DETAILED,
    GROUP,
    LANE,
    REFRESH,
    ROW,
    RUN,
    STRETCH_BITS,
    WRITE,
)
from npusim.program.program import Ints

_MODELS = {"bound": BOUND, "run": RUN, "burst": BURST, "detailed": DETAILED}
#: Places into which model `run` divides the read queue at least (A36).
_RUN_PLACES = 8


class DramParams(NamedTuple):
    """Times in ticks; shifts and masks that take a burst's number apart; places of the state.

    `low_bits` are those below the channel; the other shifts count in a channel's own burst number,
    which has no channel in it. `spread` neighbouring bursts lie in different banks, of one number
    and row if `one_bank`; `block` bursts lie in the same ones. The places of a
    channel's parts count from its own, channel * `channel_size` + COUNTS.
    """

    model: int
    channels: int
    channel_bits: int
    channel_hash: int
    low_bits: int
    lane_shift: int
    lane_mask: int
    group_shift: int
    group_mask: int
    bank_shift: int
    bank_mask: int
    bank_bits: int
    bank_hash: int
    row_shift: int
    row_mask: int
    lanes: int
    lane_bits: int
    groups: int
    banks: int
    burst_bytes: int
    burst_bits: int
    spread: int
    spread_bits: int
    spread_lanes: int
    spread_lane_bits: int
    one_bank: int
    block: int
    burst: int
    ccd_s: int
    ccd_l: int
    round: int
    whole_sets: int
    rcd: int
    rcd_write: int
    rp: int
    cl: int
    controller: int
    cwl: int
    ras: int
    rc: int
    write_to_precharge: int
    read_to_precharge: int
    activate: int
    group_activate: int
    row_commands: int
    turn: int
    turn_to_write: int
    turn_to_read: int
    turn_group: int
    refi: int
    first_refresh: int
    rfc: int
    stretch: int
    clock: int
    places: int
    place_bits: int
    read_queue: int
    drain_at: int
    drain_low: int
    at_lanes: int
    at_groups: int
    at_banks: int
    at_sets: int
    at_queue: int
    at_writes: int
    channel_size: int


def dram_params(machine: Machine) -> DramParams:
    """The machine's DRAM in ticks of its time base."""
    return params_of(machine.dram, machine.tick_hz // machine.dram.clock_hz)


def params_of(dram: Dram, clock: int) -> DramParams:
    """A DRAM in ticks of which `clock`, a multiple of four, are one command clock (A1, A34)."""
    times = dram.timings_ns

    def ticks(time_ns: float) -> int:
        return dram.clocks(time_ns) * clock

    burst = dram.burst_clocks * clock
    ccd_s = max(ticks(times.ccd_s), burst)
    ccd_l = max(ticks(times.ccd_l), burst)
    geometry = _geometry(dram)
    per_round = geometry["spread"] // geometry["spread_lanes"] * ccd_s
    there = dram.read_to_write_clocks * clock
    back = ticks(times.cwl) + burst + ticks(times.wtr_s)
    longer = ticks(times.wtr_l) - ticks(times.wtr_s)
    refreshes = dram.refresh != "none" and dram.model != "bound"
    return DramParams(
        model=_MODELS[dram.model],
        **geometry,
        burst=burst,
        ccd_s=ccd_s,
        ccd_l=ccd_l,
        round=max(ccd_l, per_round),
        whole_sets=int(geometry["one_bank"] == 1 and per_round >= ccd_l),
        rcd=ticks(times.rcd),
        rcd_write=ticks(dram.rcd_write_ns),
        rp=ticks(times.rp),
        cl=ticks(times.cl),
        controller=ticks(dram.controller_ns),
        cwl=ticks(times.cwl),
        ras=ticks(times.ras),
        rc=ticks(times.rc),
        write_to_precharge=ticks(times.cwl) + burst + ticks(times.wr),
        read_to_precharge=ticks(times.rtp),
        activate=max(ticks(times.rrd_s), -(-ticks(times.faw) // 4)),
        group_activate=ticks(times.rrd_l),
        row_commands=round((dram.activate_command_clocks + dram.precharge_command_clocks) * clock),
        turn=max(there - ccd_s, 0) + max(back - ccd_s, 0),
        turn_to_write=max(there - ccd_s, 0),
        turn_to_read=max(back - ccd_s, 0),
        turn_group=max(back + longer - ccd_l, 0),
        refi=max(ticks(times.refi), 1) if refreshes else 1 << 60,
        first_refresh=round(dram.first_refresh * ticks(times.refi)) if refreshes else 1 << 60,
        rfc=ticks(times.rfc),
        stretch=round((1 << STRETCH_BITS) / dram.share_without_refresh),
        clock=clock,
        **_places(dram),
    )


def _geometry(dram: Dram) -> dict[str, int]:
    """Counts, and where the parts of an address lie (A23)."""
    names, counts = dram.address_mapping, dram.field_counts
    shifts: dict[str, int] = {}
    at = 0
    for name, count in zip(names, counts, strict=True):
        if name != "channel":
            shifts.setdefault(name, at)
            at += (count - 1).bit_length()
    below_channel = names.index("channel")
    first = names.index("column")
    spread = int(np.prod(counts[: min(first, below_channel)], dtype=np.int64))
    block = spread * counts[first] if first < below_channel else spread
    lanes = dram.pseudo_channels if "pseudo_channel" in names[: min(first, below_channel)] else 1
    return {
        "channels": dram.channels,
        "channel_bits": _bits(dram.channels),
        "channel_hash": int(dram.channel_hash == "xor"),
        "low_bits": sum((c - 1).bit_length() for c in counts[:below_channel]),
        "lane_shift": shifts["pseudo_channel"],
        "lane_mask": dram.pseudo_channels - 1,
        "group_shift": shifts["bank_group"],
        "group_mask": dram.bank_groups - 1,
        "bank_shift": shifts["bank"],
        "bank_mask": dram.banks_per_group - 1,
        "bank_bits": max(_bits(dram.banks_per_group), 1),
        "bank_hash": int(dram.bank_hash == "xor"),
        "row_shift": shifts["row"],
        "row_mask": dram.rows - 1 if _bits(dram.rows) >= 0 else (1 << 60) - 1,
        "lanes": dram.pseudo_channels,
        "lane_bits": _bits(dram.pseudo_channels),
        "groups": dram.bank_groups,
        "banks": dram.banks_per_group,
        "burst_bytes": dram.burst_bytes,
        "burst_bits": _bits(dram.burst_bytes),
        "spread": spread,
        "spread_bits": _bits(spread),
        "spread_lanes": lanes,
        "spread_lane_bits": _bits(lanes),
        "one_bank": int(first < min(names.index("bank"), names.index("row"))),
        "block": block,
    }


def _bits(count: int) -> int:
    """Address bits that number so many things, -1 if they are no power of two."""
    return count.bit_length() - 1 if count & (count - 1) == 0 else -1


def _places(dram: Dram) -> dict[str, int]:
    """Sizes of the queues, and the places of the parts of a channel's state."""
    groups = dram.pseudo_channels * dram.bank_groups
    bits = max((dram.read_queue // _RUN_PLACES).bit_length() - 1, 0) if dram.model == "run" else 0
    places = dram.read_queue >> bits
    parts = {
        "at_lanes": CHANNEL,
        "at_groups": dram.pseudo_channels * LANE,
        "at_banks": groups * GROUP,
        "at_sets": groups * dram.banks_per_group * BANK,
        "at_queue": dram.banks_per_group * ALL,
        "at_writes": places,
        "channel_size": (dram.drain_at_bursts + 1) * WRITE,
    }
    ends = np.cumsum(list(parts.values())).tolist()
    return {
        "places": places,
        "place_bits": bits,
        "read_queue": dram.read_queue,
        "drain_at": dram.drain_at_bursts,
        "drain_low": dram.drain_low_bursts,
        **dict(zip(parts, ends, strict=True)),
    }


def dram_state(p: DramParams) -> Ints:
    """Everything closed and idle; refreshes of the channels are spread over the interval (A62)."""
    state = np.zeros(COUNTS + p.channels * p.channel_size, np.int64)
    channels = state[COUNTS:].reshape(p.channels, p.channel_size)
    channels[:, p.at_sets : p.at_queue : ALL] = -1
    banks = channels[:, p.at_banks : p.at_sets].reshape(p.channels, -1, BANK)
    banks[:, :, ROW] = -1
    banks[:, :, BEFORE::2] = -1
    lanes = channels[:, p.at_lanes : p.at_groups].reshape(p.channels, p.lanes, LANE)
    spread = np.arange(p.channels, dtype=np.int64) * (p.refi // (2 * p.channels))
    lanes[:, :, REFRESH] = p.first_refresh + spread[:, None]
    return state
