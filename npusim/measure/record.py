"""What every part of a result is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A part of a result: frozen, no fields but its own, types as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
