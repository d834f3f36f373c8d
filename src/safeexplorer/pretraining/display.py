"""Pre-training and grades as a person sees them."""

from pathlib import Path
from typing import Any

from rich.table import Table

from safeexplorer.files.extras import load
from safeexplorer.files.progress import ProgressDisplay
from safeexplorer.pretraining.grading import Share


class PretrainingDisplay(ProgressDisplay):
    """Return, falls and the entropy coefficient."""

    waiting, counted = "filling the replay memory", "updates"

    def facts(self, row: dict[str, Any]) -> list[str]:
        total = row["episode_return"]
        return [
            "no episode yet" if total is None else f"return {total:,.1f}",
            f"falls {row['falls']:,}",
            f"alpha {row['alpha'] or 0:.3g}",
        ]


def grade_table(grades: list[dict[str, Any]]) -> Table:
    """One column per recovery: survival, then re-entry (of the starts outside R(d)) with the median time."""
    first = grades[0]
    title = f"{first['robot']}: {first['resets']:,} randomised resets, {first['horizon']} steps"
    table = Table("", *(graded["recovery"] for graded in grades), title=title)
    table.add_row("survived", *(str(Share(**graded["survived"])) for graded in grades))
    for k, row in enumerate(first["reentry"]):
        cells = [reentry_cell(graded["reentry"][k]) for graded in grades]
        table.add_row(f"re-entered R({row['radius']:.4g}), {row['fraction']:.3g} d_max", *cells)
    return table


def reentry_cell(row: dict[str, Any]) -> str:
    """Share with interval, and the median number of steps it took."""
    outside = Share(**row["of_outside"])
    if not outside.total:
        return "all start inside"
    steps = row["median_steps"]
    return str(outside) if steps is None else f"{outside}, {steps:g} steps"


def plot_grades(grades: list[dict[str, Any]], path: Path) -> None:
    """Re-entry share against d / d_max with 95% intervals, one line per recovery."""
    load("matplotlib", "plots", "a plot").use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for graded in grades:
        rows = sorted((row["fraction"], Share(**row["of_outside"])) for row in graded["reentry"])
        x, shares = ([row[k] for row in rows if row[1].total] for k in (0, 1))
        survived = Share(**graded["survived"])
        label = f"{graded['recovery']} (survived {survived.value:.3f})"
        (line,) = axes.plot(x, [s.value for s in shares], marker="o", markersize=3, label=label)
        low, high = [s.low for s in shares], [s.high for s in shares]
        axes.fill_between(x, low, high, alpha=0.2, color=line.get_color())
    axes.set(xlabel="radius d / d_max", ylim=(-0.02, 1.02))
    axes.set_ylabel("share of starts outside R(d) that re-enter")
    axes.set_title(f"{grades[0]['robot']}: {grades[0]['resets']:,} randomised resets")
    axes.legend()
    figure.savefig(path, dpi=150)
    plt.close(figure)
