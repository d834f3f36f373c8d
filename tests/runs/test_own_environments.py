"""Runs on environments of one's own are read like any other; what needs the environment names the Python call."""

from __future__ import annotations

import csv
import json
from functools import partial

import gymnasium
import numpy as np
import onnxruntime
import pytest
from gymnasium.vector import SyncVectorEnv
from small_agents import agent, equal
from toys import Choice, Drift, choose_back

from safeexplorer import SafeExplorer
from safeexplorer.adapters.inspection import name_of
from safeexplorer.cli import main
from safeexplorer.paper.curves import steps_unit
from safeexplorer.paper.sheet import lay_out
from safeexplorer.report.groups import own_grids
from safeexplorer.runs.results import load_results


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """PPO and SafeExplorer on Drift, two seeds each, and one run on Choice."""
    root = tmp_path_factory.mktemp("runs")
    for method in ("ppo", "safeexplorer"):
        for seed in (1, 2):
            agent(method=method, seed=seed).learn(512, folder=root / f"{method}-{seed}")
    agent([Choice, Choice], recovery=choose_back).learn(512, folder=root / "choice")
    return root


def test_an_environment_is_called_by_its_id_its_class_or_its_function():
    def make_drift():
        return Drift()

    env = gymnasium.make("CartPole-v1")
    assert name_of("CartPole-v1") == name_of(env) == "CartPole-v1"
    assert name_of([Drift, Drift]) == name_of(Drift()) == name_of(SyncVectorEnv([Drift])) == "Drift"
    assert name_of([partial(make_drift)]) == "make_drift" and name_of([lambda: env]) == "environment"
    assert (
        agent([lambda: gymnasium.make("CartPole-v1")] * 2, method="ppo").settings.environment == "CartPole-v1"
    )
    assert agent(environment="drift, narrow").settings.label == "drift, narrow safeexplorer seed 1"


def test_the_report_groups_own_runs_by_environment_and_method(runs, tmp_path):
    assert main(["report", str(runs), "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    groups = json.loads(page.split('id="data">')[1].split("</script>")[0])["groups"]
    found = {(group["robot"], group["label"]): group["finished"] for group in groups}
    assert found == {
        ("Drift", "PPO (no recovery)"): 2,
        ("Drift", "SafeExplorer"): 2,
        ("Choice", "SafeExplorer"): 1,
    }


def test_own_runs_are_collected_and_read_back(runs, tmp_path):
    assert main(["collect", str(runs), "--out", str(tmp_path)]) == 0
    assert len(list(tmp_path.glob("Drift-safeexplorer-seed?-*.json"))) == 2
    before, after = (
        {run.spec.name: run.numbers for run in load_results([where])} for where in (runs, tmp_path)
    )
    assert before == after and len(after) == 5


def test_render_own_has_a_row_per_method_and_a_figure_per_environment(runs, tmp_path, capsys):
    assert main(["render", "own", "--runs", str(runs), "--figures", str(tmp_path), "--format", "csv"]) == 0
    rows = csv.DictReader(capsys.readouterr().out.splitlines())
    falls = {(row["robot"], row["arm"]): int(row["runs"]) for row in rows if row["measure"] == "falls"}
    assert falls == {
        ("Drift", "PPO (no recovery)"): 2,
        ("Drift", "SafeExplorer"): 2,
        ("Choice", "SafeExplorer"): 1,
    }
    assert {path.name for path in tmp_path.glob("*.png")} == {"own-Drift.png", "own-Choice.png"}


def test_small_rewards_keep_their_digits(runs):
    (grid,) = own_grids(load_results([runs / "ppo-1"]))
    (run,) = load_results([runs / "ppo-1"])
    assert run.numbers["final_reward"] < 10  # Drift pays at most 1 per step, for at most 12 steps
    assert lay_out(grid).rows[0].ours[0] == f"{run.numbers['final_reward']:.3g}"


def test_short_runs_are_drawn_over_thousands_of_steps(runs):
    (grid,) = own_grids(load_results([runs / "ppo-1"]))
    assert steps_unit(grid) == (1e3, "thousands")


@pytest.mark.parametrize("name", ["safeexplorer-1", "choice"])
def test_an_own_run_is_exported_and_acts_as_loaded_from_its_folder(runs, tmp_path, name):
    path = tmp_path / "policy.onnx"
    assert main(["export", str(runs / name), "--out", str(path), "--gate"]) == 0
    loaded = SafeExplorer.load(runs / name)
    rows = np.random.default_rng(0).standard_normal((5, 2)).astype(np.float32)
    session = onnxruntime.InferenceSession(path)
    action, gate = session.run(
        None, {"observation": rows, "distance": np.array([0, 0.79, 0.81, 2, 9], np.float32)}
    )
    np.testing.assert_allclose(action, loaded.predict(rows, deterministic=True)[0], atol=1e-5)
    # 8 updates of 64 steps: the radius of the last is 0.1 + 7/8 * 0.8 = 0.8
    assert gate.tolist() == [False, False, True, True, True]


def test_a_run_folder_loads_as_the_agent_that_made_it(runs):
    made = agent(seed=2).learn(512)
    again = SafeExplorer.load(runs / "safeexplorer-2")
    assert equal(again.learner.get_state(), made.learner.get_state()) and again.num_timesteps == 512
    assert again.observation_space == made.observation_space


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("resume", "SafeExplorer(env, ...).learn(512, folder='{}'), made as before"),
        ("film", "SafeExplorer.load('{}').predict(observation) inside gymnasium.wrappers.RecordVideo"),
        ("evaluate", "SafeExplorer.load('{}').evaluate(env)"),
        ("recovery replay", "SafeExplorer.load('{}', env=..., recovery=..., region=...).audit()"),
    ],
)
def test_what_needs_the_environment_names_the_python_call(runs, capsys, command, call):
    folder = runs / "safeexplorer-1"
    assert main([*command.split(), str(folder)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"was trained on Drift, which only Python can make; there: {call.format(folder)}")


def test_the_named_calls_work(runs):
    folder = runs / "safeexplorer-1"
    assert SafeExplorer.load(folder).evaluate([Drift]).length > 0
    made = agent()
    again = SafeExplorer.load(
        folder, [Drift, Drift], recovery=made.world.recovery, region=made.world.intervention
    )
    assert again.audit(64).shares.steps == 64
