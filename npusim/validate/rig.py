"""What a micro-benchmark is given: the machine, fresh benches for it, and a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from npusim.core.errors import NpusimError
from npusim.hw.machine import Machine
from npusim.program.kinds import Space
from npusim.validate.bench import Bench
from npusim.validate.peaks import REACHED, Stated, stated_latency_s, stated_peaks
from npusim.validate.probe_result import Curve, Measurement, Series
from npusim.validate.timed import Timed


class Point(NamedTuple):
    """A point of a curve, and the run that it comes from where the curve is held to a peak."""

    x: float
    y: float
    run: Timed | None = None


Points = list[Point]


@dataclass
class Rig:
    """Collects what one group of micro-benchmarks measures on a machine."""

    machine: Machine
    group: str
    measurements: list[Measurement] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def bench(self) -> Bench:
        """An idle machine."""
        return Bench(self.machine)

    @property
    def peaks(self) -> dict[str, Stated]:
        """What the machine's file promises, by name."""
        return stated_peaks(self.machine)

    @property
    def loads(self) -> int:
        """DMA queues of a core that load; the last one stores."""
        return self.machine.core.dma.queues - 1

    @property
    def store_queue(self) -> int:
        """The DMA queue that stores."""
        return self.machine.core.dma.queues - 1

    def tile_bytes(self) -> int:
        """A tile of which two per queue fill no more than half a scratchpad, up to 64 KiB."""
        room = self.machine.core.sram.size_bytes // (4 * self.machine.core.dma.queues)
        tile, request = 1 << 16, self.machine.core.dma.request_bytes
        while tile > max(room, request):
            tile //= 2
        return tile

    def held(self) -> tuple[int, int]:
        """Rows (k) and columns (n) of an operand that an array holds; tensor cores hold registers'.

        A single block of these would ask for more operands than a scratchpad delivers.
        """
        matrix = self.machine.core.matrix
        if matrix.style == "systolic":
            return matrix.rows, matrix.columns
        return matrix.register_rows or matrix.rows, matrix.register_columns or matrix.columns

    def core_counts(self) -> list[int]:
        """1, 2, 4, ... and all cores."""
        counts = [1 << n for n in range(self.machine.cores.bit_length())]
        return sorted({*(c for c in counts if c <= self.machine.cores), self.machine.cores})

    # ---------------------------------------------------------------- notes

    def peak(self, name: str, value: float, peak: str, run: Timed, beside: str = "") -> None:
        """A number that is held against a stated peak; `beside` tells more of what limits it."""
        stated = self.peaks[peak]
        share = value / stated.value
        self.measurements.append(
            Measurement(
                group=self.group,
                name=name,
                value=value,
                unit=stated.unit,
                stated=stated.value,
                share=share,
                busy="" if share >= REACHED else run.saturated(),
                peak=peak,
                limits="; ".join(text for text in (run.limits(), beside) if text),
            )
        )

    def latency(self, name: str, value_s: float, level: str) -> None:
        """A latency, beside what the file's figures add up to."""
        stated = stated_latency_s(self.machine, level)
        self.number(name, value_s, "s", stated=stated)

    def number(
        self, name: str, value: float, unit: str, stated: float | None = None,
        run: Timed | None = None,
    ) -> None:  # fmt: skip
        """A number that is no peak; `stated` stands beside it, `run` tells what limits it."""
        share = value / stated if stated else None
        missed = run is not None and share is not None and share < REACHED
        self.measurements.append(
            Measurement(
                group=self.group, name=name, value=value, unit=unit, stated=stated, share=share,
                limits=run.limits() if run else "",
                busy=run.saturated() if run and missed else "",
            )
        )  # fmt: skip

    def curve(
        self, name: str, x: str, y: str, lines: dict[str, Points], peak: str | None = None,
        unit: str | None = None, logarithmic: bool = True,
    ) -> None:  # fmt: skip
        """Numbers against another; `peak` names the stated one that bounds them.

        The highest point of all is a measurement too, so that none is left out of account.
        """
        stated = self.peaks[peak] if peak else None
        if peak and any(lines.values()):
            label, best = max(
                ((label, point) for label, line in lines.items() for point in line),
                key=lambda found: found[1].y,
            )
            assert best.run is not None
            which = f", {label}" if len(lines) > 1 else ""
            self.peak(f"{name}{which}, best at {best.x:,.6g}", best.y, peak, best.run)
        self.curves.append(
            Curve(
                group=self.group,
                name=name,
                x_label=x,
                y_label=y,
                y_unit=unit or (stated.unit if stated else ""),
                logarithmic=logarithmic,
                stated=stated.value if stated else None,
                series=tuple(
                    Series(label=label, x=tuple(p.x for p in line), y=tuple(p.y for p in line))
                    for label, line in lines.items()
                    if line
                ),
            )
        )

    @contextmanager
    def asking(self, what: str) -> Iterator[None]:
        """Ask for something that this machine may lack the room for; then it is left out."""
        try:
            yield
        except NpusimError as error:
            self.leave_out(what, error.problems[0].message)

    def leave_out(self, what: str, why: str) -> None:
        """Something that this machine cannot be asked, and why."""
        self.left_out.append(f"{what}: {why}")

    def has_shared(self) -> bool:
        """Whether there is a shared SRAM."""
        return self.bench().room(Space.SHARED) > 0
