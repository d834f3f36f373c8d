"""What a film of a run shows: its policy at work, or the last seconds before one of its falls."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from safeexplorer import robots
from safeexplorer.acting.interventions import NoIntervention, SafeRegion, Situation
from safeexplorer.acting.mixed import MixedPolicy
from safeexplorer.acting.policy import draw_noise, propose
from safeexplorer.robots.films import Film, Step
from safeexplorer.runs.policies import TrainedPolicy
from safeexplorer.runs.settings import Settings, stored_settings
from safeexplorer.runs.world import make_intervention


def play(
    policy: TrainedPolicy, seconds: float, seed: int = 0, noisy: bool = False, helped: bool = True
) -> Film:
    """The policy with the region as it is at that point of training, or alone."""
    settings, params = policy.settings, policy.params
    env, mixed = robots.make(settings.robot, 1), MixedPolicy(NoIntervention(), None)
    if settings.method_row().intervenes and helped:
        mixed = policy.mixed
    rng, rate, steps = np.random.default_rng(seed), env.metadata["render_fps"], []
    observation, info = env.reset(seed=seed)
    for _ in range(max(1, round(seconds * rate))):
        situation = Situation(observation, info["distance"], info["episode_length"])
        noise = draw_noise(params, (1,), rng) if noisy else 0.0
        proposed = propose(params, observation.astype(np.float32), noise)
        acted = mixed.act(situation, proposed, policy.progress, rng)
        qpos, distance = env.now.qpos[0].copy(), float(info["distance"][0])
        observation, _, terminated, _, info = env.step(acted.action)
        recovering, fell = bool(acted.recovering[0]), bool(terminated[0])
        steps.append(Step(qpos, distance, policy.radius, recovering, fell))
    return Film(steps, rate, f"{caption(settings)}, recovery {'on' if helped else 'off'}")


def read_fall(folder: Path, number: int) -> Film:
    """The black box of one fall."""
    settings = stored_settings(folder)
    kept = {int(path.stem): path for path in (folder / "falls").glob("*.npz")}
    if number not in kept:
        known = ", ".join(map(str, sorted(kept))) or "none"
        raise ValueError(f"fall {number} is not recorded in {folder}; recorded: {known}")
    with np.load(kept[number], allow_pickle=False) as box:
        radius = float(box["radius"]) if isinstance(make_intervention(settings), SafeRegion) else None
        rows = zip(box["qpos"], box["distance"], box["recovering"], strict=True)
        steps = [Step(qpos, float(distance), radius, bool(acts)) for qpos, distance, acts in rows]
        return Film(steps, int(box["rate"]), f"fall {number} of {caption(settings)}", of_a_fall=True)


def caption(settings: Settings) -> str:
    """Whose film it is."""
    return f"{settings.robot}, {settings.method}, seed {settings.seed}"
