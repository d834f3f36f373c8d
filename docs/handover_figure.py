"""The figure of docs/handover.md, from the metrics of one run: python docs/handover_figure.py RUN/metrics.csv."""

import csv
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

RED, GREY, BLUE = "#d7263d", "#6b7280", "#1d4ed8"
HERE = Path(__file__).parent


def read(path: Path) -> dict[str, list[float]]:
    """Columns of a table; what is empty is not a number."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name] or "nan") for row in rows] for name in rows[0]}


def draw(metrics: dict[str, list[float]], to: Path) -> None:
    """Who acts, the region, the spread, what comes of it."""
    steps = [step / 1e6 for step in metrics["steps"]]
    handed = next(x for x, radius in zip(steps, metrics["radius"], strict=True) if radius > 0)
    figure, axes = pyplot.subplots(4, 1, sharex=True, figsize=(7, 6.4), layout="constrained")
    axes[0].plot(steps, [100 * share for share in metrics["recovery_rate"]], color=GREY)
    axes[0].set_ylabel("recovery acts\n(% of steps)")
    axes[1].plot(steps, metrics["radius"], color=BLUE)
    axes[1].set_ylabel("radius d")
    axes[2].fill_between(steps, metrics["spread_low"], metrics["spread_high"], color=BLUE, alpha=0.2, lw=0)
    axes[2].set_ylabel("log sigma:\nfloor, ceiling")
    axes[3].plot(steps, metrics["return_trailing"], color=RED)
    axes[3].set_ylabel("return")
    axes[3].set_xlabel("environment steps (millions)")
    falls = axes[3].twinx()
    falls.step(steps, metrics["falls"], color="black", where="post")
    falls.set_ylabel("falls in all")
    falls.set_ylim(0, max(10.0, 1.1 * metrics["falls"][-1]))
    falls.spines["top"].set_visible(False)
    for axis in axes:
        axis.axvline(handed, color=GREY, ls=":", lw=1)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.3)
    axes[0].annotate(
        "hand-over", (handed, 80), xytext=(6, 0), textcoords="offset points", color=GREY, fontsize=9
    )
    figure.align_ylabels(axes)
    figure.savefig(to, dpi=130)


if __name__ == "__main__":
    draw(read(Path(sys.argv[1])), HERE / "figures" / "handover.png")
