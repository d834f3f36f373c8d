"""Recoveries of torch, which is imported when one is met."""

import hashlib
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer.recovery.protocol import CheckedRecovery, Interface, RecoveryError

Array = np.ndarray


def is_torch_module(thing: Any) -> bool:
    """Told by the names of its classes: torch is not imported to ask."""
    bases = {(base.__module__.split(".")[0], base.__name__) for base in type(thing).__mro__}
    return ("torch", "Module") in bases


def torch_recovery(path: str | os.PathLike, interface: Interface) -> CheckedRecovery:
    """A TorchScript file as a recovery; its digest is the SHA-256 of the file."""
    path, torch = Path(path), load_torch()
    try:
        content = path.read_bytes()
        module = torch.jit.load(str(path), map_location="cpu")
    except (OSError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise RecoveryError(f"{path}: not a TorchScript file that can be read: {reason}") from error
    return CheckedRecovery(TorchPolicy(module), interface, path.stem, hashlib.sha256(content).hexdigest())


class TorchPolicy:
    """A module from float32 observations [k, n] to actions [k, m], without gradients and as in evaluation."""

    def __init__(self, module: Any):
        self.torch, self.module = load_torch(), module.eval()

    def __call__(self, observation: Array) -> Array:
        with self.torch.no_grad():
            action = self.module(self.torch.as_tensor(np.array(observation, np.float32)))
        return action.detach().cpu().numpy()


def load_torch() -> Any:
    try:
        return import_module("torch")
    except ImportError as error:
        raise RecoveryError("a recovery of torch needs torch: pip install torch") from error
