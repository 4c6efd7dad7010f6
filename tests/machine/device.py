"""The DRAM of a machine by itself, and an oracle that serves it by its description."""

from __future__ import annotations

from collections.abc import Iterator

from npusim.hw.machine import Machine
from npusim.machine import dram


class Device:
    """The DRAM of a machine by itself: accesses in the order in which they arrive, in ticks."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.p = dram.dram_params(machine)
        self.state = dram.dram_state(self.p)

    def read(self, t: int, address: int, size: int) -> int:
        """When the last byte has left the pins."""
        return dram.access(t, address, size, False, self.p, self.state)[0]

    def write(self, t: int, address: int, size: int) -> int:
        """When the controller has taken the data."""
        return dram.access(t, address, size, True, self.p, self.state)[0]

    def waits(self, t: int, address: int, size: int, writes: bool = False) -> int:
        """Ticks that an access waits beyond an idle, closed bank."""
        return dram.access(t, address, size, writes, self.p, self.state)[1]

    def flush(self, t: int) -> int:
        return dram.flush(t, self.p, self.state)

    def counted(self, what: int) -> int:
        return int(self.state[what])

    def transfer(self, size: int) -> int:
        """Ticks that so many bytes take on the data buses of one channel."""
        bursts = -(-size // self.p.burst_bytes)
        return -(-bursts // self.p.lanes) * self.p.burst

    def places(self, channel: int = 0, bank: int | None = None) -> Iterator[tuple[int, int]]:
        """(address, row) of all granules of one channel, upwards."""
        for address in range(0, self.machine.dram.size_bytes, self.p.granule_bytes):
            found, where, row = dram.locate(address, self.p)
            if found == channel and (bank is None or where == bank):
                yield address, row

    def rows(self, count: int, bank: int = 0) -> list[int]:
        """Addresses in `count` different rows of one bank of channel 0."""
        found: dict[int, int] = {}
        for address, row in self.places(bank=bank):
            found.setdefault(row, address)
            if len(found) == count:
                return list(found.values())
        raise AssertionError(f"bank {bank} has only {len(found)} rows")

    def in_row(self, count: int) -> list[int]:
        """Addresses of `count` granules in the first row of bank 0 of channel 0."""
        places = self.places(bank=0)
        first, row = next(places)
        found = [first]
        while len(found) < count:
            address, other = next(places)
            if other == row:
                found.append(address)
        return found


class Bank:
    """One bank of one bank group, of both pseudo-channels in step."""

    def __init__(self) -> None:
        self.row = -1
        self.column = self.activate = 0
        self.closed: dict[int, tuple[int, int]] = {}


class Oracle:
    """The model by its own description: every bank by itself, no short cuts."""

    def __init__(self, device: Device) -> None:
        self.p = device.p
        self.banks: dict[tuple[int, int, int], Bank] = {}
        self.bus = [0] * self.p.channels
        self.window = [0] * self.p.channels
        spread = [c * self.p.refi // (2 * self.p.channels) for c in range(self.p.channels)]
        self.refresh = [self.p.refi // 2 + later for later in spread]
        self.posted: list[list[tuple[int, int]]] = [[] for _ in range(self.p.channels)]
        self.newest = [0] * self.p.channels

    def serve(self, t: int, address: int, size: int) -> tuple[int, int]:
        p, (channel, bank, row) = self.p, dram.locate(address, self.p)
        bursts = range(address // p.burst_bytes, (address + size - 1) // p.burst_bytes + 1)
        units = list(dict.fromkeys(burst // p.lanes for burst in bursts))[: p.groups]
        ready, opened = t, 0
        for unit in units:
            one = self.banks.setdefault((channel, bank, unit % p.groups), Bank())
            if one.row == row:
                ready = max(ready, one.column)
            elif one.closed.get(row % 4, (-1, 0))[0] != row or one.closed[row % 4][1] <= t:
                start = max(self.window[channel], t)
                self.window[channel] = start + p.activate
                start = max(start, one.activate, t + p.rp if one.row >= 0 else 0)
                if one.row >= 0:
                    one.closed[one.row % 4] = (one.row, start - p.rp)
                one.row, one.activate = row, start + p.rc
                one.column = start + p.rcd - opened * p.activate
                ready = max(ready, one.column)
                opened += 1
        begin = max(self.bus[channel], t)
        length = -(-len(bursts) // p.lanes) * p.burst
        self.bus[channel] = begin + length
        return max(begin, ready), max(begin, ready) + length

    def access(self, t: int, address: int, size: int, writes: bool) -> tuple[int, int]:
        p, channel = self.p, dram.locate(address, self.p)[0]
        idle = max(self.bus[channel], self.newest[channel])
        if not writes and self.posted[channel] and idle + 2 * p.turnaround < t:
            self.drain(idle, channel)
        while max(t, self.bus[channel]) >= self.refresh[channel]:
            due = self.refresh[channel]
            self.refresh[channel] += p.refi
            if max(t, self.bus[channel]) < self.refresh[channel]:
                done = max(self.bus[channel], due) + p.rp + p.rfc
                self.bus[channel] = done
                self.window[channel] = max(self.window[channel], done)
                for (where, _, _), one in self.banks.items():
                    if where == channel:
                        one.row = -1
                break
        if not writes:
            begin, end = self.serve(t, address, size)
            return end + p.cl, max(begin - t - p.rcd, 0)
        accepted = max(t, self.bus[channel] - p.queue_run)
        self.posted[channel].append((address, size))
        self.newest[channel] = accepted
        if len(self.posted[channel]) == p.write_batch:
            self.drain(accepted, channel)
        return accepted + p.cwl, accepted - t

    def drain(self, t: int, channel: int) -> None:
        self.bus[channel] = max(self.bus[channel], t) + self.p.turnaround
        for address, size in self.posted[channel]:
            self.serve(t, address, size)
        self.bus[channel] += self.p.turnaround
        self.posted[channel].clear()
