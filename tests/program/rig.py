"""Kernels without a graph: tensors, tiles, and the program they make."""

from __future__ import annotations

from math import prod
from typing import Any

from npusim.core.dtypes import dtype
from npusim.hw.machine import Machine
from npusim.plan.axis import Loops
from npusim.plan.room import Room, contiguous
from npusim.plan.tiles import Tiles
from npusim.plan.view import View
from npusim.program.builder import Builder
from npusim.program.kinds import Space
from npusim.program.program import Layer, Program


class Rig:
    """One program on a machine; `layer` starts another kernel in it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.builder = Builder(machine.cores, machine.core.dma.queues)
        self.room = Room(self.builder, machine)
        self._loops = Loops()
        self._open = False

    def tensor(
        self, name: str, kind: str, axes: str, *shape: int, initial: bool = True,
        space: Space = Space.DRAM,
    ) -> View:  # fmt: skip
        element = dtype(kind)
        number = self.room.tensor(name, element, prod(shape) * element.itemsize, space)
        view = View(
            self.builder, self._loops, name, number, element, axes.split(), shape,
            contiguous(shape, element),
        )  # fmt: skip
        self.builder.locate(name, view.whole().region, initial)
        return view

    def tap(self, name: str, axes: str, *shape: int) -> View:
        """A tensor that never reaches memory and is only shown."""
        number = self.builder.buffer(Space.TAP, -1, dtype("fp32"), 0, prod(shape) * 4, name)
        return View(
            self.builder, self._loops, name, number, dtype("fp32"), axes.split(), shape,
            contiguous(shape, dtype("fp32")),
        )  # fmt: skip

    def layer(self, name: str) -> Tiles:
        self._close()
        self._open = True
        self.builder.begin(Layer(name, (name,), "MatMul", "by_test", f'step 1, on("{name}")', ()))
        return Tiles(self.builder, self.machine, self.room, self._loops)

    def finish(self) -> Program:
        self._close()
        return self.builder.finish()

    def _close(self) -> None:
        if self._open:
            self.builder.end(tuple(self._loops.axes))
            self.room.release()


def gemm(rig: Rig, name: str, A: View, B: View, C: View, **sizes: Any) -> None:
    """C[m,n] = A[m,k] B[k,n] on cores dealt by rows; tiles of m x n x k, C leaves through SRAM."""
    m, n, k = (sizes.get(key, 64) for key in "mnk")
    t = rig.layer(name)
    a = t.sram(A.dtype, m, k, slots=2, name="a")
    b = t.sram(B.dtype, k, n, slots=2, name="b")
    acc = t.acc("fp32", m, n, slots=sizes.get("acc_slots", 1), name="acc")
    out = t.sram(C.dtype, m, n, name="out")
    for _, i in t.deal(list(A.m.tiles(m))):
        for j in B.n.tiles(n):
            for p in A.k.tiles(k):
                t.mma(acc, t.load(a, A[i, p]), t.load(b, B[p, j]), first=p.first)
            t.store(C[i, j], acc, via=out)


def two_layers(machine: Machine) -> Program:
    """y = x v w: the second product reads what the first wrote, from other cores and queues."""
    rig = Rig(machine)
    x, v, w = (rig.tensor(name, "bf16", axes, 256, 256)
               for name, axes in (("x", "m k"), ("v", "k n"), ("w", "k n")))  # fmt: skip
    h = rig.tensor("h", "bf16", "m n", 256, 256, initial=False)
    y = rig.tensor("y", "bf16", "m n", 256, 256, initial=False)
    gemm(rig, "up", x, v, h)
    gemm(rig, "down", h.axes("m k"), w, y, m=128, n=128, k=128, acc_slots=2)
    return rig.finish()
