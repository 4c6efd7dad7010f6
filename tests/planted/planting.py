"""Plants a mistake in a kernel's text or a program's columns, and says who finds it first."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from npusim.core.errors import IllegalProgram
from npusim.graph.ir import Graph
from npusim.plan.kernel import Kernel, kernels
from npusim.plan.language import Plan, fuse, on
from npusim.plan.lower import Lowered, lower
from npusim.program.checker import problems
from npusim.program.kinds import Kind, Space
from npusim.program.program import Program

CATALOGUE = Path(__file__).resolve().parents[2] / "mapping" / "kernels"
#: Random orders tried where nothing else has found a mistake.
ORDERS = (1, 2, 3)
#: Where messages name the stream and the loop indices of an instruction.
PLACE = re.compile(r"core \d [a-z]+( \d)?, \w+=\d+")


@dataclass(frozen=True)
class Found:
    """Who found a mistake, and the message."""

    by: str
    text: str


def find(bench: Any, graph: Graph, lowered: Lowered, seed: int = 0) -> Found | None:
    """The first of checker, functional reader, comparison and another order that objects."""
    illegal = problems(lowered.program, bench.machine)
    if illegal:
        return Found("checker", "\n".join(map(str, illegal)))
    try:
        outcome = bench.compute(graph, lowered, seed=seed)
    except IllegalProgram as error:
        return Found("reader", str(error))
    if outcome.failures:
        return Found("comparison", "\n".join(outcome.failures))
    for order in ORDERS:
        other = bench.execute(graph, lowered.program, seed, order)
        changed = _changed(outcome.executed, other)
        if changed:
            return Found("another order", f"{changed} differ in order {order}")
    return None


def _changed(a: Any, b: Any) -> list[str]:
    return [
        name
        for name, region in a.program.tensors.items()
        if a.memory.view(region).tobytes() != b.memory.view(region).tobytes()
    ]


# ---------------------------------------------------------------- kernels


@contextmanager
def wrong_kernels(
    folder: Path, file: str, right: str, wrong: str, source: Path = CATALOGUE
) -> Iterator[dict[str, Kernel]]:
    """The kernels of a folder by name, from a copy in which one piece of one file is changed.

    Nothing is changed where `right` is empty.
    """
    package = folder / "kernels"
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    text = (package / file).read_text()
    if right:
        assert text.count(right) == 1, f"{file} has {text.count(right)} times {right!r}"
        (package / file).write_text(text.replace(right, wrong))
    name = f"planted_{abs(hash(folder))}"
    try:
        yield {kernel.name: kernel for kernel in kernels(_modules(package, name))}
    finally:
        for loaded in [n for n in sys.modules if n == name or n.startswith(f"{name}.")]:
            del sys.modules[loaded]


def _modules(package: Path, name: str) -> list[Any]:
    spec = importlib.util.spec_from_file_location(
        name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None and spec.loader is not None
    parent = importlib.util.module_from_spec(spec)
    sys.modules[name] = parent
    spec.loader.exec_module(parent)
    stems = sorted(file.stem for file in package.glob("[!_]*.py"))
    return [importlib.import_module(f"{name}.{stem}") for stem in stems]


# ---------------------------------------------------------------- programs


def with_cell(program: Program, table: str, column: str, row: int, value: int) -> Program:
    """The program with one number changed, such as `with_cell(p, "mmas", "b", 3, region)`."""
    columns = getattr(program, table)
    changed = getattr(columns, column).copy()
    assert changed[row] != value, "that would change nothing"
    changed[row] = value
    return replace(program, **{table: replace(columns, **{column: changed})})


def swapped(program: Program, table: str, column: str, first: int, second: int) -> Program:
    """The program with two numbers of a column exchanged."""
    values = getattr(getattr(program, table), column)
    once = with_cell(program, table, column, first, values[second])
    return with_cell(once, table, column, second, values[first])


def edges(program: Program, source: Kind, target: Kind, **wanted: Any) -> list[int]:
    """Numbers of the edges from instructions of one kind to those of another.

    `across=True` wants different cores, `layers=True` different layers, `into=Space.ACC` that
    the source writes (a copy: or reads) that memory, `why` a reason.
    """
    user = np.repeat(np.arange(len(program)), np.diff(program.edges.ptr))
    found = []
    for edge, (i, j) in enumerate(zip(program.edges.source, user, strict=True)):
        if _suits(program, int(i), int(j), source, target, edge, wanted):
            found.append(edge)
    assert found, f"no such edge: {source.name} -> {target.name} {wanted}"
    return found


def _suits(
    program: Program, i: int, j: int, source: Kind, target: Kind, edge: int, wanted: dict[str, Any]
) -> bool:
    table, streams = program.instructions, program.streams
    if (table.kind[i], table.kind[j]) != (source, target):
        return False
    facts = {
        "across": streams[table.stream[i]].core != streams[table.stream[j]].core,
        "layers": table.layer[i] != table.layer[j],
        "why": program.edges.why[edge],
    }
    if "into" in wanted and written_space(program, i) != wanted["into"]:
        return False
    return all(facts[name] == value for name, value in wanted.items() if name in facts)


def written_space(program: Program, instruction: int) -> Space:
    """The memory that an instruction writes."""
    row = program.instructions.row[instruction]
    column = {
        Kind.COPY: program.copies.destination,
        Kind.MMA: program.mmas.c,
        Kind.VECTOR: program.vectors.destination,
    }[Kind(program.instructions.kind[instruction])]
    return Space(int(program.buffers.space[program.regions.buffer[column[row]]]))


def without_edges(program: Program, dropped: Sequence[int]) -> Program:
    """The program without some of its edges."""
    keep = np.ones(len(program.edges.source), np.bool_)
    keep[list(dropped)] = False
    user = np.repeat(np.arange(len(program)), np.diff(program.edges.ptr))[keep]
    ptr = np.searchsorted(user, np.arange(len(program) + 1))
    kept = replace(
        program.edges, ptr=ptr, source=program.edges.source[keep], why=program.edges.why[keep]
    )
    return replace(program, edges=kept)


def with_edge(program: Program, source: int, target: int) -> Program:
    """The program in which `target` also waits for `source`."""
    at = int(program.edges.ptr[target + 1])
    ptr = program.edges.ptr.copy()
    ptr[target + 1 :] += 1
    table = replace(
        program.edges,
        ptr=ptr,
        source=np.insert(program.edges.source, at, source),
        why=np.insert(program.edges.why, at, 4),
    )
    return replace(program, edges=table)


# ---------------------------------------------------------------- one mistake


@dataclass(frozen=True)
class Mistake:
    """A piece of a kernel's text that is changed, where it is tried, and who is to find it.

    `graph` is a function of the bench, or (operator, operands, options of Bench.single), for a
    graph whose only operator is called y. `placed` is False where nothing in the program stands
    for the mistake, so that no loop indices can be named.
    """

    graph: Any
    kernel: str
    choices: dict[str, Any]
    file: str
    right: str
    wrong: str
    by: str = "comparison"
    says: tuple[str, ...] = ()
    placed: bool = True
    operators: tuple[str, ...] = ("y",)
    source: Path = CATALOGUE

    @property
    def step(self) -> str:
        """How messages call the plan's only step."""
        word = "on" if len(self.operators) == 1 else "fuse"
        named = ", ".join(f'"{name}"' for name in self.operators)
        return f"step 1, {word}({named})"


