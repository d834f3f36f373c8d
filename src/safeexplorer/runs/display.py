"""Training as a person watches it, and its end in a few lines."""

from typing import Any

from rich.table import Table

from safeexplorer.files.progress import ProgressDisplay


class TrainingDisplay(ProgressDisplay):
    """Return, falls, recovery rate and radius."""

    waiting = "compiling the update"

    def facts(self, row: dict[str, Any]) -> list[str]:
        trailing, radius = row["return_trailing"], row["radius"]
        return [
            "no episode yet"
            if trailing is None
            else f"return {trailing:,.{0 if abs(trailing) >= 10 else 2}f}",
            f"falls {row['falls']:,}",
            f"recovery {row['recovery_rate']:.1%}",
            *([] if radius is None else [f"d {radius:.3f}"]),
            *handover_facts(row),
        ]


def handover_facts(row: dict[str, Any]) -> list[str]:
    """How the hand-over stands: the copy's error at first, then the share of exits known to end well."""
    error, safe = row.get("imitation_error"), row.get("safe_exits_low")
    if error is not None:
        return [f"copy {error:.1%} off"]
    return [] if safe is None else [f"exits safe >= {safe:.1%}"]


def summary_table(summary: dict[str, Any]) -> Table:
    """The end of a run in a few lines."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    reward = summary["final_reward"]
    rows = {
        "final reward": "no episode ended in the last 10%" if reward is None else f"{reward:,.0f}",
        "falls in training": f"{summary['falls']:,}",
        "episodes": f"{summary['episodes']:,}",
        "exits from the region": f"{summary['exits']:,}",
        "recovery rate": f"{summary['recovery_rate']:.1%} overall, {summary['recovery_rate_final']:.1%} at the end",
        "steps": f"{summary['steps']:,} in {summary['updates']:,} updates",
        "time": f"{summary['seconds']:,.0f} s, {summary['steps'] / summary['seconds']:,.0f} steps/s",
    }
    if summary.get("beta_bound") is not None:
        rows["the policy alone"] = f"outside in at most {summary['beta_bound']:.1%} of its discounted time"
    for name, text in rows.items():
        table.add_row(name, text)
    return table
