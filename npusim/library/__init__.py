"""The catalogue as a package: `npusim.library.workloads.mlp`, in checkout and wheel alike."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent

#: The folder that holds hwconfigs, workloads and mapping: this one in a wheel, else the checkout.
ROOT = _HERE if (_HERE / "hwconfigs").is_dir() else _HERE.parents[1]

__path__ = [str(ROOT)]
