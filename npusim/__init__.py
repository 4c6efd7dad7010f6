"""A software NPU: execute, validate and time a mapping plan before silicon exists.

The public names are imported when they are first used, so that `import npusim` costs nothing.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOME = {
    "Graph": "npusim.graph.ir",
    "Node": "npusim.graph.ir",
    "Tensor": "npusim.graph.ir",
    "GraphBuilder": "npusim.graph.builder",
    "Normal": "npusim.graph.recipe",
    "Integers": "npusim.graph.recipe",
    "Filled": "npusim.graph.recipe",
    "Arange": "npusim.graph.recipe",
    "Given": "npusim.graph.recipe",
    "Computed": "npusim.graph.recipe",
    "DType": "npusim.core.dtypes",
    "dtype": "npusim.core.dtypes",
    "InputError": "npusim.core.errors",
    "Between": "npusim.core.sizes",
    "Size": "npusim.core.sizes",
    "Along": "npusim.plan.grid",
    "Axis": "npusim.plan.axis",
    "Buffer": "npusim.plan.tile",
    "Expression": "npusim.plan.expression",
    "Claim": "npusim.plan.claim",
    "Grid": "npusim.plan.grid",
    "Hardware": "npusim.plan.hardware",
    "Operand": "npusim.plan.expression",
    "Operation": "npusim.plan.operation",
    "Piece": "npusim.plan.view",
    "Plan": "npusim.plan.language",
    "Span": "npusim.plan.axis",
    "Tile": "npusim.plan.tile",
    "Tiles": "npusim.plan.tiles",
    "Unsuited": "npusim.plan.kernel",
    "Value": "npusim.plan.expression",
    "View": "npusim.plan.view",
    "express": "npusim.plan.elementwise",
    "fuse": "npusim.plan.language",
    "keep": "npusim.plan.language",
    "kernel": "npusim.plan.kernel",
    "on": "npusim.plan.language",
    "pow2": "npusim.plan.kernel",
}

_MODULES = {"simt": "npusim.program.simt.language", "vector": "npusim.plan.vector"}

__all__ = [*_HOME, *_MODULES]


def __getattr__(name: str) -> object:
    """Import the module that defines a public name, on first use."""
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name not in _HOME:
        raise AttributeError(f"module 'npusim' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, for completion."""
    return [*globals(), *_HOME, *_MODULES]
