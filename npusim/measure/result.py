"""The frozen result of a run: one versioned JSON document, the same on stdout and on disk.

docs/metrics.md defines every number. A quantity that does not exist (the error of a run that
computed no values, a fraction of no cycles) is null.
"""

from __future__ import annotations

from typing import Literal

from npusim.measure.record import Record
from npusim.measure.whatif_result import Confirmations, Sensitivity

SCHEMA_VERSION: Literal[1] = 1
Choice = bool | int | float | str


class Traffic(Record):
    """Bytes that were read from a memory and written to it."""

    read: int
    write: int


class Caching(Record):
    """What a layer's copies found in the cache, in sectors; `merged` of the hits were on their way.

    `sector_fills` were read from DRAM, `write_backs` went there to make room.
    """

    hits: int
    merged: int
    misses: int
    sector_fills: int
    write_backs: int
    hit_rate: float | None


class Flush(Record):
    """Sectors written back after the last instruction, and the core cycles until DRAM had all."""

    sectors: int
    cycles: float


class Claim(Record):
    """What the kernel expected of itself: cycles, DRAM bytes, and the class that binds."""

    cycles: float
    bytes: float
    bottleneck: str


class Roofline(Record):
    """Where a layer stands under the roofs: FLOPs per DRAM byte, and what these would allow.

    `intensity` is null without DRAM traffic; `roof` is what limits it.
    """

    intensity: float | None
    attainable_flops_per_s: float
    sustained_flops_per_s: float
    roof: Literal["compute", "dram"]


class OperandConflict(Record):
    """An operand whose elements meet in the banks of the scratchpad, and what would part them.

    `factor` are cycles over the least that its accesses take; `pad_bytes` behind each row would
    make it `padded_factor` (null if no padding is better), a swizzle `swizzled_factor` (null if
    there is one, or cannot be).
    """

    operand: str
    buffer: str
    accesses: int
    cycles: int
    factor: float
    pitch_bytes: int
    pad_bytes: int | None
    padded_factor: float | None
    swizzled_factor: float | None


class LayerResult(Record):
    """One layer: the operators that one decision of the plan maps, and how they fared."""

    name: str
    operator: str
    kernel: str
    how: Literal["kernel", "view", "nothing", "host"]
    nodes: tuple[str, ...]
    choices: dict[str, Choice]
    step: str
    reason: str
    repeat: int = 1
    executed: tuple[int, ...] = (0,)
    cycles: float
    core_cycles: int
    time_s: float
    span: tuple[int, int] | None
    flops: int
    compute_dtype: str
    flop_fraction: float | None
    array_busy_fraction: float | None
    pe_utilization: float | None
    memory_stall_fraction: float | None
    stall_cycles: dict[str, int]
    operand_conflicts: tuple[OperandConflict, ...] = ()
    bottleneck: str | None
    runner_up: str | None
    bytes: dict[str, Traffic]
    minimum_bytes: int
    dram_bandwidth_fraction: float | None
    cache: Caching | None
    claim: Claim | None
    roofline: Roofline | None
    max_error: float | None
    tolerance_ratio: float | None
    nonfinite_elements: int | None
    validated: bool | None


class Totals(Record):
    """The whole run; `floor_cycles` is what neither arithmetic nor DRAM can go below.

    `time_low_s` and `time_high_s` enclose the time by the known errors of the models.
    """

    cycles: int
    time_s: float
    time_low_s: float
    time_high_s: float
    flops: int
    flop_fraction: float
    flops_per_s: float
    array_busy_fraction: float
    memory_stall_fraction: float
    validated: bool | None
    bytes: dict[str, Traffic]
    dram_burst_bytes: int
    dram_bandwidth_fraction: float
    cache: Caching | None
    flush: Flush | None
    floor_cycles: float
    instructions: int


class Accounting(Record):
    """Cycles per class on every core; the classes of a core sum to the run's cycles."""

    cores: dict[str, dict[str, int]]


class Fallback(Record):
    """An operator that the host ran, and its price: the host's own time, bytes over the link.

    `cycles` is the sum of its parts: launch, transfers, arithmetic, and waiting for other
    operators on the link or the processor.
    """

    layer: str
    operator: str
    reason: str
    cycles: float
    launch_cycles: float
    link_cycles: float
    arithmetic_cycles: float
    waiting_cycles: float
    time_s: float
    bytes: int


#: The note of a model whose error nobody knows.
NOT_COMPARED = "not compared with a reference yet"


class ModelNote(Record):
    """How a part of the machine was modelled, and how far that is off where it is known.

    `owns` are the classes of cycles that follow from it.
    """

    name: str
    owns: tuple[str, ...]
    error_band: tuple[float, float] | None
    note: str


class Failure(Record):
    """A check that failed: which layer and tensor, and what was found."""

    layer: str
    output: str
    message: str


class Inputs(Record):
    """What the run was asked for; files by their names, without their folders."""

    model: str
    sizes: dict[str, str]
    hw: str
    hw_set: tuple[str, ...]
    plan: str
    seed: int
    input: dict[str, str]
    order: str
    timing_only: bool
    allow_host: bool
    sensitivity: Literal["fixed", "replan"] | None = None
    confirm: bool = False


class Manifest(Record):
    """What the result follows from: versions, hashes of all that was read, and the inputs."""

    versions: dict[str, str]
    hashes: dict[str, str]
    inputs: Inputs


class Result(Record):
    """Everything that a run found out."""

    schema_version: Literal[1]
    hardware: str
    model: str
    plan: str
    seed: int
    totals: Totals
    layers: tuple[LayerResult, ...]
    accounting: Accounting
    fallbacks: tuple[Fallback, ...]
    failures: tuple[Failure, ...]
    models: dict[str, ModelNote]
    assumptions: tuple[str, ...]
    manifest: Manifest
    sensitivity: Sensitivity | None = None
    confirmations: Confirmations | None = None

    def to_json(self) -> str:
        """The document, indented, with a newline at its end."""
        return self.model_dump_json(indent=2) + "\n"
