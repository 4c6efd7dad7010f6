"""What a run is asked for, as plain data, and what its parts mean."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal, get_args

from npusim.core.errors import InputError, Place, Problem, choose_from
from npusim.measure.result import Inputs

Stage = Literal["plan", "program", "functional", "timing"]
STAGES: tuple[Stage, ...] = get_args(Stage)
Sensitivity = Literal["fixed", "replan"]
SENSITIVITIES: tuple[Sensitivity, ...] = get_args(Sensitivity)
_ORDER = re.compile(r"random:[0-9]+")


@dataclass(frozen=True)
class Request:
    """One run: texts as on the command line, KEY=VALUE texts as mappings.

    `order` is None or `random:SEED`; `out` None writes no results folder. `sensitivity` times the
    run on machines with one number doubled or halved, under the same plan or under one made for
    each; `confirm` on those with twice what the largest layers lack.
    """

    model: str
    hw: str = "npu_a"
    plan: str = "auto"
    sizes: Mapping[str, str] = field(default_factory=dict)
    hw_set: Sequence[str] = ()
    seed: int = 0
    input: Mapping[str, str] = field(default_factory=dict)
    timing_only: bool = False
    allow_host: bool = True
    order: str | None = None
    stop_after: Stage | None = None
    sensitivity: Sensitivity | None = None
    confirm: bool = False
    out: str | None = "results"

    def __post_init__(self) -> None:
        problems = []
        if self.stop_after is not None and self.stop_after not in STAGES:
            hints = choose_from(self.stop_after, STAGES)
            message = f"unknown stage {self.stop_after!r}"
            problems.append(Problem(message, Place("--stop-after"), hints))
        if self.order is not None and not _ORDER.fullmatch(self.order):
            message = f"expected random:SEED, found {self.order!r}"
            problems.append(Problem(message, Place("--order")))
        if self.timing_only and self.order:
            text = "takes another order of computing values, and --timing-only computes none"
            problems.append(Problem(text, Place("--order")))
        if self.timing_only and self.stop_after == "functional":
            text = "--timing-only computes no values to stop after"
            problems.append(Problem(text, Place("--stop-after")))
        if self.sensitivity is not None and self.sensitivity not in SENSITIVITIES:
            hints = choose_from(self.sensitivity, SENSITIVITIES)
            message = f"unknown way {self.sensitivity!r}"
            problems.append(Problem(message, Place("--sensitivity"), hints))
        for flag, asked in (("--sensitivity", self.sensitivity), ("--confirm", self.confirm)):
            if asked and self.stop_after is not None:
                text = "times a finished run again, and --stop-after ends before it is finished"
                problems.append(Problem(text, Place(flag)))
        if self.seed < 0:
            problems.append(Problem(f"must not be negative, found {self.seed}", Place("--seed")))
        if problems:
            raise InputError(*problems)

    @property
    def order_seed(self) -> int | None:
        """The seed of a random order, None for the order of the plan."""
        return None if self.order is None else int(self.order.partition(":")[2])

    @property
    def computes(self) -> bool:
        """Whether any value is computed."""
        return not self.timing_only and self.stop_after not in ("plan", "program")

    def inputs(self) -> Inputs:
        """For the manifest: files by their names alone."""
        return Inputs(
            model=_bare(self.model),
            sizes=dict(self.sizes),
            hw=_bare(self.hw),
            hw_set=tuple(self.hw_set),
            plan=_bare(self.plan),
            seed=self.seed,
            input={name: _bare(text) for name, text in self.input.items()},
            order=self.order or "plan",
            timing_only=self.timing_only,
            allow_host=self.allow_host,
            sensitivity=self.sensitivity,
            confirm=self.confirm,
        )


def _bare(text: str) -> str:
    return PurePath(text).name or text
