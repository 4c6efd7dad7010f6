"""Why a better machine may take longer for a program: in words, by the field that was changed."""

from __future__ import annotations

from fnmatch import fnmatchcase

_LARGER_ARRAY = (
    "the same tiles fill less of a larger array, which takes longer to fill and drain; small "
    "products leave more of it idle"
)
_OTHER_PLACES = (
    "the same addresses fall on other channels and banks, where they may meet more often"
)

#: (pattern of fields, cause); the first that fits.
_CAUSES: tuple[tuple[str, str], ...] = (
    ("core.matrix.rows", _LARGER_ARRAY),
    ("core.matrix.columns", _LARGER_ARRAY),
    ("core.matrix.depth", _LARGER_ARRAY),
    ("core.matrix.arrays", _LARGER_ARRAY),
    ("core.matrix.register_*", "register tiles are larger: small products fill less of them"),
    ("cores", "more cores lie elsewhere in the network and share the same memories"),
    ("core.sram.bank_width_bytes", "banks are wider: short rows waste more of a word"),
    ("core.sram.banks", _OTHER_PLACES),
    ("dram.channels", _OTHER_PLACES),
    ("dram.pseudo_channels", _OTHER_PLACES),
    ("dram.bank*", _OTHER_PLACES),
    ("dram.width_bits", _OTHER_PLACES),
    ("dram.size_bytes", _OTHER_PLACES),
    ("dram.clock_hz", "times in nanoseconds are rounded up to whole clocks, which are others"),
    ("dram.timings_ns.*", "commands to DRAM go out in another order, with other row misses"),
    ("dram.*_queue", "commands to DRAM go out in another order, with other row misses"),
    ("cache.*", "lines are kept and replaced in another order"),
)
_ORDER = "what ends sooner asks sooner, and meets the requests of others at a worse moment"


def cause(field: str) -> str:
    """What makes a run longer although the field at this dotted path is better."""
    return next((text for pattern, text in _CAUSES if fnmatchcase(field, pattern)), _ORDER)
