"""The command line: what it prints, what it writes, and how it says no."""

import json
import os
import signal
import time

import imageio.v3 as iio
import imageio_ffmpeg
import pytest

from safeexplorer import robots
from safeexplorer.cli import COMMANDS, main
from safeexplorer.files.writing import replacing
from safeexplorer.robots import ROBOTS
from safeexplorer.robots import benchmark as bench
from safeexplorer.robots.physics import RawLoop


def run(capsys, *words):
    code = main(words)
    return code, capsys.readouterr().out


def refused(capsys, *words):
    """The one line that a refused command prints."""
    try:
        code = main(words)
    except SystemExit as stop:
        code = stop.code
    output = capsys.readouterr()
    assert code == 2
    assert output.err.count("\n") == 1 and "Traceback" not in output.err
    return output.err


@pytest.mark.parametrize(
    ("words", "module", "function"),
    [
        (["recovery", "grade", "half_cheetah", "--resets", "2"], "recovery", "grade"),
        (["evaluate", "somewhere"], "evaluate", "evaluate_command"),
    ],
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_signals_that_end_are_one_line_and_leave_nothing_half_written(
    monkeypatch, capsys, tmp_path, words, module, function, number
):
    def press(*_):
        with replacing(tmp_path / "page.html") as file:
            file.write(b"half of")
            os.kill(os.getpid(), number)
            time.sleep(10)

    monkeypatch.setattr(f"safeexplorer.commands.{module}.{function}", press)
    assert main(words) == 130
    assert not list(tmp_path.iterdir()) and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert capsys.readouterr().err.endswith("safeexplorer: stopped by a signal\n")


def test_robots_lists_every_robot(capsys):
    code, out = run(capsys, "robots")
    assert code == 0
    for name in ROBOTS:
        assert name in out


def test_robots_as_json_has_dimensions_radii_and_budget(capsys):
    _, out = run(capsys, "robots", "--json")
    rows = {row["robot"]: row for row in json.loads(out)}
    assert list(rows) == ["half_cheetah", "ant", "go1"]
    assert [(row["observation"], row["action"]) for row in rows.values()] == [(17, 6), (27, 8), (49, 12)]
    assert [(row["initial_radius"], row["max_radius"]) for row in rows.values()] == [
        (0.01, 2.0),
        (0.01, 0.4),
        (0.05, 0.15),
    ]
    assert [row["budget"] for row in rows.values()] == [8_000_000, 8_000_000, 16_000_000]


@pytest.mark.parametrize("robot", ROBOTS)
def test_show_draws_a_picture(capsys, tmp_path, robot):
    file = tmp_path / f"{robot}.png"
    code, _ = run(capsys, "show", robot, "--out", str(file), "--size", "320x240", "--seconds", "0.1")
    assert code == 0
    picture = iio.imread(file)
    assert picture.shape == (240, 320, 3)
    assert picture.std() > 10


@pytest.mark.parametrize("ending", ["mp4", "gif"])
def test_show_draws_motion(capsys, tmp_path, ending):
    file = tmp_path / f"ant.{ending}"
    words = ["show", "ant", "--out", str(file), "--size", "160x120", "--seconds", "0.5", "--policy", "random"]
    code, _ = run(capsys, *words)
    assert code == 0
    # 0.5 s at 20 steps per second, and the start
    if ending == "gif":
        frames = iio.imread(file)
        assert len(frames) == 11
        assert (frames[0] != frames[-1]).any()
    else:
        assert imageio_ffmpeg.count_frames_and_secs(file)[0] == 11


def test_bench_sim_prints_the_ratio_to_the_raw_loop(capsys):
    _, out = run(capsys, "bench", "sim", "--robot", "half_cheetah", "--seconds", "0.2", "--json")
    (row,) = json.loads(out)
    assert set(row) == {"robot", "steps_per_second", "raw_steps_per_second", "ratio"}
    assert row["robot"] == "half_cheetah"
    assert row["steps_per_second"] > 0 and row["raw_steps_per_second"] > 0 and row["ratio"] > 0
    code, out = run(capsys, "bench", "sim", "--robot", "ant", "--seconds", "0.2")
    assert code == 0 and "ant" in out and "ratio" in out


@pytest.mark.parametrize("name", ROBOTS)
def test_the_raw_loop_of_the_benchmark_does_the_same_physics(name, monkeypatch):
    """Both sides end every block in the same states, so that the ratio compares like with like."""
    checked, simulation, seconds = [], robots.make(name, bench.ROBOT_COUNT), RawLoop.seconds

    def checking(raw, *rest):
        checked.append(seconds(raw, *rest))
        for data, qpos in zip(raw.data, simulation.now.qpos, strict=True):
            assert data.qpos.tolist() == qpos.tolist()
        return checked[-1]

    monkeypatch.setattr(bench, "make", lambda *_: simulation)
    monkeypatch.setattr(RawLoop, "seconds", checking)
    bench.bench_simulation(name, 0.3)
    assert checked


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    for command in COMMANDS:
        assert command in out


@pytest.mark.parametrize("command", ["robots", "show", "bench"])
def test_every_command_has_help(capsys, command):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert "usage" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "cat", "--out", "cat.png"], "no robot 'cat'; known: half_cheetah, ant, go1"),
        (["show", "ant", "--out", "ant.bmp"], "--out must end in .png, .jpg, .mp4, .gif, got 'ant.bmp'"),
        (["show", "ant", "--out", "a.png", "--flavour", "x"], "known: task, recovery, recovery_strong"),
        (
            ["show", "ant", "--out", "a.png", "--seconds", "-1"],
            "--seconds: is '-1'; allowed: a number from 0 to 3600",
        ),
        (["show", "ant", "--out", "a.png", "--size", "big"], "--size must be WIDTHxHEIGHT"),
        (["show", "ant", "--out", "a.png", "--policy", "x"], "choose from"),
        (["bench", "sim", "--robot", "cat"], "no robot 'cat'; known: half_cheetah, ant, go1"),
        (["bench", "sim", "--seconds", "0"], "--seconds: is '0'; allowed: a number from 0.01 to 86400"),
        (["nonsense"], "invalid choice: 'nonsense'"),
        ([], "required: COMMAND"),
    ],
)
def test_a_wrong_word_is_one_line_with_what_is_allowed(capsys, words, message):
    assert message in refused(capsys, *words)


@pytest.mark.parametrize(
    "words",
    [
        ("train", "half_cheetah", "--out", ""),
        ("reproduce", "ablation", "--runs", ""),
        ("quickstart", "--out", ""),
        ("recovery", "train", "ant", "--out", ""),
        ("collect", ""),
    ],
)
def test_an_empty_path_is_not_the_working_directory(capsys, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    assert "the path is empty" in refused(capsys, *words)
    assert not list(tmp_path.iterdir())


def test_zero_steps_are_not_the_papers_steps(capsys, tmp_path):
    said = refused(capsys, "reproduce", "ablation", "--steps", "0", "--runs", str(tmp_path / "runs"))
    assert "--steps: is '0'; allowed: a whole number from 1 to 1e+12" in said
    assert not list(tmp_path.iterdir())
