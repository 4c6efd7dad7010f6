"""How much a short run depends on where the refreshes fall, for each DRAM model.

python experiments/dram/phases.py             # two layers on npu_a, twelve moments each

The models differ by some percent; two of them at one moment differ by chance as well, since a
tile that one of them has just got before a refresh the other one waits for.
"""

from __future__ import annotations

import numpy as np

from npusim.api.pipeline import run
from npusim.api.request import Request

MODELS = ("run", "burst", "detailed")
LAYERS: dict[str, dict[str, str]] = {
    "matmul": {"m": "512", "n": "512", "k": "512"},
    "elementwise": {"rows": "512", "columns": "1024"},
}
MOMENTS = np.linspace(0.0, 1.0, 12).round(2)


def cycles(layer: str, model: str, *fields: str) -> int:
    """Core cycles of one layer on the default machine."""
    changes = (f"dram.model={model}", *fields)
    made = run(Request(layer, sizes=LAYERS[layer], timing_only=True, out=None, hw_set=changes))
    assert made.result is not None
    return made.result.totals.cycles


def main() -> None:
    """Print cycles by moment of the first refresh, their means, and the runs without refresh."""
    for layer, sizes in LAYERS.items():
        print(layer, " ".join(f"{k}={v}" for k, v in sizes.items()))
        print("  first refresh" + "".join(f"{model:>10}" for model in MODELS), flush=True)
        found = []
        for share in MOMENTS:
            row = [cycles(layer, model, f"dram.first_refresh={share}") for model in MODELS]
            found.append(row)
            print(f"  {share:8.2f} tREFI" + "".join(f"{n:10,}" for n in row), flush=True)
        for word, row in (
            ("least", np.min(found, axis=0)),
            ("mean", np.mean(found, axis=0)),
            ("most", np.max(found, axis=0)),
            ("no refresh", [cycles(layer, model, "dram.refresh=none") for model in MODELS]),
        ):
            print(f"  {word:>14}" + "".join(f"{n:10,.0f}" for n in row), flush=True)


if __name__ == "__main__":
    main()
