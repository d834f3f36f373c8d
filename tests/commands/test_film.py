"""Films of a short run: its policy with and without recovery, and a fall."""

from __future__ import annotations

from dataclasses import replace

import imageio.v3 as iio
import numpy as np
import pytest
from short_runs import SHORT

from safeexplorer.cli import main
from safeexplorer.recovery import CheckedRecovery
from safeexplorer.robots.films import INSIDE, OUTSIDE
from safeexplorer.runs.film import play, read_fall, shows
from safeexplorer.runs.policies import open_policy
from safeexplorer.runs.training import train

SMALL = replace(SHORT, steps=8 * 256, max_radius=0.3)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    train(SMALL, folder)
    return folder


def test_the_policy_with_its_recovery_tints_recovery_steps_and_draws_the_gauge(run, tmp_path, capsys):
    path = tmp_path / "film.gif"
    assert main(["film", str(run), "--out", str(path), "--seconds", "1", "--size", "256x192", "--noise"]) == 0
    frames = iio.imread(path)
    assert frames.shape[1:3] == (192, 256) and len(frames) >= 15
    assert "recovery on" in capsys.readouterr().out
    gauge = frames[:, -20:, 10:-10].reshape(-1, frames.shape[-1])[:, :3].astype(int)
    near = [np.abs(gauge - colour).sum(1).min() for colour in (INSIDE, OUTSIDE)]
    assert min(near) < 80  # one of its two colours is there, as near as a GIF has it


def test_a_sampled_recovery_is_sampled_in_the_film_too(tmp_path, monkeypatch):
    settings = replace(SMALL, recovery="default", sampled_recovery=True, max_radius=0.1)
    train(settings, tmp_path)
    monkeypatch.delattr(CheckedRecovery, "act")  # its mean
    steps = play(open_policy(tmp_path), seconds=2.0, noisy=True).steps
    assert any(step.recovering for step in steps)


def test_without_recovery_nothing_is_tinted(run, tmp_path, capsys):
    assert main(["film", str(run), "--out", str(tmp_path / "f.gif"), "--seconds", "0.5", "--recovery", "off",
                 "--size", "256x192"]) == 0  # fmt: skip
    assert "recovery on 0% of steps" in capsys.readouterr().out


def test_the_black_box_of_a_fall_plays_and_rests_on_its_last_step(run, tmp_path):
    steps, rate, _ = read_fall(run, 1)
    resting = [step for step in steps if step.fell]
    assert rate == 20 and 1 <= len(steps) - len(resting) <= 2 * rate and steps[-1].radius is not None
    assert len(resting) == 14  # 0.7 s
    path = tmp_path / "fall.gif"
    assert main(["film", str(run), "--fall", "1", "--out", str(path), "--size", "256x192"]) == 0
    assert len(iio.imread(path)) >= len(steps) - len(resting)  # a GIF may keep equal frames as one


def test_films_of_different_things_have_different_names_which_say_what_they_show(run):
    films = {
        (): ("film.mp4", "the trained policy at work"),
        ("--recovery", "off"): ("film-alone.mp4", "the trained policy without its recovery"),
        ("--fall", "1"): ("fall-1.mp4", "the last seconds before fall 1"),
    }
    for words, (name, what) in films.items():
        assert main(["film", str(run), "--seconds", "0.1", "--size", "64x64", *words]) == 0
        assert (run / name).read_bytes()[4:8] == b"ftyp" and shows(run / name) == what
    assert shows(run / "metrics.csv") is None


def test_two_runs_are_shown_side_by_side(run, tmp_path):
    path = tmp_path / "both.gif"
    words = ["--seconds", "0.5", "--size", "256x192", "--out", str(path)]
    assert main(["film", str(run), str(run), *words]) == 0
    assert iio.imread(path).shape[1:3] == (192, 512)


def test_a_policy_that_falls_lies_there_for_a_moment_and_is_counted(tmp_path):
    train(replace(SMALL, method="ppo", steps=256), tmp_path)
    steps = play(open_policy(tmp_path), seconds=40.0, noisy=True).steps
    assert steps[-1].falls >= 1
    assert [step.falls for step in steps] == sorted(step.falls for step in steps)
    assert sum(step.fell for step in steps) == 14 * steps[-1].falls


def test_falls_of_a_method_without_a_region_have_no_radius(tmp_path):
    train(replace(SMALL, method="ppo"), tmp_path)
    steps = read_fall(tmp_path, 1).steps
    assert steps[0].radius is None


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--fall", "9999"], "fall 9999 is not recorded"),
        (["another"], "several runs in one film need --out"),
        (["--out", "film.avi"], "--out must end in .mp4, .gif"),
        (["--size", "big"], "--size must be WIDTHxHEIGHT"),
    ],
)
def test_mistakes_are_explained(run, words, error, capsys):
    assert main(["film", str(run), *words]) == 2
    assert error in capsys.readouterr().err