def planted(
    graph: Any, kernel: str, choices: dict[str, Any], where: tuple[str, str], wrong: str,
    more: dict[str, Any],
) -> Mistake:  # fmt: skip
    """A row of a table of mistakes; `where` is the file and the right text in it."""
    file, right = where
    return Mistake(graph, kernel, choices, file, right, wrong, **more)


def assert_found(bench: Any, folder: Path, mistake: Mistake) -> Found:
    """The right kernel passes; with the mistake in it, the message tells what, where and when."""
    graph, m = _graph(bench, mistake.graph), mistake
    with wrong_kernels(folder / "right", m.file, "", "", m.source) as kernels:
        right = lowered(bench, graph, m.kernel, m.choices, m.operators, kernels)
        assert find(bench, graph, right) is None
    with wrong_kernels(folder / "wrong", m.file, m.right, m.wrong, m.source) as kernels:
        wrong = lowered(bench, graph, m.kernel, m.choices, m.operators, kernels)
        found = find(bench, graph, wrong)
    assert found is not None, "nobody found it"
    assert found.by == mistake.by, f"by {found.by}: {found.text}"
    assert f"kernel {mistake.kernel}, {mistake.step}" in found.text, found.text
    named = [f"'{name}'" in found.text or f"({name}" in found.text for name in mistake.operators]
    assert any(named) or f"({'+'.join(mistake.operators)}" in found.text, found.text
    for text in mistake.says:
        assert text in found.text, found.text
    assert not mistake.placed or PLACE.search(found.text), found.text
    return found


def _graph(bench: Any, spec: Any) -> Graph:
    if callable(spec):
        return spec(bench)
    op, operands, *rest = spec
    options = dict(rest[0]) if rest else {}
    kept = {name: options.pop(name) for name in ("kind", "outputs") if name in options}
    return bench.single(op, operands, options, **kept)


def lowered(
    bench: Any,
    graph: Graph,
    kernel: str,
    choices: Mapping[str, Any],
    names: Sequence[str],
    kernels: Mapping[str, Kernel],
) -> Lowered:
    """The program of a plan that gives these operators to one of `kernels`."""
    step = on(*names) if len(names) == 1 else fuse(*names)
    plan = Plan("planted", steps=[step.use(kernels[kernel](**choices))])
    others = [known for known in bench.all_kernels if known.name != kernel]
    return lower(graph, bench.machine, plan, [*others, kernels[kernel]], allow_host=False)
