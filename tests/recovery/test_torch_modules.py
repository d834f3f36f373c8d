"""Recoveries of torch, with a stand-in for torch that knows just what is asked of it."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from small_agents import agent

from safeexplorer.recovery.protocol import RecoveryError


class Tensor:
    def __init__(self, array):
        self.array = np.asarray(array)

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.array


class Module:
    """As torch.nn.Module: callable, with a mode."""

    training = True

    def eval(self):
        self.training = False
        return self

    def __call__(self, x: Tensor) -> Tensor:
        assert not self.training and x.array.dtype == np.float32
        return Tensor(-np.sign(x.array[:, :1]))


Module.__module__ = "torch.nn.modules.module"


@pytest.fixture
def torch(monkeypatch):
    def load(path, map_location):
        if b"script" not in Path(path).read_bytes():
            raise RuntimeError("PytorchStreamReader failed\nin detail")
        return Module()

    fake = ModuleType("torch")
    fake.as_tensor, fake.no_grad, fake.jit = Tensor, contextlib.nullcontext, SimpleNamespace(load=load)
    monkeypatch.setitem(sys.modules, "torch", fake)


class Law(Module):
    """A network of the caller's own."""


def test_a_module_recovers_as_a_function_does(torch):
    made = agent(recovery=Law())
    assert made.world.recovery.name == "Law"
    assert made.learn(128).summary == agent().learn(128).summary | {"seconds": made.summary["seconds"]}


def test_a_torchscript_file_recovers_and_is_known_by_its_hash(torch, tmp_path):
    (tmp_path / "law.pt").write_bytes(b"script")
    recovery = agent(recovery=tmp_path / "law.pt").world.recovery
    assert (recovery.name, recovery.digest) == ("law", hashlib.sha256(b"script").hexdigest())
    np.testing.assert_array_equal(recovery.act(np.array([[0.5, 0], [-2, 0]], np.float32)), [[-1], [1]])


def test_what_is_no_script_or_not_there_is_refused_in_one_line(torch, tmp_path):
    (tmp_path / "law.pt").write_bytes(b"noise")
    with pytest.raises(
        RecoveryError, match=r"law\.pt: not a TorchScript file that can be read: Pytorch.* failed$"
    ):
        agent(recovery=tmp_path / "law.pt")
    with pytest.raises(RecoveryError, match=r"none\.pth: not a TorchScript file"):
        agent(recovery=tmp_path / "none.pth")


def test_without_torch_the_way_to_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(RecoveryError, match="needs torch: pip install torch"):
        agent(recovery=Law())
