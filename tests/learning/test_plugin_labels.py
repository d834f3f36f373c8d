"""The labels that the rsl_rl plugin is held to are those that `label` gives today."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parents[2] / "plugins" / "rsl_rl" / "tests"


def test_the_committed_labels_are_what_label_gives():
    spec = importlib.util.spec_from_file_location("make_labels", FOLDER / "make_labels.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    with np.load(make.FILE) as file:
        committed = dict(file)
    rollouts = make.random_rollouts()
    for name, array in rollouts.items():
        assert np.array_equal(committed[name], array), name
    labels = make.package_labels(rollouts)
    assert set(committed) == set(rollouts) | set(labels)
    for name, array in labels.items():
        assert np.abs(committed[name] - array).max() < 1e-6, name
