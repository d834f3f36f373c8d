"""Dashboards get every number of every update, and a missing one is named."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from safeexplorer.runs.trackers import TRACKERS


def test_tensorboard_gets_every_number_against_steps(tmp_path, monkeypatch):
    seen = []
    writer = SimpleNamespace(add_scalar=lambda *call: seen.append(call), flush=lambda: None)
    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=lambda folder: writer))
    TRACKERS["tensorboard"](tmp_path)(None, {"steps": 8192, "falls": 3, "return_mean": None})
    assert seen == [("steps", 8192, 8192), ("falls", 3, 8192)]


def test_wandb_gets_the_settings_once_and_every_number(tmp_path, monkeypatch):
    configured, logged = [], []
    session = SimpleNamespace(
        config=SimpleNamespace(update=configured.append), log=lambda row, step: logged.append((row, step))
    )
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=lambda **_: session))
    watch = TRACKERS["wandb"](tmp_path)
    settings = SimpleNamespace(as_dict=lambda: {"seed": 1})
    for update in (1, 2):
        watch(SimpleNamespace(update=update, settings=settings), {"steps": 10 * update, "radius": None})
    assert configured == [{"seed": 1}]
    assert logged == [({"steps": 10}, 10), ({"steps": 20}, 20)]


@pytest.mark.parametrize(("name", "module"), [("tensorboard", "tensorboardX"), ("wandb", "wandb")])
def test_a_dashboard_that_is_not_installed_is_named(tmp_path, monkeypatch, name, module):
    monkeypatch.setitem(sys.modules, module, None)  # makes the import fail
    with pytest.raises(
        ValueError, match=rf"the dashboard needs {module}: pip install safeexplorer\[{name}\]"
    ):
        TRACKERS[name](tmp_path)
