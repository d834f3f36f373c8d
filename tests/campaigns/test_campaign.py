"""Campaigns: the rules of trying again."""

from __future__ import annotations

import errno
from collections import deque
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from safeexplorer.campaigns import Campaign, make_engine, make_jobs
from safeexplorer.campaigns.campaign import ATTEMPTS, Outcome
from safeexplorer.campaigns.local import Attempt, LocalEngine
from safeexplorer.campaigns.overview import Overview
from safeexplorer.cli import main
from safeexplorer.files.locks import exclusive, is_held
from safeexplorer.files.tables import last_row
from safeexplorer.files.trouble import MISTAKE, TROUBLE
from safeexplorer.files.writing import write_json
from safeexplorer.runs.results import load_results
from safeexplorer.runs.settings import Settings
from safeexplorer.runs.specs import run_spec

SPECS = [run_spec(Settings(seed=seed)) for seed in (1, 2, 3)]


@dataclass
class Script:
    """An engine that plays a script: per seed, what each attempt does to the folder and how it ends."""

    acts: dict[int, deque]
    slots: int | None = 2
    most: int = 0
    running: set = field(default_factory=set)
    starts: list = field(default_factory=list)
    killed: list = field(default_factory=list)

    def start(self, spec, folder):
        self.starts.append(spec.settings.seed)
        self.running.add(spec.key)
        self.most = max(self.most, len(self.running))
        act, outcome = self.acts[spec.settings.seed].popleft()
        act(folder)
        return spec.key, outcome

    def outcome(self, handle):
        self.running.discard(handle[0])
        return handle[1]

    def stop(self, handle):
        pass

    def kill(self, handle):
        self.killed.append(handle[0])

    def close(self):
        pass


def finish(folder: Path) -> None:
    write_json(folder / "run.json", {"settings": {}, "updates": 3})
    write_json(folder / "summary.json", {"updates": 3, "steps": 300, "falls": 0, "seconds": 1.0})


def reach(update: int):
    return lambda folder: (folder / "checkpoints" / f"{update:08d}").mkdir(parents=True)


def nothing(folder: Path) -> None:
    pass


KILLED, BROKEN = Outcome("killed by signal 9"), Outcome("RuntimeError: broken")
DONE = (finish, Outcome())


def run_script(tmp_path: Path, acts: dict[int, list], slots: int = 2) -> tuple[list, Script]:
    engine = Script({seed: deque(each) for seed, each in acts.items()}, slots)
    jobs = make_jobs(SPECS, tmp_path)
    Campaign(jobs, engine).run()
    return jobs, engine


def test_every_run_once_and_as_many_at_a_time_as_there_are_slots(tmp_path):
    jobs, engine = run_script(tmp_path, {seed: [DONE] for seed in (1, 2, 3)})
    assert [job.state for job in jobs] == ["finished"] * 3
    assert sorted(engine.starts) == [1, 2, 3] and engine.most == 2


def test_finished_runs_are_left_alone(tmp_path):
    run_script(tmp_path, {seed: [DONE] for seed in (1, 2, 3)})
    _, engine = run_script(tmp_path, {})
    assert engine.starts == []


@pytest.mark.parametrize(
    "torn", ["", '{"updates": 3, "steps": 3', "{}", "[]", '{"updates": 2, "seconds": NaN}']
)
def test_a_run_whose_summary_is_torn_is_not_finished_and_is_run_again(tmp_path, torn):
    jobs, _ = run_script(tmp_path, {seed: [DONE] for seed in (1, 2, 3)})
    (jobs[1].folder / "summary.json").write_text(torn)
    _, engine = run_script(tmp_path, {2: [DONE]})
    assert engine.starts == [2]


def test_a_run_that_makes_progress_is_never_given_up(tmp_path):
    killed = [(reach(20 * i), KILLED) for i in range(1, 8)]
    jobs, _ = run_script(tmp_path, {1: [*killed, DONE], 2: [DONE], 3: [DONE]})
    assert jobs[0].state == "finished" and jobs[0].attempts == 8


def test_a_run_that_always_fails_is_given_up_and_named_in_the_results(tmp_path):
    jobs, _ = run_script(tmp_path, {1: [(nothing, BROKEN)] * ATTEMPTS, 2: [DONE], 3: [DONE]})
    assert [job.state for job in jobs] == ["failed", "finished", "finished"]
    failed = [result for result in load_results([jobs[0].folder]) if result.status == "failed"]
    assert failed[0].error == "RuntimeError: broken" and failed[0].spec == SPECS[0]


def test_a_mistake_is_not_tried_again(tmp_path):
    jobs, engine = run_script(tmp_path, {1: [(nothing, Outcome("bad", final=True))], 2: [DONE], 3: [DONE]})
    assert jobs[0].state == "failed" and engine.starts.count(1) == 1


def test_a_failed_run_gets_another_chance_from_the_same_command(tmp_path):
    run_script(tmp_path, {1: [(nothing, Outcome("bad", final=True))], 2: [DONE], 3: [DONE]})
    jobs, engine = run_script(tmp_path, {1: [DONE]})
    assert engine.starts == [1] and not (jobs[0].folder / "failure.json").exists()


def test_a_run_in_other_hands_is_waited_for(tmp_path):
    folder = tmp_path / SPECS[0].name
    with exclusive(folder):
        assert is_held(folder)
        engine = Script({1: deque([DONE]), 2: deque([DONE]), 3: deque([DONE])})
        jobs = make_jobs(SPECS, tmp_path)
        campaign = Campaign(jobs, engine)
        campaign.fill()
        assert [job.state for job in jobs] == ["elsewhere", "running", "running"]
    assert not is_held(folder)
    campaign.run()
    assert [job.state for job in jobs] == ["finished"] * 3


