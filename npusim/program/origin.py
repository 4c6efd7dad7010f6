"""Where an instruction comes from, in words."""

from __future__ import annotations

from npusim.program.program import Program
from npusim.program.wording import action, layer_title, loops


def describe(program: Program, instruction: int) -> str:
    """Number, deed and provenance of an instruction on one line.

    Like `#57 mma acc[..] += a[..] @ b[..] (up, kernel matmul, step 3, on("up"), core 2 matrix,
    m=0 n=1 k=7)`.
    """
    number = int(program.instructions.layer[instruction])
    stream = str(program.streams[program.instructions.stream[instruction]])
    parts = [layer_title(program.layers[number])] if number >= 0 else ["no layer"]
    parts += [stream, loops(program, instruction)]
    where = ", ".join(part for part in parts if part)
    return f"#{instruction} {action(program, instruction)} ({where})"
