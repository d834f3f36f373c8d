"""Two methods, three seeds each, on an environment that is not ours: in parallel, resumable, a table at the end.

    python examples/own_campaign.py --steps 40000

Stop it when you like; the same command goes on. Then: safeexplorer report runs/pendulum
"""

from __future__ import annotations

import argparse

from pendulum_lqr import ENV, SETTINGS, distance, lqr

from safeexplorer import SafeExplorer, SafeRegion, compare, linear


def make(method: str, seed: int) -> SafeExplorer:
    """A new process imports this function: it stands at the top of the file."""
    region = SafeRegion(distance=distance, radius=linear(0.2, 0.4))
    return SafeExplorer(ENV, lqr, region, method=method, seed=seed, **SETTINGS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40_000, help="environment steps of each run")
    parser.add_argument("--seeds", type=int, default=3, help="of each method")
    parser.add_argument("--folder", default="runs/pendulum", help="where the runs lie")
    args = parser.parse_args()
    compare(make, ["ppo", "safeexplorer"], range(1, args.seeds + 1), args.steps, args.folder)


if __name__ == "__main__":
    main()
