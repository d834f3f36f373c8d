"""What a film of a run shows: its policy at work, or the last seconds before one of its falls."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from safeexplorer import robots
from safeexplorer.acting.interventions import NoIntervention, SafeRegion, Situation
from safeexplorer.acting.mixed import MixedPolicy
from safeexplorer.acting.policy import draw_noise, propose
from safeexplorer.files.archives import read_npz
from safeexplorer.robots.films import MOTION, Film, Step, rest_on
from safeexplorer.runs.settings import Settings, stored_settings
from safeexplorer.runs.world import make_intervention

if TYPE_CHECKING:  # the report reads the names of films and needs no learner
    from safeexplorer.runs.policies import TrainedPolicy

FILE_SHOWS = {"film": "the trained policy at work", "film-alone": "the trained policy without its recovery"}


def file_name(fall: int | None, helped: bool) -> str:
    """What a film is called in its run folder; `shows` reads it back."""
    return f"fall-{fall}.mp4" if fall is not None else "film.mp4" if helped else "film-alone.mp4"


def shows(path: Path) -> str | None:
    """What a film of a run folder shows, as its name says; None: it is no film."""
    if path.suffix not in MOTION:
        return None
    fall = re.fullmatch(r"fall-(\d+)", path.stem)
    return f"the last seconds before fall {fall[1]}" if fall else FILE_SHOWS.get(path.stem)


def play(
    policy: TrainedPolicy, seconds: float, seed: int = 0, noisy: bool = False, helped: bool = True
) -> Film:
    """The policy with the region as it is at that point of training, or alone."""
    settings, params = policy.settings, policy.params
    env, mixed = robots.make(settings.robot, 1), MixedPolicy(NoIntervention(), None)
    intervenes = settings.method_row().intervenes
    if intervenes and helped:
        mixed = policy.mixed
    rng, rate, steps, falls = np.random.default_rng(seed), env.metadata["render_fps"], [], 0
    observation, info = env.reset(seed=seed)
    while len(steps) < max(1, round(seconds * rate)):
        situation = Situation(observation, info["distance"], info["episode_length"])
        noise = draw_noise(params, (1,), rng) if noisy else 0.0
        proposed = propose(params, observation.astype(np.float32), noise)
        acted = mixed.act(situation, proposed, policy.progress, rng)
        qpos, distance = env.now.qpos[0].copy(), float(info["distance"][0])
        observation, _, terminated, _, info = env.step(acted.action)
        steps.append(Step(qpos, distance, policy.radius, bool(acted.recovering[0]), falls=falls))
        if terminated[0]:
            falls += 1
            steps += rest_on(steps[-1]._replace(falls=falls), rate)
    return Film(steps, rate, caption(settings) + ", recovery off" * (intervenes and not helped))


def read_fall(folder: Path, number: int) -> Film:
    """The black box of one fall."""
    settings = stored_settings(folder)
    kept = {int(path.stem): path for path in (folder / "falls").glob("*.npz")}
    if number not in kept:
        known = ", ".join(map(str, sorted(kept))) or "none"
        raise ValueError(f"fall {number} is not recorded in {folder}; recorded: {known}")
    box = read_npz(kept[number], ["qpos", "distance", "recovering", "radius", "rate"])
    radius = float(box["radius"]) if isinstance(make_intervention(settings), SafeRegion) else None
    rows = zip(box["qpos"], box["distance"], box["recovering"], strict=True)
    steps = [Step(qpos, float(distance), radius, bool(acts)) for qpos, distance, acts in rows]
    rate = int(box["rate"])
    return Film(steps + rest_on(steps[-1], rate), rate, f"fall {number} of {caption(settings)}")


def caption(settings: Settings) -> str:
    """Whose film it is."""
    return f"{settings.robot}, {settings.method}, seed {settings.seed}"
