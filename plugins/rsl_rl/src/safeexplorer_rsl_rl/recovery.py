"""The recovery policy: a callable, or an exported policy in a TorchScript or ONNX file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from tensordict import TensorDict

from safeexplorer_rsl_rl.region import resolve

Recovery = Callable[[TensorDict], torch.Tensor]  # observations -> actions [E, m]
TORCHSCRIPT = (".pt", ".jit", ".ts")


def load_recovery(given: str | Callable, groups: list[str], device: str) -> Recovery:
    """Observations to actions; a file reads the named observation groups side by side."""
    if callable(given):
        return given
    path = Path(given)
    if path.suffix not in (*TORCHSCRIPT, ".onnx"):
        return resolve(given, "policy")
    if not path.is_file():
        raise ValueError(f"algorithm.recovery_cfg.policy: no file {given!r}")
    policy = torchscript(path, device) if path.suffix in TORCHSCRIPT else onnx(path, device)
    return lambda obs: policy(torch.cat([obs[group] for group in groups], dim=-1))


def torchscript(path: Path, device: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """A scripted or traced policy, such as rsl_rl's `export_policy_to_jit` writes."""
    try:
        policy = torch.jit.load(str(path), map_location=device)
    except RuntimeError as error:
        raise ValueError(
            f"algorithm.recovery_cfg.policy: {path} is no TorchScript file "
            "(export a checkpoint with runner.export_policy_to_jit first)"
        ) from error
    return policy.eval()


def onnx(path: Path, device: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """An ONNX policy on the CPU. Exports of rsl_rl and mjlab fix the batch to one row; here it is any number."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ValueError(
            f"algorithm.recovery_cfg.policy: {path} needs onnxruntime: pip install safeexplorer-rsl-rl[onnx]"
        ) from error
    from onnx import load

    model = load(str(path))
    for tensor in (*model.graph.input, *model.graph.output):
        tensor.type.tensor_type.shape.dim[0].dim_param = "batch"
    del model.graph.value_info[:]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    inputs = [tensor.name for tensor in session.get_inputs()]
    if len(inputs) != 1:
        raise ValueError(
            f"algorithm.recovery_cfg.policy: {path} has inputs {inputs}, needs one: the observation"
        )

    def act(obs: torch.Tensor) -> torch.Tensor:
        actions = session.run(None, {inputs[0]: obs.float().cpu().numpy()})[0]
        return torch.from_numpy(actions).to(device)

    return act


def checked(actions: torch.Tensor, shape: tuple[int, int], outside: torch.Tensor) -> torch.Tensor:
    """The recovery's actions on the learner's device, if they can be executed where it acts."""
    got = tuple(actions.shape) if isinstance(actions, torch.Tensor) else type(actions).__name__
    if got != shape:
        raise ValueError(
            f"algorithm.recovery_cfg.policy: returned {got}, needs {shape}, one action per environment"
        )
    actions = actions.to(outside.device)
    if not actions[outside].isfinite().all():
        raise ValueError("algorithm.recovery_cfg.policy: returned an action that is not finite")
    return actions
