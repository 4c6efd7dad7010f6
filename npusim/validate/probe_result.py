"""What a probe of a machine found: one versioned JSON document; docs/metrics.md defines it.

A quantity that does not exist is null.
"""

from __future__ import annotations

from typing import Literal

from npusim.measure.record import Record

PROBE_SCHEMA_VERSION: Literal[1] = 1


class Measurement(Record):
    """One number: `stated` is what the machine file promises, `share` the part of it reached.

    `peak` names the stated peak that it is held against, null where it is held against none: a
    latency has a stated value, but that is no peak. `limits` are the classes that the core-cycles
    went to, `busy` is the busiest resource where what is stated was not reached.
    """

    group: str
    name: str
    value: float
    unit: str
    stated: float | None = None
    share: float | None = None
    peak: str | None = None
    limits: str = ""
    busy: str = ""


class Series(Record):
    """One line of a curve."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]


class Curve(Record):
    """One number against another; `stated` is the peak that no point can exceed, in y's unit."""

    group: str
    name: str
    x_label: str
    y_label: str
    y_unit: str
    logarithmic: bool
    stated: float | None
    series: tuple[Series, ...]


class Peak(Record):
    """A peak that the machine file states, and the measurement that came nearest to it.

    `reached` from `docs/metrics.md`'s share on; `why` tells what the nearest one was held up by.
    """

    name: str
    stated: float
    unit: str
    best: float | None
    share: float | None
    by: str | None
    reached: bool
    why: str


class Roof(Record):
    """A ceiling of the roofline: FLOP/s (`compute`), or bytes per second (`memory`)."""

    name: str
    kind: Literal["compute", "memory"]
    stated: float
    measured: float | None


class Group(Record):
    """A group of micro-benchmarks: what it asks, and what it could not ask of this machine."""

    name: str
    question: str
    left_out: tuple[str, ...]


class ProbeManifest(Record):
    """What the probe follows from."""

    versions: dict[str, str]
    machine_hash: str
    hw: str
    hw_set: tuple[str, ...]
    only: tuple[str, ...]


class ProbeResult(Record):
    """Everything that a probe found out about a machine."""

    schema_version: Literal[1]
    hardware: str
    groups: tuple[Group, ...]
    measurements: tuple[Measurement, ...]
    curves: tuple[Curve, ...]
    peaks: tuple[Peak, ...]
    roofs: tuple[Roof, ...]
    notes: tuple[str, ...]
    manifest: ProbeManifest

    def to_json(self) -> str:
        """The document, indented, with a newline at its end."""
        return self.model_dump_json(indent=2) + "\n"
