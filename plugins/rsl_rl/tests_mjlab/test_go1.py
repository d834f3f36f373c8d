"""mjlab's own runner, unmodified, on its Go1 velocity task: 8 environments on the CPU."""

from dataclasses import asdict

import mjlab.tasks  # noqa: F401
import onnxruntime
import pytest
import torch
from mjlab.envs import ManagerBasedRlEnv
from mjlab.managers.reward_manager import RewardTermCfg
from mjlab.rl import RslRlVecEnvWrapper
from mjlab.tasks.registry import load_env_cfg, load_rl_cfg, load_runner_cls
from safeexplorer_rsl_rl import SafeExplorerPPO, with_recovery

# mjlab exports with torch's older exporter, on purpose
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
TASK = "Mjlab-Velocity-Flat-Unitree-Go1"


def tilt(env) -> torch.Tensor:
    """How far the trunk leans: the sine of its angle to the vertical."""
    return env.scene["robot"].data.projected_gravity_b[:, :2].norm(dim=-1)


def lean(obs) -> torch.Tensor:
    """The same, from what the actor sees (the three numbers after two velocities)."""
    return obs["actor"][:, 6:8].norm(dim=-1)


def stand(obs) -> torch.Tensor:
    """Zero is the nominal pose of mjlab's joint position action."""
    return torch.zeros(len(obs), 12)


@pytest.fixture(scope="module")
def env():
    torch.set_num_threads(1)
    cfg = load_env_cfg(TASK)
    cfg.scene.num_envs, cfg.seed = 8, 1
    cfg.rewards["tilt"] = RewardTermCfg(func=tilt, weight=0.0)
    world = ManagerBasedRlEnv(cfg=cfg, device="cpu")
    assert world.observation_manager.active_terms["actor"][:3] == [
        "base_lin_vel",
        "base_ang_vel",
        "projected_gravity",
    ]
    yield RslRlVecEnvWrapper(world)
    world.close()


def trained(env, folder, **recovery):
    """The task's own configuration with one line changed, two iterations."""
    cfg = load_rl_cfg(TASK)
    cfg.algorithm = with_recovery(cfg.algorithm, **recovery)
    cfg.logger, cfg.upload_model = "tensorboard", False
    runner = load_runner_cls(TASK)(env, asdict(cfg), str(folder), "cpu")
    before = [p.detach().clone() for p in runner.alg.actor.parameters()]
    runner.learn(2, init_at_random_ep_len=True)
    assert isinstance(runner.alg, SafeExplorerPPO)
    assert not all(map(torch.equal, before, runner.alg.actor.parameters()))
    assert all(p.isfinite().all() for p in runner.alg.actor.parameters())
    return runner


def test_mjlabs_runner_trains_and_exports(env, tmp_path):
    """A term of the reward manager as region; then the exported policy as the recovery of another run."""
    runner = trained(env, tmp_path / "first", policy=stand, region="reward_manager/tilt", radius=0.2)
    share = runner.alg.storage.recovering.float().mean().item()
    assert 0.0 < share < 1.0
    exported = tmp_path / "first" / "first.onnx"
    obs = env.get_observations()
    with torch.inference_mode():
        expected = runner.get_inference_policy("cpu")(obs)[:1]
    (action,) = onnxruntime.InferenceSession(str(exported)).run(None, {"obs": obs["actor"][:1].numpy()})
    assert torch.allclose(torch.from_numpy(action), expected, atol=1e-5)

    second = trained(env, tmp_path / "second", policy=str(exported), region=lean, radius=0.05)
    with torch.inference_mode():
        assert torch.allclose(second.alg.recovery(obs)[:1], expected, atol=1e-5)
