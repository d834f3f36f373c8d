"""Interquartile means, intervals and probabilities of improvement by rliable; `--write` renews the golden file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from rliable import library, metrics

GOLDEN = Path(__file__).parent.parent / "tests" / "golden" / "rliable.json"
RESAMPLES = 20_000
SHAPES = {
    "five seeds": (5, 1),
    "five seeds, three robots": (5, 3),
    "ten seeds": (10, 1),
    "three seeds": (3, 2),
}


def main() -> None:
    rng = np.random.default_rng(6)
    cases = []
    for name, shape in SHAPES.items():
        ours, theirs = rng.lognormal(5.0, 1.0, shape).round(1), rng.lognormal(5.4, 1.0, shape).round(1)
        points, bounds = library.get_interval_estimates(
            {"ours": ours}, lambda x: np.array([metrics.aggregate_iqm(x)]), reps=RESAMPLES
        )
        chance, chance_bounds = library.get_interval_estimates(
            {"pair": [ours, theirs]},
            lambda x, y: np.array([metrics.probability_of_improvement(x, y)]),
            reps=2000,
        )
        cases.append(
            {
                "name": name,
                "ours": ours.tolist(),
                "theirs": theirs.tolist(),
                "iqm": float(points["ours"][0]),
                "iqm_interval": bounds["ours"][:, 0].tolist(),
                "improvement": float(chance["pair"][0]),
                "improvement_interval": chance_bounds["pair"][:, 0].tolist(),
            }
        )
    if "--write" in sys.argv:
        GOLDEN.write_text(json.dumps(cases) + "\n")
    kept = json.loads(GOLDEN.read_text())
    worst = max(abs(new["iqm"] - old["iqm"]) for new, old in zip(cases, kept, strict=True))
    print(f"interquartile means of {len(cases)} cases: largest difference {worst:.1e}")


if __name__ == "__main__":
    main()
