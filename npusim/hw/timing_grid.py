"""Looking up the time of a product in a grid of measured tiles (A52)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Looked:
    """What a grid says of some products: their cycles, and where it had to guess.

    `exact` marks products that are entries of the table, `beyond` those of which a side is longer
    than the longest entry or shorter than the shortest; the rest lies between entries.
    """

    cycles: Ints
    occupied: Ints
    exact: Flags
    beyond: Flags


@dataclass(frozen=True)
class Grid:
    """Times of one dtype by m, n and k: `axes` ascend, `cycles` and `occupied` are [m, n, k]."""

    axes: tuple[Ints, Ints, Ints]
    cycles: Ints
    occupied: Ints

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int, int, int]]) -> Grid:
        """The grid of (m, n, k, cycles, occupied) in any order, which must be full."""
        table = np.array(sorted(rows), np.int64)
        axes = (np.unique(table[:, 0]), np.unique(table[:, 1]), np.unique(table[:, 2]))
        shape = tuple(len(axis) for axis in axes)
        return cls(axes, table[:, 3].reshape(shape), table[:, 4].reshape(shape))

    def look_up(self, m: ArrayLike, n: ArrayLike, k: ArrayLike) -> Looked:
        """Times of products of at least one element, broadcast against each other.

        A product larger than the largest entry is cut into pieces of that length, which follow
        each other; a side that is shorter than the shortest entry is padded up to it. Between
        entries, times are interpolated along each of the three sides and rounded up.
        """
        m, n, k = (np.asarray(x, np.int64) for x in (m, n, k))
        sizes = tuple(np.broadcast_arrays(m, n, k))
        pieces = [_pieces(x, axis) for x, axis in zip(sizes, self.axes, strict=True)]
        occupied = np.zeros(sizes[0].shape, np.int64)
        for (x, a), (y, b), (z, c) in product(*pieces):
            occupied = occupied + a * b * c * self._between(self.occupied, (x, y, z))
        last = tuple(piece[1][0] for piece in pieces)
        tail = self._between(self.cycles, last) - self._between(self.occupied, last)
        known = [np.isin(x, axis) for x, axis in zip(sizes, self.axes, strict=True)]
        outside = [(x > axis[-1]) | (x < axis[0]) for x, axis in zip(sizes, self.axes, strict=True)]
        beyond = outside[0] | outside[1] | outside[2]
        return Looked(occupied + tail, occupied, known[0] & known[1] & known[2], beyond)

    def _between(self, values: Ints, at: tuple[Ints, ...]) -> Ints:
        """Linear in each side between entries, rounded up to whole cycles."""
        spots = [_spot(x, axis) for x, axis in zip(at, self.axes, strict=True)]
        total = np.zeros(at[0].shape, np.float64)
        for ends in product((0, 1), repeat=3):
            weight, place = np.ones(at[0].shape), []
            for (low, high, share), end in zip(spots, ends, strict=True):
                weight = weight * (share if end else 1 - share)
                place.append(high if end else low)
            total += weight * values[tuple(place)]
        return np.ceil(np.round(total, 6)).astype(np.int64)


def _pieces(x: Ints, axis: Ints) -> list[tuple[Ints, Ints]]:
    """Whole pieces as long as the longest entry, then the rest of at least one: (length, count)."""
    most = np.full(x.shape, axis[-1])
    whole = np.maximum(x - 1, 0) // axis[-1]
    return [(most, whole), (x - whole * axis[-1], np.ones(x.shape, np.int64))]


def _spot(x: Ints, axis: Ints) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """The entries around x, and how far it is from the lower to the upper one."""
    low = np.clip(np.searchsorted(axis, x, "right") - 1, 0, max(len(axis) - 2, 0))
    high = np.minimum(low + 1, len(axis) - 1)
    width = np.maximum(axis[high] - axis[low], 1)
    share = np.clip((x - axis[low]) / width, 0, 1)
    return low, high, np.where(high > low, share, 0.0)
