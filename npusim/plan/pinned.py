"""A plan as text in which every choice is made: running it again gives the same program."""

from __future__ import annotations

import glob
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from npusim.graph.ir import Graph
from npusim.plan.grid import Grid
from npusim.plan.kernel import Kernel
from npusim.plan.language import Plan
from npusim.plan.select import Decision

_CATALOGUE = "npusim.library."


def pinned(
    graph: Graph, plan: Plan, decisions: Sequence[Decision], own: Mapping[Path, str] | None = None
) -> str:
    """Python text of a plan file that maps `graph` exactly as `decisions` do.

    Kernels of the catalogue are imported, others loaded from their files: `own` gives the names
    of such files that lie beside the plan file, the rest is found by absolute paths.
    """
    names = _kernel_names(decisions)
    steps = [*_keeps(graph, plan), *(_step(decision, names) for decision in decisions)]
    words = {line.partition("(")[0] for line in steps if not line.startswith("#")} | {"Plan"}
    if any(isinstance(v, Grid) for d in decisions for v in d.choices.values()):
        words.add("Grid")
    imports = "\n".join(_imports(names, words, own or {}))
    body = "".join(f"        {line}\n" for line in steps)
    title = json.dumps(f"{graph.name}, every layer resolved.", ensure_ascii=False)[1:-1]
    return (
        f'"""{title}"""\n\n{imports}\n\nplan = Plan(\n    {_text(plan.name)},\n'
        f"    {_text(plan.description)},\n    steps=[\n{body}    ],\n)\n"
    )


def names_beside(decisions: Sequence[Decision]) -> dict[Path, str]:
    """Names for copies of all files of kernels that are not the catalogue's, each once."""
    kernels = {d.choice.kernel for d in decisions if d.choice is not None}
    names: dict[Path, str] = {}
    for file in sorted({_file(kernel) for kernel in kernels if not _shipped(kernel)}):
        same = sum(other.stem == file.stem for other in names)
        names[file] = f"kernels_{file.stem}{f'_{same + 1}' if same else ''}.py"
    return names


def _keeps(graph: Graph, plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        if step.space is not None and step.applies(graph):
            named = ", ".join(_text(pattern) for pattern in step.patterns)
            yield f"keep({named}, space={_text(step.space)}),"


def _step(decision: Decision, names: Mapping[Kernel, str]) -> str:
    unit = decision.unit
    called = [node.name for node in unit.nodes]
    if unit.found_by is not None and decision.choice is not None:
        called = [unit.found_for]  # the kernel finds the rest again
    if decision.how in ("view", "nothing"):
        return f"# {_text(unit.name)}: {decision.reason}"
    if len(called) > 1:
        subject = f"fuse({', '.join(_text(name) for name in called)})"
    else:
        subject = f"on({_text(glob.escape(called[0]))})"
    if decision.choice is None:
        return f"{subject}.host(because={_text(decision.reason)}),"
    made = ", ".join(f"{name}={_spelled(value)}" for name, value in decision.choices.items())
    pads = ", ".join(f"{name}={size}" for name, size in decision.pads.items())
    padded = f".padded({pads})" if pads else ""
    reason = unit.step.reason if unit.step else decision.reason
    why = f".because({_text(reason)})" if reason else ""
    return f"{subject}.use({names[decision.choice.kernel]}({made}){padded}){why},"


def _kernel_names(decisions: Sequence[Decision]) -> dict[Kernel, str]:
    """A name for each kernel; a second one of the same name gets a number."""
    names: dict[Kernel, str] = {}
    for decision in decisions:
        if decision.choice is not None and decision.choice.kernel not in names:
            kernel = decision.choice.kernel
            same = sum(other.name == kernel.name for other in names)
            names[kernel] = f"{kernel.name}_{same + 1}" if same else kernel.name
    return names


def _imports(
    names: Mapping[Kernel, str], words: set[str], own: Mapping[Path, str]
) -> Iterator[str]:
    """Import statements, then the kernels that have no module to import them from."""
    files = [_file(kernel) for kernel in names if not _shipped(kernel)]
    if any(file in own for file in files):
        yield "from pathlib import Path\n"
    yield f"from npusim import {', '.join(sorted(words, key=lambda w: (w.islower(), w)))}"
    if files:
        yield "from npusim.core.modules import load_module"
    for kernel, name in names.items():
        if _shipped(kernel):
            renamed = f" as {name}" if name != _attribute(kernel) else ""
            yield f"from {kernel.body.__module__} import {_attribute(kernel)}{renamed}"
    for kernel, name in names.items():
        if not _shipped(kernel):
            found = _text(str(_file(kernel)))
            if _file(kernel) in own:
                found = f"Path(__file__).with_name({_text(own[_file(kernel)])})"
            yield f"\n{name} = load_module({found}).{_attribute(kernel)}"


def _shipped(kernel: Kernel) -> bool:
    return kernel.body.__module__.startswith(_CATALOGUE)


def _file(kernel: Kernel) -> Path:
    return Path(kernel.body.__code__.co_filename).resolve()


def _attribute(kernel: Kernel) -> str:
    """What the kernel is called in its module."""
    module = vars(sys.modules[kernel.body.__module__])
    return next((name for name, value in module.items() if value is kernel), kernel.name)


def _spelled(choice: object) -> str:
    return _text(choice) if isinstance(choice, str) else repr(choice)


def _text(value: str) -> str:
    """A Python string literal in double quotes."""
    return json.dumps(value, ensure_ascii=False)
