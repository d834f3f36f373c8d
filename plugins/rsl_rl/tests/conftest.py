import os
from importlib.metadata import version

import pytest
import torch


def pytest_report_header() -> str:
    """Which rsl_rl is tested; RSL_RL says which one was meant."""
    found, meant = version("rsl-rl-lib"), os.environ.get("RSL_RL")
    if meant and found != meant:
        pytest.exit(f"rsl-rl-lib {found} is installed, {meant} was to be tested", returncode=4)
    return f"rsl-rl-lib {found}, torch {torch.__version__}"


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """One thread, and rsl_rl prints no networks."""
    torch.set_num_threads(1)
    monkeypatch.setattr("builtins.print", lambda *args, **kwargs: None)