def test_the_local_engine_reports_the_last_words_of_a_mistake(tmp_path):
    spec = run_spec(Settings())
    wrong = replace(spec, settings=replace(spec.settings, recovery="no-such-recovery"))
    engine = LocalEngine(1)
    tmp_path.joinpath("run").mkdir()
    attempt = engine.start(wrong, tmp_path / "run")
    attempt.process.wait()
    outcome = engine.outcome(attempt)
    assert outcome.final and "no recovery 'no-such-recovery'" in outcome.error


def test_a_module_of_the_working_directory_is_not_executed(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "threadpoolctl.py").write_text("open('executed', 'w')\nraise SystemExit(7)\n")
    monkeypatch.chdir(tmp_path)
    engine = LocalEngine(1)
    wrong = replace(SPECS[0], settings=replace(SPECS[0].settings, recovery="no-such-recovery"))
    attempt = engine.start(wrong, tmp_path / "run")
    attempt.process.wait()
    assert "no recovery 'no-such-recovery'" in engine.outcome(attempt).error
    assert not (tmp_path / "executed").exists()


def test_unknown_engines_and_no_workers_are_refused():
    with pytest.raises(ValueError, match="engine is 'slurm'; allowed: local, ray"):
        make_engine("slurm", 1)
    with pytest.raises(ValueError, match="--workers is 0"):
        make_engine("local", 0)


def test_the_overview_reads_the_newest_whole_line(tmp_path):
    path = tmp_path / "metrics.csv"
    assert last_row(path) is None
    path.write_text("update,steps,return_trailing\n1,10,\n2,20,5.5\n3,3")
    assert last_row(path) == {"update": 2.0, "steps": 20.0, "return_trailing": 5.5}
    assert Overview.counts(make_jobs(SPECS, tmp_path)) == "3 runs: 3 waiting"


@pytest.mark.parametrize(
    "damage", [b"\xff\xfe,\n\xff,\n", b"update,steps\n1,x\n", b"update,steps\n1,\n", b"", b"\n\n"]
)
def test_the_overview_shows_the_others_beside_a_damaged_table(tmp_path, damage):
    jobs = make_jobs(SPECS, tmp_path)
    for job in jobs:
        job.state = "running"
        job.folder.mkdir()
    (jobs[0].folder / "metrics.csv").write_bytes(damage)
    (jobs[1].folder / "metrics.csv").write_text("update,steps,falls\n2,20,7\n")
    console = Console(file=StringIO(), width=200)
    console.print(Overview(console).table(jobs, 0.0))
    assert console.file.getvalue().count("starting") == 2 and " 7 " in console.file.getvalue()
    made = Overview.share(jobs) * sum(spec.settings.updates for spec in SPECS)
    assert made == pytest.approx(
        3 if damage.endswith(b"1,\n") else 2
    )  # a row that lacks its steps counts its update


class Full(Script):
    """A disk on which nothing of the first run can be begun."""

    def start(self, spec, folder):
        if spec == SPECS[0]:
            self.starts.append(1)
            raise OSError(errno.ENOSPC, "No space left on device", str(folder))
        return super().start(spec, folder)


def test_a_full_disk_costs_a_run_its_three_attempts_and_the_others_nothing(tmp_path, monkeypatch):
    def full(path, values):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("safeexplorer.campaigns.campaign.write_json", full)
    engine = Full({2: deque([DONE]), 3: deque([DONE])})
    jobs = make_jobs(SPECS, tmp_path)
    Campaign(jobs, engine).run()
    assert [job.state for job in jobs] == ["failed", "finished", "finished"]
    assert engine.starts.count(1) == ATTEMPTS and "No space left on device" in jobs[0].error


def test_a_lock_that_is_a_link_is_not_waited_for(tmp_path):
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    assert not is_held(tmp_path)  # the attempt is started, and told


class Hanging(Script):
    """Its first attempt hangs until it is killed."""

    def outcome(self, handle):
        if handle[1] == "hangs" and handle[0] not in self.killed:
            return None
        return super().outcome((handle[0], KILLED if handle[1] == "hangs" else handle[1]))


def test_an_attempt_that_makes_no_progress_is_killed_and_tried_again(tmp_path):
    engine = Hanging({1: deque([(nothing, "hangs"), DONE])})
    jobs = make_jobs(SPECS[:1], tmp_path)
    Campaign(jobs, engine, patience=0.2).run()
    assert (jobs[0].state, jobs[0].attempts, engine.killed) == ("finished", 2, [SPECS[0].key])
    assert jobs[0].error == "no progress in 0.2 s, killed"


class Ended:
    """A process that is over."""

    def __init__(self, code: int):
        self.code = code

    def poll(self) -> int:
        return self.code


@pytest.mark.parametrize("code", [-9, -15, -35, -64, TROUBLE])
def test_a_worker_killed_by_any_signal_or_by_a_full_disk_is_only_a_lost_attempt(tmp_path, code):
    log = tmp_path / "log.txt"
    log.write_bytes(b"No space left on device")
    outcome = LocalEngine(1).outcome(Attempt(Ended(code), log, 0))
    assert outcome.error and not outcome.final


def test_a_full_disk_may_pass_and_a_mistake_does_not(tmp_path, monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "metrics.csv")

    monkeypatch.setattr("safeexplorer.commands.train.train", full)
    assert main(["train", "half_cheetah", "--out", str(tmp_path / "run")]) == TROUBLE
    assert main(["train", "spot", "--out", str(tmp_path / "run")]) == MISTAKE
    assert "No space left on device" in capsys.readouterr().err
