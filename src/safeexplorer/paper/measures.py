"""What a cell shows of a run."""

from collections.abc import Callable
from dataclasses import dataclass

from safeexplorer.runs.results import Result


@dataclass(frozen=True)
class Measure:
    """A number of a finished run: how it is read, headed and written."""

    heading: str
    value: Callable[[Result], float | None]
    better: int = 0  # +1: higher is better, -1: lower (a count or a share), 0: neither
    form: str = "{:,.0f}"


def number(name: str) -> Callable[[Result], float | None]:
    return lambda result: result.numbers.get(name)


def survived(result: Result) -> float | None:
    """Percent of the replayed exits without a fall."""
    if not result.replay or not result.replay["exits"]:
        return None
    return 100.0 * result.replay["survived"]["count"] / result.replay["survived"]["total"]


MEASURES: dict[str, Measure] = {
    "final_reward": Measure("reward", number("final_reward"), +1),
    "small_reward": Measure("reward", number("final_reward"), +1, "{:.3g}"),
    "falls": Measure("falls", number("falls"), -1),
    "exits": Measure("exits", number("exits"), -1),
    "survived": Measure("survived %", survived, +1, "{:.1f}"),
    "mixed_return": Measure("J_mix", number("mixed_return_late"), +1),
    "alone_return": Measure("J", number("alone_return_late"), +1),
    "gap": Measure("J_mix - J", number("gap_late")),
    "recovery_rate": Measure("alpha", number("recovery_rate_late"), -1, "{:.3f}"),
    "alone_falls": Measure("falls alone per episode", number("alone_falls_late"), -1, "{:.2f}"),
    "final_cost": Measure("falls per episode", number("final_cost"), -1, "{:.3f}"),
    "ess_max": Measure("largest ESS share", number("ess_max"), 0, "{:.2g}"),
    "variance_ratio_max": Measure(
        "log10 of the largest ratio", number("log10_variance_ratio_max"), 0, "{:.1f}"
    ),
    "falls_to_success": Measure("falls to success", lambda result: None, -1),  # needs a bar: see `Grid`
}
