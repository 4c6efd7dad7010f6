"""The timing parameters of a DRAM, in nanoseconds, named as the standards name them."""

from __future__ import annotations

from collections.abc import Iterator

from npusim.hw.quantities import Nanoseconds, Spec


class DramTimings(Spec):
    """Timing parameters in nanoseconds, named as the standards name them."""

    rcd: Nanoseconds
    """Activate to read command of one bank."""
    rcd_write: Nanoseconds | None = None
    """Activate to write command of one bank; as rcd if absent."""
    rp: Nanoseconds
    """Precharge to activate of one bank."""
    cl: Nanoseconds
    """Read command to data."""
    cwl: Nanoseconds
    """Write command to data."""
    ras: Nanoseconds
    """Activate to precharge of one bank."""
    rc: Nanoseconds
    """Activate to activate of one bank."""
    wr: Nanoseconds
    """End of write data to precharge of one bank."""
    rtp: Nanoseconds
    """Read command to precharge of one bank."""
    ccd_s: Nanoseconds
    """Column command to column command, different bank groups."""
    ccd_l: Nanoseconds
    """Column command to column command, same bank group."""
    rrd_s: Nanoseconds
    """Activate to activate of different banks, different bank groups."""
    rrd_l: Nanoseconds
    """Activate to activate of different banks, same bank group."""
    wtr_s: Nanoseconds
    """End of write data to read command, different bank groups."""
    wtr_l: Nanoseconds
    """End of write data to read command, same bank group."""
    rtw: Nanoseconds | None = None
    """Read command to write command; cl + burst + 2 clocks - cwl if absent."""
    faw: Nanoseconds
    """Window that holds at most four activates of a pseudo-channel."""
    rfc: Nanoseconds
    """Length of one refresh of all banks."""
    refi: Nanoseconds
    """Mean interval between refreshes."""

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Times that no device can have together."""
        least = self.rcd + self.rp
        if self.rc < least:
            yield "rc", f"must be at least rcd + rp = {least:g} ns, found {self.rc:g} ns"
        for field, name in (
            ("ras", "rcd"),
            ("rc", "ras"),
            ("ccd_l", "ccd_s"),
            ("rrd_l", "rrd_s"),
            ("wtr_l", "wtr_s"),
            ("faw", "rrd_s"),
        ):
            value, other = getattr(self, field), getattr(self, name)
            if value < other:
                yield field, f"must be at least {name} = {other:g} ns, found {value:g} ns"
        lost = self.rfc + self.rp + self.rtp + self.rcd
        if self.refi < 2 * lost:
            yield (
                "refi",
                f"must be at least 2 (rfc + rp + rtp + rcd) = {2 * lost:g} ns, or refreshes leave "
                f"less than half of the time, found {self.refi:g} ns",
            )
        for field in ("rc", "faw", "cl", "cwl", "wr"):
            if getattr(self, field) > self.refi:
                yield (
                    field,
                    f"must be at most refi = {self.refi:g} ns, found {getattr(self, field):g} ns",
                )
