"""Runs as tasks of Ray: a real cluster of two nodes on this machine, one of which dies (`make test-ray`)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from same_run import assert_same_run
from short_runs import short_runs

from safeexplorer.campaigns import Campaign, make_engine, make_jobs
from safeexplorer.campaigns.overview import last_row
from safeexplorer.files.checkpoint import is_held

ray = pytest.importorskip("ray", reason="Ray has an environment of its own: make test-ray")
pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]  # Ray's warnings are not ours

LOSE_AT = 8  # updates of the run that is furthest


@pytest.fixture
def cluster():
    """Two nodes of one CPU each: a real cluster but for the network between them."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "node_ip_address": "127.0.0.1"}
    made = Cluster(initialize_head=True, head_node_args=node | {"include_dashboard": False})
    made.add_node(**node)
    yield made
    made.shutdown()


def test_losing_a_node_costs_no_run(cluster, tmp_path):
    specs, held = short_runs(4), {}

    def lose_a_node(jobs):
        """As soon as a run is well under way."""
        rows = [row for job in jobs if (row := last_row(job.folder))]
        if not held and rows and max(row["update"] for row in rows) >= LOSE_AT:
            held.update({job.folder: writer(job.folder) for job in jobs if is_held(job.folder)})
            (second,) = cluster.worker_nodes
            cluster.remove_node(second, allow_graceful=False)

    jobs = make_jobs(specs, tmp_path / "ray")
    Campaign(jobs, make_engine("ray", 0, cluster.address), lose_a_node).run()
    assert [job.state for job in jobs] == ["finished"] * 4
    assert any(writer(folder) != before for folder, before in held.items()), (
        "no run was on the node that died"
    )

    Campaign(make_jobs(specs, tmp_path / "local"), make_engine("local", 2)).run()
    for spec in specs:
        assert_same_run(tmp_path / "ray" / spec.name, tmp_path / "local" / spec.name)


def writer(folder: Path) -> str:
    """The process that wrote the run last."""
    return (folder / "lock").read_text()


def test_a_cluster_of_its_own_listens_to_this_machine_alone():
    engine = make_engine("ray", 0)
    try:
        ray.get(engine.ray.remote(os.getpid).remote())  # a worker has started, too
        addresses = listening(family(os.getpid()))
    finally:
        engine.close()
    assert addresses
    assert {address for address in addresses if not address.endswith("0100007F")} == set()  # 127.0.0.1


def family(parent: int) -> list[int]:
    """A process and all that it started."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
    found = [parent]
    for pid in found:
        found += [child for child, its_parent in parents.items() if its_parent == pid]
    return found


def listening(pids: list[int]) -> set[str]:
    """The addresses, in hexadecimal, on which processes accept connections."""
    inodes = set()
    for pid in pids:
        for entry in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                inodes.add(os.readlink(entry).removeprefix("socket:[").removesuffix("]"))
            except OSError:
                continue
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}
