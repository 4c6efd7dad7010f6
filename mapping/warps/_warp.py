"""Sums and extremes over a warp, by shuffles; every lane gets the result."""

from npusim import simt


def over_warp_sum(value):
    """The sum of all lanes' values."""
    distance = simt.lanes // 2
    while distance > 0:
        value += simt.shuffle_xor(value, distance)
        distance //= 2
    return value


def over_warp_max(value):
    """The largest of all lanes' values."""
    distance = simt.lanes // 2
    while distance > 0:
        value = max(value, simt.shuffle_xor(value, distance))
        distance //= 2
    return value
