"""Runs as tasks of Ray: a real cluster of two nodes on this machine, one of which dies (`make test-ray`)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from same_run import assert_same_run
from short_runs import short_runs

from safeexplorer.campaigns import Campaign, make_engine, make_jobs
from safeexplorer.campaigns.ray import LOOPBACK
from safeexplorer.files.interruption import Stopped
from safeexplorer.files.locks import is_held
from safeexplorer.files.tables import last_row

os.environ[LOOPBACK] = "0"  # read when Ray is imported
pytest.importorskip("ray", reason="Ray has an environment of its own: make test-ray")
pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("default")]  # Ray's warnings are not ours

FAR = 5  # updates


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one CPU each: a real cluster but for the network between them."""
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    made.add_node(num_cpus=1)
    yield made
    ray.shutdown()
    made.shutdown()


def under_way(jobs):
    """The runs that are written now and have come some way."""
    held = [job for job in jobs if is_held(job.folder)]
    rows = [last_row(job.folder / "metrics.csv") for job in held]
    return [job for job, row in zip(held, rows, strict=True) if row and row["update"] >= FAR]


def test_an_interrupt_leaves_everything_resumable(cluster, tmp_path):
    def interrupt(jobs):
        if under_way(jobs):
            os.kill(os.getpid(), signal.SIGINT)

    jobs = make_jobs(short_runs(4), tmp_path)
    with pytest.raises(Stopped):
        Campaign(jobs, make_engine("ray", 0, cluster.address), interrupt).run()
    assert [job.state for job in jobs] == ["waiting"] * 4
    assert not any(is_held(job.folder) or (job.folder / "failure.json").exists() for job in jobs)
    assert any((job.folder / "checkpoints").is_dir() for job in jobs)


def test_losing_a_node_costs_no_run(cluster, tmp_path):
    specs, lost = short_runs(4), {}

    def lose_a_node(jobs):
        """As soon as both nodes have runs well under way: as if the machine had gone."""
        if lost or len(under_way(jobs)) < 2:
            return
        (second,) = cluster.worker_nodes
        (raylet,) = second.all_processes["raylet"]
        gone = family(raylet.process.pid)
        lost.update({job.folder: pid for job in jobs if (pid := writer(job.folder)) in gone})
        cluster.remove_node(second, allow_graceful=False)
        for pid in gone[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    jobs = make_jobs(specs, tmp_path / "ray")
    Campaign(jobs, make_engine("ray", 0, cluster.address), lose_a_node).run()
    assert [job.state for job in jobs] == ["finished"] * 4
    ((folder, pid),) = lost.items()
    assert writer(folder) != pid

    Campaign(make_jobs(specs, tmp_path / "local"), make_engine("local", 2)).run()
    for spec in specs:
        assert_same_run(tmp_path / "ray" / spec.name, tmp_path / "local" / spec.name)


def writer(folder: Path) -> int | None:
    """The process that wrote the run last."""
    lock = folder / "lock"
    return int(lock.read_text()) if lock.is_file() and lock.read_text().strip() else None


ENGINE = """
from safeexplorer.campaigns import make_engine
engine = make_engine("ray", 0)
import ray
ray.get(ray.remote(lambda: None).remote())
print("a worker has answered", flush=True)
input()
engine.close()
"""


def test_a_cluster_of_its_own_listens_to_this_machine_alone(tmp_path):
    alone = {name: value for name, value in os.environ.items() if name not in (LOOPBACK, "RAY_ADDRESS")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", ENGINE]
    with subprocess.Popen(command, **pipes, env=alone | {"HOME": str(tmp_path)}) as process:
        assert process.stdout.readline() == "a worker has answered\n"
        addresses = listening(family(process.pid))
        process.stdin.write("\n")
    assert process.returncode == 0
    assert len(addresses) > 0 and {a for a in addresses if not a.endswith("0100007F")} == set()  # 127.0.0.1


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
