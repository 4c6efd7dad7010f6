"""The scratchpad of a core."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from npusim.hw.quantities import Bytes, BytesPerCycle, Count, Cycles, Quantity, Spec

#: Bytes after which the layout of banks repeats: each place in it may have to be looked at.
MAX_PERIOD_BYTES = 1 << 20
#: The row of a stream that is solved for conflicts has no more accesses to be in flight (A48);
#: the work grows with the square of the entries.
StreamEntries = Annotated[int, Quantity("number", at_most=64)]


class Sram(Spec):
    """A core's software-managed scratchpad: banks side by side, words dealt out among them."""

    size_bytes: Bytes
    """Capacity per core."""
    banks: Annotated[int, Quantity("number", at_most=4096)]
    """Banks that can each serve one access per cycle."""
    bank_width_bytes: BytesPerCycle
    """Bytes one bank moves per cycle: a word."""
    latency_cycles: Cycles
    """From request to data on an idle bank."""
    ports: Literal["single", "read_write", "unlimited"] = "single"
    """Ports of a bank: one for reads and writes alike, one for each, or as many as anyone asks for
    (a bound: what the same program takes without bank conflicts)."""
    interleave_words: Count = 1
    """Consecutive words in one bank before the next bank follows."""
    swizzle: bool = False
    """Whether the bank number is XORed with the number of the row of banks it lies in."""
    stream_entries: StreamEntries = 4
    """Accesses that each operand's stream may have in flight; the innermost rows that are solved
    for conflicts have no more than 64 (A48)."""

    @property
    def interleave_bytes(self) -> int:
        """Consecutive bytes in one bank."""
        return self.interleave_words * self.bank_width_bytes

    @property
    def bandwidth_bytes_per_cycle(self) -> int:
        """All banks together."""
        return self.banks * self.bank_width_bytes

    def inconsistencies(self) -> Iterator[tuple[str, str]]:
        """A capacity that leaves some banks with more rows than others; a XOR beyond the banks."""
        row, product = self.bandwidth_bytes_per_cycle, "banks x bank_width_bytes"
        if self.interleave_words > 1:
            row, product = row * self.interleave_words, f"{product} x interleave_words"
        if self.size_bytes % row:
            yield (
                "size_bytes",
                f"must be a multiple of {product} = {row} B, found {self.size_bytes}",
            )
        if self.swizzle and self.banks & (self.banks - 1):
            yield "swizzle", f"needs a power of two of banks, found {self.banks}"
        product, period = "bank_width_bytes x interleave_words", self.interleave_bytes
        if self.swizzle:
            product, period = f"{product} x banks x banks", period * self.banks**2
        if period > MAX_PERIOD_BYTES:
            yield (
                "bank_width_bytes",
                f"{product} must be at most {MAX_PERIOD_BYTES} B"
                + (" with swizzle" if self.swizzle else "")
                + f", found {period}",
            )
