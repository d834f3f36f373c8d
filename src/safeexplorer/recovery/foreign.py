"""From anything that can act to a checked recovery: a name, a file, a callable, a model trained elsewhere."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from safeexplorer.files.extras import load
from safeexplorer.recovery.protocol import (
    CheckedRecovery,
    Interface,
    RecoveryError,
    interface_between,
    interface_of,
)
from safeexplorer.recovery.shipped import named_recovery
from safeexplorer.robots.robot import Robot

Array = np.ndarray
ONNX_NUMBERS = {"tensor(float)": np.float32, "tensor(double)": np.float64}


def load_recovery(thing: Any, robot: Robot) -> CheckedRecovery:
    """`as_recovery` for one of the package's robots."""
    return as_recovery(thing, interface_of(robot))


def as_recovery(thing: Any, interface: Interface) -> CheckedRecovery:
    """A recovery whose every answer is checked, from one of

    - a name ("default" is the robot's own) or the path of an `.npz` recovery file,
    - the path of an `.onnx` file,
    - an object with `predict(observation, deterministic=True) -> (action, state)`,
    - a callable from observations [k, n] to actions [k, m].
    """
    if isinstance(thing, CheckedRecovery):
        if thing.robot != interface.robot:
            raise RecoveryError(f"recovery {thing.name!r} is for {thing.robot}, not for {interface.robot}")
        return thing
    if isinstance(thing, str | os.PathLike):
        return onnx_recovery(Path(thing), interface) if is_onnx(thing) else named_recovery(thing, interface)
    name = getattr(thing, "name", None) or getattr(thing, "__name__", type(thing).__name__)
    if hasattr(thing, "predict"):
        return CheckedRecovery(Predictor(thing, interface, name), interface, name)
    if callable(thing):
        return CheckedRecovery(thing, interface, name)
    raise RecoveryError(
        f"recovery is {thing!r}; allowed: a name, an .npz or .onnx file, a callable, an object with predict"
    )


class Predictor:
    """A model with the `predict` of Stable-Baselines3, asked for its deterministic action."""

    def __init__(self, model: Any, interface: Interface, name: str):
        self.model = model
        if hasattr(model, "observation_space") and hasattr(model, "action_space"):
            check_same(name, interface_between(name, model.observation_space, model.action_space), interface)

    def __call__(self, observation: Array) -> Array:
        writable = np.array(observation, np.float32)  # torch warns of arrays that it could not write to
        action, state = self.model.predict(writable, deterministic=True)
        if state is not None:
            raise RecoveryError(
                "it keeps a state between steps, but the rows of two calls are not the same robots"
            )
        return action


def check_same(name: str, own: Interface, interface: Interface) -> None:
    """The model's own spaces must be those that it is to act in."""
    sizes = [(each.observation_size, each.low.size, each.discrete) for each in (own, interface)]
    bounds = (own.low, interface.low), (own.high, interface.high)
    if sizes[0] == sizes[1] and all(np.allclose(*pair) for pair in bounds):
        return
    raise RecoveryError(
        f"recovery {name!r} was made for {describe(own)}; {interface.robot} has {describe(interface)}"
    )


def describe(interface: Interface) -> str:
    """Sizes and bounds in one line."""
    kind = "discrete actions" if interface.discrete else f"{interface.low.size} actions"
    low, high = (", ".join(f"{x:.4g}" for x in np.unique(bound)) for bound in (interface.low, interface.high))
    return f"{interface.observation_size} observations and {kind} from {low} to {high}"


# -- ONNX ------------------------------------------------------------------------------------------------------


def is_onnx(path: str | os.PathLike) -> bool:
    return Path(path).suffix.lower() == ".onnx"


def onnx_recovery(path: Path, interface: Interface) -> CheckedRecovery:
    """An `.onnx` file as a recovery; its digest is the SHA-256 of the file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RecoveryError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        policy = OnnxPolicy(content, interface)
    except RecoveryError as error:
        raise RecoveryError(f"{path}: {error}") from error
    return CheckedRecovery(policy, interface, path.stem, hashlib.sha256(content).hexdigest())


class OnnxPolicy:
    """A graph from one input [batch, n] to actions, run on one thread."""

    def __init__(self, content: bytes, interface: Interface):
        self.session = open_session(content)
        inputs, outputs = self.session.get_inputs(), self.session.get_outputs()
        if len(inputs) != 1:
            raise RecoveryError(f"its inputs are {names(inputs)}; allowed: one, the observation")
        named = [output for output in outputs if output.name == "action"] if len(outputs) > 1 else outputs
        if not named:
            raise RecoveryError(f"its outputs are {names(outputs)}; allowed: one, or one called action")
        self.input, self.output = inputs[0].name, named[0].name
        self.dtype = ONNX_NUMBERS.get(inputs[0].type)
        if self.dtype is None:
            raise RecoveryError(f"its input is a {inputs[0].type}; allowed: {', '.join(ONNX_NUMBERS)}")
        shape, wanted = inputs[0].shape, interface.observation_size
        if len(shape) != 2 or isinstance(shape[0], int) or (isinstance(shape[1], int) and shape[1] != wanted):
            raise RecoveryError(f"its input has the shape {shape}; allowed: [any, {wanted}]")

    def __call__(self, observation: Array) -> Array:
        return self.session.run([self.output], {self.input: observation.astype(self.dtype)})[0]


def open_session(content: bytes) -> Any:
    """An onnxruntime session on one thread of the processor."""
    runtime = load("onnxruntime", "onnx", "an .onnx file")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors only
    try:
        return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exceptions share no class
        raise RecoveryError(f"not a model that onnxruntime can run: {str(error).splitlines()[0]}") from error


def names(values: list[Any]) -> str:
    return ", ".join(value.name for value in values)
