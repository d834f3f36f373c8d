"""Learning curves of OmniSafe's solvers and of ours on the same robot, with a figure and a table.

    python oracles/constrained/compare.py --theirs FOLDER --ours FOLDER --figure docs/figures/constrained.png

FOLDER of theirs is what `run_omnisafe.py --out` wrote; FOLDER of ours holds run folders of `safeexplorer train`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from curves import EPOCH, ours, theirs

from safeexplorer import robots

METHODS = {"ppo_lagrangian": "PPOLag", "cpo": "CPO"}
COLOURS = {"OmniSafe": "#c2571a", "here": "#1f6feb"}


def their_curves(folder: Path, algorithm: str) -> list[np.ndarray]:
    """One [epochs, 2] array of return and cost per run."""
    runs = sorted(folder.glob(f"{algorithm}-*/seed-*"))
    return [return_and_cost(theirs(run)) for run in runs]


def our_curves(folder: Path, method: str) -> list[np.ndarray]:
    """The same of ours."""
    settings = {
        path.parent: json.loads(path.read_text())["settings"] for path in sorted(folder.glob("*/run.json"))
    }
    sizes = {
        run: robots.ROBOTS[s["robot"]].action_size for run, s in settings.items() if s["method"] == method
    }
    return [return_and_cost(ours(run, size)) for run, size in sizes.items()]


def return_and_cost(curve: dict[str, list[float]]) -> np.ndarray:
    return np.column_stack([curve["return"], curve["cost"]])


def overlap(one: list[np.ndarray], other: list[np.ndarray]) -> np.ndarray:
    """[epochs, 2]: do mean +- deviation over seeds of the two sides meet?"""

    def bounds(curves: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        length = min(len(c) for c in curves)
        stack = np.stack([c[:length] for c in curves])
        spread = stack.std(0, ddof=1)
        return stack.mean(0) - spread, stack.mean(0) + spread

    (low, high), (other_low, other_high) = bounds(one), bounds(other)
    n = min(len(low), len(other_low))
    return (low[:n] <= other_high[:n]) & (other_low[:n] <= high[:n])


def report(method: str, theirs: list[np.ndarray], ours: list[np.ndarray]) -> None:
    """Mean and deviation over seeds at the quarters of training, and how often the spreads meet."""
    shortest = min(len(c) for c in (*theirs, *ours))
    print(f"{method}: {len(theirs)} runs of OmniSafe, {len(ours)} of ours")
    for column, name in enumerate(("return", "cost")):
        for share in (0.25, 0.5, 0.75, 1.0):
            at = max(int(share * 146), 1) - 1
            cells = []
            for curves in (theirs, ours):
                values = np.array([c[at, column] for c in curves if len(c) > at])
                deviation = values.std(ddof=1) if len(values) > 1 else float("nan")
                cells.append(f"{values.mean():9.2f} +- {deviation:8.2f} ({len(values)})")
            print(f"  {name:6} at {(at + 1) * EPOCH:7,} steps   OmniSafe {cells[0]}   here {cells[1]}")
        met = overlap(theirs, ours)[:, column]
        print(f"  {name:6} mean +- deviation meet in {met.mean():.0%} of the first {shortest} epochs")


def draw(curves: dict[str, dict[str, list[np.ndarray]]], path: Path) -> None:
    """Return above, cost below; one thin line per seed and a thick mean."""
    figure, axes = plt.subplots(2, len(curves), figsize=(9, 5.5), sharex=True, layout="constrained")
    for column, (method, sides) in enumerate(curves.items()):
        for side, runs in sides.items():
            length = min(len(c) for c in runs)
            mean = np.mean([c[:length] for c in runs], axis=0)
            for row in range(2):
                ax = axes[row, column]
                for c in runs:
                    ax.plot(
                        np.arange(1, len(c) + 1) * EPOCH / 1e3,
                        c[:, row],
                        color=COLOURS[side],
                        lw=0.7,
                        alpha=0.5,
                    )
                steps = np.arange(1, length + 1) * EPOCH / 1e3
                ax.plot(steps, mean[:, row], color=COLOURS[side], lw=2.2, label=side)
        axes[0, column].set_title(method)
        axes[1, column].axhline(0.05, color="0.4", ls=":", lw=1)
        axes[1, column].set_xlabel("environment steps (thousands)")
    axes[0, 0].set_ylabel("return (last 50 episodes)")
    axes[1, 0].set_ylabel("cost per episode (limit dotted)")
    axes[0, 0].legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--theirs", type=Path, required=True)
    parser.add_argument("--ours", type=Path, required=True)
    parser.add_argument("--figure", type=Path, required=True)
    args = parser.parse_args()
    curves = {
        method: {"OmniSafe": their_curves(args.theirs, algorithm), "here": our_curves(args.ours, method)}
        for method, algorithm in METHODS.items()
    }
    for method, sides in curves.items():
        report(method, sides["OmniSafe"], sides["here"])
    draw(curves, args.figure)


if __name__ == "__main__":
    main()
