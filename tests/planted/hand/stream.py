"""Negation, double buffered by hand: loads, work and stores of different tiles overlap."""

from typing import Any

from npusim import Claim, Hardware, Operation, Tiles, kernel


@kernel("Neg", space={})
def stream(t: Tiles, op: Operation, *, rows: int = 8) -> None:
    """Tile n uses slot n % 2, so its load waits for the work on tile n - 2, and so on."""
    X, Y = op.X.axes("m n"), op.Y.axes("m n")
    x = t.sram(X.dtype, rows, X.n.size, slots=2, name="x")
    y = t.sram(Y.dtype, rows, Y.n.size, slots=2, name="y")
    work: list[int] = []
    stores: list[int] = []
    with t.order("by hand"):
        for i in X.m.tiles(rows):
            before = i.index - 2
            if before >= 0:
                t.wait(work[before])  # the slot of x has been read
            tile = t.load(x, X[i, slice(None)])
            t.wait(t.event())  # the tile is there
            if before >= 0:
                t.wait(stores[before])  # the slot of y has been stored
            result = t.vec(y, -tile)
            work.append(t.event())
            t.wait(work[-1])  # the result is there
            t.store(Y[i, slice(None)], result)
            stores.append(t.event())


@kernel("Neg", space={})
def prefetch(t: Tiles, op: Operation, *, rows: int = 8) -> None:
    """All loads are issued at once; the first waits for a go that comes behind all of them."""
    X, Y = op.X.axes("m n"), op.Y.axes("m n")
    spans = X.m.spans(rows)
    x = t.sram(X.dtype, rows, X.n.size, slots=len(spans), name="x")
    y, go = t.sram(Y.dtype, rows, Y.n.size, name="y"), t.sram("fp32", 1, 1, name="go")
    with t.order("by hand"):
        t.wait(t.event() + len(spans) + 1)  # the go
        tiles = [t.load(x, X[i, slice(None)]) for i in spans]
        loaded = t.event()
        t.vec(go, 0.0)
        t.wait(loaded)
        for i, tile in zip(X.m.tiles(rows), tiles, strict=True):
            if i.index:
                t.wait(t.event())
            result = t.vec(y, -tile)
            t.wait(t.event())
            t.store(Y[i, slice(None)], result)


@kernel("Neg", space={})
def handed(t: Tiles, op: Operation, *, rows: int = 8) -> None:
    """Core 0 negates into shared SRAM, core 1 takes it from there to memory."""
    X, Y = op.X.axes("m n"), op.Y.axes("m n")
    shared = t.shared(X.dtype, X.m.size, X.n.size, axes="m n", name="handed")
    x = t.sram(X.dtype, X.m.size, X.n.size, name="x")
    y = t.sram(Y.dtype, Y.m.size, Y.n.size, name="y")
    everything = slice(0, X.m.size), slice(None)
    with t.order("by hand"):
        for core, _ in t.deal(["negate", "take"]):
            if core == 0:
                tile = t.load(x, X[everything])
                t.wait(t.event())
                result = t.vec(y, -tile)
                t.wait(t.event())
                t.store(shared[everything], result)
                done = t.event()
            else:
                t.wait(done)  # the other core has handed over
                tile = t.load(x, shared[everything])
                t.wait(t.event())
                t.store(Y[everything], tile)


@stream.claim
@prefetch.claim
@handed.claim
def _(op: Operation, hw: Hardware, c: Any) -> Claim:
    return Claim(vector_cycles=1)
