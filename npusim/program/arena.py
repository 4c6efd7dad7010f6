"""Where buffers lie in one memory: next-fit allocation, so that successive kernels may overlap."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Arena:
    """Free space of one memory of `size_bytes`; allocations are aligned to `alignment_bytes`.

    Next fit: the search starts where the last allocation ended, so that a kernel's buffers lie
    beside those of the kernel before as long as there is room, and its loads need not wait.
    """

    size_bytes: int
    alignment_bytes: int = 64
    _taken: dict[int, int] = field(default_factory=dict)
    _cursor: int = 0

    def allocate(self, size_bytes: int) -> int | None:
        """The offset of `size_bytes` free bytes, or None if no gap is long enough."""
        size = -(-max(size_bytes, 1) // self.alignment_bytes) * self.alignment_bytes
        gaps = self._gaps()
        later = [(max(low, self._cursor), high) for low, high in gaps if high > self._cursor]
        for low, high in later + gaps:
            if high - low >= size:
                self._taken[low] = size
                self._cursor = low + size
                return low
        return None

    def make_way(self, size_bytes: int) -> None:
        """Start over at the bottom if so much no longer fits behind the last allocation."""
        if self._cursor + size_bytes > self.size_bytes:
            self._cursor = 0

    def free(self, offset: int) -> None:
        """Give back what `allocate` returned."""
        del self._taken[offset]

    def used_bytes(self) -> int:
        """Bytes now allocated, alignment included."""
        return sum(self._taken.values())

    def _gaps(self) -> list[tuple[int, int]]:
        edges, low = [], 0
        for offset in sorted(self._taken):
            if offset > low:
                edges.append((low, offset))
            low = offset + self._taken[offset]
        if low < self.size_bytes:
            edges.append((low, self.size_bytes))
        return edges
