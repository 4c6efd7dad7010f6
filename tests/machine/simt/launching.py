"""Launches kernels on numpy arrays."""

from __future__ import annotations

import numpy as np

from npusim.machine.simt.launch import launch
from npusim.machine.simt.report import findings
from npusim.machine.simt.tables import Count
from npusim.program.simt.arguments import parameters_of
from npusim.program.simt.code import Column
from npusim.program.simt.opcodes import Op


class Launcher:
    """A machine's warp block, and what the last launch on it did."""

    def __init__(self, simt):
        self.simt = simt
        self.done = None

    def __call__(
        self, kernel, blocks, threads, *arguments, seed=None, most_steps=1 << 40, **choices
    ):
        parameters = parameters_of(kernel.parameters, arguments)
        code = kernel.compile(parameters, choices)
        self.done = launch(
            code, np.atleast_1d(blocks), np.atleast_1d(threads), arguments, self.simt, seed=seed,
            most_steps=most_steps,
        )  # fmt: skip
        return self

    @property
    def findings(self):
        """What the checks found."""
        return findings(self.done)

    @property
    def faults(self):
        """The faults by name."""
        return {found.fault.name for found in self.findings}

    def total(self, count):
        """Of all instructions."""
        return int(self.done.counts[:, count].sum())

    def of(self, count, where):
        """Of the instructions for which `where` of their row holds."""
        chosen = [where(row) for row in self.done.code.rows]
        return int(self.done.counts[chosen, count].sum())

    def additions(self, constant=None):
        """Issues and lanes of additions of fp32, or of integer additions of a constant."""
        code = self.done.code

        def adds(row):
            if constant is None:
                return row[Column.OP] == Op.REAL
            held = {int(r): int(v) for r, v in zip(code.presets, code.integers, strict=True)}
            return row[Column.OP] == Op.INTEGER and row[Column.X] == 0 and (
                held.get(int(row[Column.B])) in constant
            )  # fmt: skip

        return self.of(Count.ISSUES, adds), self.of(Count.LANES, adds)

    def memory(self, op, count=Count.WAVEFRONTS):
        """A count of loads, stores or atomics."""
        return self.of(count, lambda row: row[Column.OP] == op)
