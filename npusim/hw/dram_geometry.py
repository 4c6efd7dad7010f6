"""The shape of a DRAM: channels, banks, rows, bursts, and where the parts of an address lie."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Literal

from npusim.hw import address_mapping
from npusim.hw.address_mapping import AddressMapping
from npusim.hw.quantities import Bits, Bytes, Count, Entries, Hertz, Spec, TransfersPerSecond

Hash = Literal["xor", "none"]
_DEFAULT_INTERLEAVE_BYTES = 512
#: Banks of all channels: the models keep the state of each.
MAX_BANKS = 1 << 20


class DramGeometry(Spec):
    """Channels of DRAM, what each is made of, and which addresses lie where."""

    clock_hz: Hertz
    """Command clock."""
    size_bytes: Bytes
    """Capacity of all channels."""
    channels: Entries
    """Independent channels."""
    pseudo_channels: Entries = 1
    """Pseudo-channels per channel, with data buses of their own."""
    width_bits: Bits
    """Width of one pseudo-channel's data bus."""
    transfers_per_s: TransfersPerSecond
    """Data transfers per second and pin."""
    burst_length: Count
    """Transfers per burst."""
    bank_groups: Entries
    """Bank groups per pseudo-channel."""
    banks_per_group: Entries
    """Banks per bank group."""
    row_bytes: Bytes
    """Bytes of one row of one bank in one pseudo-channel."""
    address_mapping: AddressMapping = address_mapping.DEFAULT
    """Parts of an address, low to high; of two columns the lower has what interleave_bytes says."""
    interleave_bytes: Bytes | None = None
    """Bytes that the lower of two columns and all below it number; 512 if absent."""
    channel_hash: Hash = "xor"
    """Whether all address digits above turn the channel."""
    bank_hash: Hash = "xor"
    """Whether the digits of the row turn the bank."""

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """Geometry that has no whole bursts, rows or banks."""
        if self.width_bits % 8:
            yield "width_bits", f"must be whole bytes, found {self.width_bits} bits"
            return
        if self.burst_length * self.clock_hz % self.transfers_per_s:
            yield (
                "transfers_per_s",
                f"a burst of {self.burst_length} transfers must take whole clocks of "
                f"{self.clock_hz} Hz, found {self.transfers_per_s} transfers per second",
            )
        for name in ("pseudo_channels", "bank_groups", "banks_per_group"):
            count = getattr(self, name)
            if not _is_power_of_two(count):
                yield name, f"must be a power of two, found {count}"
        banks = self.channels * self.pseudo_channels * self.bank_groups * self.banks_per_group
        if banks > MAX_BANKS:
            product = "channels x pseudo_channels x bank_groups x banks_per_group"
            yield "channels", f"{product} must be at most {MAX_BANKS} banks, found {banks}"
        yield from self._partial_sizes()

    def _partial_sizes(self) -> Iterator[tuple[str, str]]:
        if self.row_bytes % self.burst_bytes or not _is_power_of_two(self.row_bursts):
            yield (
                "row_bytes",
                f"must be {self.burst_bytes} B (a burst) times a power of two, "
                f"found {self.row_bytes}",
            )
            return
        yield from self._interleave()
        whole = self.sweep_bytes
        if self.size_bytes % whole:
            yield (
                "size_bytes",
                f"must be a multiple of {whole} (one row in every bank of every channel), "
                f"found {self.size_bytes}",
            )
        elif self.address_mapping[-1] != "row" and not _is_power_of_two(self.size_bytes // whole):
            yield (
                "address_mapping",
                f"row must come last, since there are {self.size_bytes // whole} rows, "
                "which is no power of two",
            )

    def _interleave(self) -> Iterator[tuple[str, str]]:
        below, field = self._bytes_below_column(), "interleave_bytes"
        found = self.interleave_bytes
        if self.address_mapping.count("column") == 1:
            if found is not None:
                yield field, "must be left out where address_mapping has one column only"
            return
        given = self.lower_column_bytes
        if given % below:
            yield (
                field,
                f"must be a multiple of {below} B (what is below the column), found {given}",
            )
        elif not _is_power_of_two(given // below):
            yield field, f"must be {below} B times a power of two, found {given}"
        elif self.row_bursts % (given // below):
            yield field, f"must be at most {below * self.row_bursts} B (a whole row), found {given}"

    def _bytes_below_column(self) -> int:
        """Bytes that the fields below the lowest column number."""
        first = self.address_mapping.index("column")
        return self.burst_bytes * prod(self._count(n) for n in self.address_mapping[:first])

    def _count(self, name: str) -> int:
        """How many of a field there are; columns count as a whole row."""
        return {
            "pseudo_channel": self.pseudo_channels,
            "bank_group": self.bank_groups,
            "column": self.row_bursts,
            "channel": self.channels,
            "bank": self.banks_per_group,
            "row": self.rows,
        }[name]

    @property
    def field_counts(self) -> tuple[int, ...]:
        """How many values each entry of address_mapping takes, low to high."""
        counts = [self._count(name) for name in self.address_mapping]
        places = [k for k, name in enumerate(self.address_mapping) if name == "column"]
        if len(places) == 2:
            lower = self.lower_column_bytes // self._bytes_below_column()
            counts[places[0]], counts[places[1]] = lower, self.row_bursts // lower
        return tuple(counts)

    @property
    def lower_column_bytes(self) -> int:
        """Bytes that the lower of two columns and all below it number."""
        return self.interleave_bytes or _DEFAULT_INTERLEAVE_BYTES

    @property
    def granule_bytes(self) -> int:
        """Consecutive bytes that stay in one channel."""
        below = self.address_mapping.index("channel")
        return self.burst_bytes * prod(self.field_counts[:below])

    @property
    def burst_bytes(self) -> int:
        """Bytes of one burst."""
        return self.width_bits // 8 * self.burst_length

    @property
    def burst_clocks(self) -> int:
        """Command clocks that a burst takes on the data bus."""
        return self.burst_length * self.clock_hz // self.transfers_per_s

    @property
    def row_bursts(self) -> int:
        """Bursts of one row of one bank."""
        return self.row_bytes // self.burst_bytes

    @property
    def row_set_bytes(self) -> int:
        """Bytes of the rows with one number in all groups and pseudo-channels of a channel."""
        return self.row_bytes * self.pseudo_channels * self.bank_groups

    @property
    def sweep_bytes(self) -> int:
        """What a row of every bank holds."""
        return self.channels * self.row_set_bytes * self.banks_per_group

    @property
    def rows(self) -> int:
        """Rows of one bank."""
        return self.size_bytes // self.sweep_bytes

    @property
    def channel_bytes_per_s(self) -> float:
        """Peak bandwidth of one channel."""
        return self.pseudo_channels * self.width_bits / 8 * self.transfers_per_s

    @property
    def peak_bytes_per_s(self) -> float:
        """Peak bandwidth: the sum over the channels."""
        return self.channels * self.channel_bytes_per_s

    @property
    def spread_banks(self) -> int:
        """Different banks in which neighbouring bursts of a granule lie."""
        names = self.address_mapping
        below = min(names.index("column"), names.index("channel"))
        return prod(self.field_counts[:below])


def _is_power_of_two(count: int) -> bool:
    return count > 0 and count & (count - 1) == 0
