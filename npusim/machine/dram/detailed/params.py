"""Parameters of the per-command DRAM model, in quarters of a command clock (A40).

Row commands of HBM3 take half clocks, and no parameter of any standard is finer than quarters.
Times of a command count from its first clock, also where it holds its bus for several (A41).
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from npusim.hw.dram import Dram
from npusim.machine.dram.detailed import layout

#: Parts of one command clock that the model counts.
QUARTERS = 4


class Controller(NamedTuple):
    """Geometry of a channel, its queues, its timing in quarters, and where its state lies.

    `step` is the distance of points in time at which a command may begin; `clock_ticks` are ticks
    of the machine's time base in one clock. A bank's number in its channel holds pseudo-channel,
    bank group and bank, high to low. Addresses are taken apart by `DramParams`, which the calls
    that get addresses take beside this.
    """

    channels: int
    banks: int
    lane_shift: int
    group_shift: int
    burst_bytes: int
    clock_ticks: int
    step: int
    read_queue: int
    write_queue: int
    drain_at: int
    drain_low: int
    dual_bus: bool
    activate_length: int
    precharge_length: int
    burst: int
    cl: int
    controller: int
    cwl: int
    rcd: int
    rcd_write: int
    rp: int
    ras: int
    rc: int
    wr: int
    rtp: int
    ccd_s: int
    ccd_l: int
    rrd_s: int
    rrd_l: int
    wtr_s: int
    wtr_l: int
    rtw: int
    faw: int
    rfc: int
    refi: int
    first_refresh: int
    log_commands: int
    pieces: int
    at_lanes: int
    at_groups: int
    at_banks: int
    at_busy: int
    at_entries: int
    at_log: int
    channel_size: int
    at_pieces: int
    at_channels: int
    size: int


def controller(dram: Dram, clock_ticks: int, pieces: int, log_commands: int = 0) -> Controller:
    """The controllers of all channels, for at most `pieces` pieces in flight at once.

    `clock_ticks` are the caller's ticks in one command clock. The first `log_commands` commands
    of each channel are recorded.
    """
    lengths = _lengths(dram)
    return Controller(
        burst_bytes=dram.burst_bytes,
        channels=dram.channels,
        clock_ticks=clock_ticks,
        step=gcd(QUARTERS, *lengths.values()),
        read_queue=dram.read_queue,
        write_queue=dram.write_queue,
        drain_at=dram.drain_at_bursts,
        drain_low=dram.drain_low_bursts,
        dual_bus=dram.dual_command_bus,
        **lengths,
        **_times(dram),
        **layout.parts(dram, pieces, log_commands),
    )


def _lengths(dram: Dram) -> dict[str, int]:
    """Quarters that row commands take on their bus."""
    return {
        "activate_length": round(dram.activate_command_clocks * QUARTERS),
        "precharge_length": round(dram.precharge_command_clocks * QUARTERS),
    }


def _times(dram: Dram) -> dict[str, int]:
    """Timing parameters in quarters, each rounded up to whole clocks as a controller must."""
    times = dram.timings_ns

    def quarters(time_ns: float) -> int:
        return dram.clocks(time_ns) * QUARTERS

    burst = dram.burst_clocks * QUARTERS
    names = (
        "cl", "cwl", "rcd", "rp", "ras", "rc", "wr", "rtp",
        "rrd_s", "rrd_l", "wtr_s", "wtr_l", "faw", "rfc",
    )  # fmt: skip
    return {
        **{name: quarters(getattr(times, name)) for name in names},
        "burst": burst,
        "controller": quarters(dram.controller_ns),
        "rcd_write": quarters(dram.rcd_write_ns),
        "ccd_s": max(quarters(times.ccd_s), burst),
        "ccd_l": max(quarters(times.ccd_l), burst),
        "rtw": dram.read_to_write_clocks * QUARTERS,
        "refi": layout.NEVER if dram.refresh == "none" else quarters(times.refi),
        "first_refresh": round(dram.first_refresh * quarters(times.refi)),
    }
