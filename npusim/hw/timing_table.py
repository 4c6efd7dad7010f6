"""Tile latencies from a CSV file, measured or from RTL, in the place of a closed form (A52).

    dtype, m, n, k, cycles, occupied_cycles
    bf16,  128, 128, 128, 382, 128

`cycles` are those from the start of a product of that size to its result, `occupied_cycles` (as
many where the column is missing) those after which the engine takes the next product. For each
dtype the sizes must form a full grid: every listed m with every listed n and k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from npusim.core.errors import InputError
from npusim.core.hashing import content_hash
from npusim.hw.timing_grid import Grid
from npusim.hw.timing_rows import Entry, read_entries


class FileMistakes(ValueError):
    """A file that a field names is wrong: the problems have places of their own, in that file."""

    def __init__(self, error: InputError) -> None:
        self.problems = error.problems
        super().__init__(str(error))


@dataclass(frozen=True)
class TimingTable:
    """The entries of a file, sorted; `file` is its name without folders."""

    file: str
    entries: tuple[Entry, ...]

    def __str__(self) -> str:
        """Its name, how much it says, and the beginning of its hash."""
        return f"{self.file} ({len(self.entries)} entries, hash {content_hash(self.entries)[:8]})"

    @cached_property
    def grids(self) -> Mapping[str, Grid]:
        """The entries of each dtype as arrays."""
        kinds = dict.fromkeys(entry[0] for entry in self.entries)
        return {kind: Grid.of([e[1:] for e in self.entries if e[0] == kind]) for kind in kinds}

    @cached_property
    def tail_cycles(self) -> int:
        """The longest time between an engine's being free again and the result."""
        return max(cycles - occupied for *_, cycles, occupied in self.entries)

    def text(self) -> str:
        """The entries as the CSV file that they could come from."""
        lines = ["dtype,m,n,k,cycles,occupied_cycles"]
        return "\n".join([*lines, *(",".join(map(str, entry)) for entry in self.entries)]) + "\n"

    def against(self, macs_per_cycle: Callable[[str], float]) -> Iterator[str]:
        """What the engine's own rates contradict: unknown dtypes, tiles above its peak."""
        for kind in self.grids:
            rate = macs_per_cycle(kind)
            if not rate:
                yield f"{self.file} has tiles of {kind}, which has no rate"
                continue
            for _, m, n, k, _, occupied in (e for e in self.entries if e[0] == kind):
                if occupied * rate < m * n * k * (1 - 1e-9):
                    yield (
                        f"{self.file}: {occupied} cycles for {m} x {n} x {k} of {kind} are above "
                        f"the peak of {rate:g} multiply-accumulates per cycle that rates states"
                    )
                    break

    @classmethod
    def _of(cls, value: Any, info: core_schema.ValidationInfo) -> TimingTable:
        if isinstance(value, cls):
            return value
        if isinstance(value, Mapping):  # as a machine's own dump has it
            return cls(str(value["file"]), tuple(tuple(entry) for entry in value["entries"]))
        if not isinstance(value, str):
            raise ValueError(f"expected the path of a CSV file, found {value!r}")
        folder = (info.context or {}).get("folder", Path())
        path = Path(folder) / Path(value).expanduser()
        if not path.is_file():
            raise ValueError(f"no such file: {path}")
        try:
            return cls(path.name, read_entries(path))
        except InputError as error:
            raise FileMistakes(error) from None

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        """A path in a machine's file, the table itself elsewhere."""
        return core_schema.with_info_plain_validator_function(
            cls._of,
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda table: {"file": table.file, "entries": [list(e) for e in table.entries]}
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _: CoreSchema, __: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """What an editor may accept."""
        return {"type": "string"}
