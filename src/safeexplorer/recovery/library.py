"""From anything that can act to a checked recovery: a name, a file, a callable, a model trained elsewhere."""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from safeexplorer.files.extras import load
from safeexplorer.recovery.actor import load_actor, read_provenance
from safeexplorer.recovery.protocol import CheckedRecovery, Interface, RecoveryError, interface_between
from safeexplorer.recovery.scripted import SCRIPTED, Posture
from safeexplorer.recovery.torch_modules import TorchPolicy, is_torch_module, torch_recovery

Array = np.ndarray
WEIGHTS = Path(__file__).parent / "weights"
DEFAULT = "default"
# The key, in an .onnx file, of the name of another file with weights; its tag and length may be written at length.
EXTERNAL = re.compile(rb"(\x0a|\x8a\x80*\x00)(\x08|\x88\x80*\x00)location")
ONNX_NUMBERS = {"tensor(float)": np.float32, "tensor(double)": np.float64}


class Robot(Protocol):
    """Who knows its own interface."""

    def interface(self) -> Interface: ...


def load_recovery(thing: Any, robot: Robot) -> CheckedRecovery:
    """`as_recovery` for a robot of the registry."""
    return as_recovery(thing, robot.interface())


def as_recovery(thing: Any, interface: Interface) -> CheckedRecovery:
    """A recovery whose every answer is checked, from one of

    - a name ("default" is the robot's own) or the path of an `.npz` recovery file,
    - the path of an `.onnx` file, or of a TorchScript file (`.pt`, `.pth`),
    - a `torch.nn.Module` from float32 observations [k, n] to actions [k, m],
    - an object with `predict(observation, deterministic=True) -> (action, state)`,
    - a callable from observations [k, n] to actions [k, m].
    """
    if isinstance(thing, CheckedRecovery):
        if thing.robot != interface.robot:
            raise RecoveryError(f"recovery {thing.name!r} is for {thing.robot}, not for {interface.robot}")
        return thing
    if isinstance(thing, str | os.PathLike):
        made = KINDS.get(Path(thing).suffix.lower(), named_recovery)
        return made(thing, interface)
    name = getattr(thing, "name", None) or getattr(thing, "__name__", type(thing).__name__)
    if hasattr(thing, "predict"):
        return CheckedRecovery(Predictor(thing, interface, name), interface, name)
    if is_torch_module(thing):
        thing = TorchPolicy(thing)
    if callable(thing):
        return CheckedRecovery(thing, interface, name)
    raise RecoveryError(
        f"recovery is {thing!r}; allowed: a name, an .npz, .onnx or .pt file, a callable, a torch module, "
        "an object with predict"
    )


# -- by name, and from a recovery file -------------------------------------------------------------------------


def shipped() -> dict[str, dict[str, str]]:
    """name -> {"robot", "file", "sha256"} of the recoveries inside the package."""
    return json.loads((WEIGHTS / "manifest.json").read_text(encoding="utf-8"))


def known_recoveries(robot: str, posture: Posture | None) -> list[str]:
    """The names that `named_recovery` takes for this robot; the first one is its default."""
    learned = [name for name, entry in shipped().items() if entry["robot"] == robot]
    learned.sort(key=lambda name: (name != robot, name))
    return learned + (list(SCRIPTED) if posture else [])


def named_recovery(spec: str | os.PathLike, interface: Interface) -> CheckedRecovery:
    """The recovery called `spec`: "default", a name, or the path of an `.npz` file."""
    robot, posture = interface.robot, interface.posture
    known = known_recoveries(robot, posture)
    name = known[0] if spec == DEFAULT and known else str(spec)
    if name in SCRIPTED and name in known:
        return CheckedRecovery(SCRIPTED[name](posture, interface.low, interface.high), interface, name)
    if name in known:
        return load_shipped(name, interface)
    if name in shipped():
        raise RecoveryError(f"recovery {name!r} is for {shipped()[name]['robot']}, not for {robot}")
    path = Path(spec)
    if path.suffix == "" and not path.exists():
        raise RecoveryError(f"{robot} has no recovery {name!r}; known: {', '.join([*known, 'a file'])}")
    actor, _, digest = load_actor(path, interface)
    return CheckedRecovery(actor, interface, path.stem, digest)


def load_shipped(name: str, interface: Interface) -> CheckedRecovery:
    """A recovery of the package; its hash must also be the one in the manifest."""
    entry = shipped()[name]
    actor, _, digest = load_actor(WEIGHTS / entry["file"], interface)
    if digest != entry["sha256"]:
        raise RecoveryError(f"{entry['file']}: not the file the package was shipped with")
    return CheckedRecovery(actor, interface, name, digest)


def provenance(name: str) -> dict[str, Any]:
    """How a shipped recovery came about: settings, steps, updates, falls, grade."""
    return read_provenance(WEIGHTS / shipped()[name]["file"])


# -- Stable-Baselines3 and its like ----------------------------------------------------------------------------


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


def onnx_recovery(path: str | os.PathLike, interface: Interface) -> CheckedRecovery:
    """An `.onnx` file as a recovery; its digest is the SHA-256 of the file."""
    path = Path(path)
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
    """An onnxruntime session on one thread of the processor, of a file that holds all of its weights."""
    if EXTERNAL.search(content):
        raise RecoveryError(
            "its weights may lie in other files, which its hash says nothing about; allowed: one file with all weights "
            "(onnx.save with save_as_external_data=False), and no entry called 'location'"
        )
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


# How a file becomes a recovery, by its ending; any other is a name or a file of ours.
KINDS = {".onnx": onnx_recovery, ".pt": torch_recovery, ".pth": torch_recovery}
