"""Concatenate, split and slice: boxes copied from DRAM to DRAM, nothing computed."""

from typing import Any

import numpy as np

from npusim import Claim, Hardware, Operation, Tiles, kernel, pow2

from ._moves import moves


@kernel("Concat", "Split", "Slice", space={"chunk": pow2(1 << 10, 1 << 18)})
def move(t: Tiles, op: Operation, *, chunk: int = 1 << 14) -> None:
    """About `chunk` bytes per descriptor, dealt to the cores along the first axis of each box."""
    for box in moves(op):
        source, target = box.views(op)
        first = source.by_name[source.names[0]]
        rows = max(chunk * first.size // box.size_bytes, 1)
        for _, r in t.deal(first.spans(rows)):
            rest = (slice(None),) * (len(source.names) - 1)
            t.copy(target[(r, *rest)], source[(r, *rest)], queue=r.index % 2)


@move.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    boxes = moves(op)
    size = sum(box.size_bytes for box in boxes)
    run = min((box.run_bytes() for box in boxes), default=1)
    descriptors = sum(np.maximum(-(-box.size_bytes // c.chunk) / hw.cores, 1) for box in boxes)
    return Claim(
        exposed_cycles=hw.start_cycles(np.minimum(c.chunk, size), run)
        + hw.store_cycles(np.minimum(c.chunk, size)),
        dram_read_bytes=size,
        dram_write_bytes=size,
        run_bytes=run,
        rounds=descriptors,
        slots=2,
    )
