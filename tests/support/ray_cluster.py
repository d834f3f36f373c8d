"""A campaign on a Ray cluster of two nodes, one of which dies in the middle, against the same campaign here.

pip install -e .[ray] && python tests/ray_cluster.py
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

from ray.cluster_utils import Cluster

from safeexplorer.campaigns import Campaign, make_engine, make_jobs
from safeexplorer.campaigns.overview import last_row
from safeexplorer.files.threads import use_one_thread
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.specs import run_spec

SHORT = Settings(
    recovery="hold",
    num_envs=2,
    rollout_steps=256,
    epochs=1,
    minibatches=4,
    steps=60 * 512,
    checkpoint_every=5,
)
RECORDS = ("metrics.csv", "episodes.csv", "evaluations.csv", "exits.bin")
LOSE_AT = 8  # updates of the run that is furthest


def main() -> None:
    use_one_thread()
    specs = [run_spec(replace(SHORT, seed=seed)) for seed in range(1, 5)]
    root = Path(tempfile.mkdtemp(prefix="ray-campaign-"))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = [cluster.add_node(num_cpus=1)]

    def lose_a_node(jobs: list) -> None:
        """As soon as a run is well under way."""
        rows = [row for job in jobs if (row := last_row(job.folder))]
        if second and rows and max(row["update"] for row in rows) >= LOSE_AT:
            print(f"{len(rows)} runs under way; a node dies")
            cluster.remove_node(second.pop(), allow_graceful=False)

    began = time.perf_counter()
    jobs = make_jobs(specs, root / "ray")
    Campaign(jobs, make_engine("ray", 0, cluster.address), lose_a_node).run()
    cluster.shutdown()
    print(f"ray: {[job.state for job in jobs]}, {time.perf_counter() - began:.0f} s")
    assert not second, "no node was lost"

    jobs = make_jobs(specs, root / "local")
    Campaign(jobs, make_engine("local", 2)).run()
    print(f"local: {[job.state for job in jobs]}")
    for spec in specs:
        for record in RECORDS:
            one, other = ((root / engine / spec.name / record).read_bytes() for engine in ("ray", "local"))
            assert one == other, f"{spec.name}/{record} differs"
    print(f"{len(specs)} runs, the same bytes on both engines")


if __name__ == "__main__":
    main()
