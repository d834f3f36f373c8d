"""A run is a value: the settings that shape its numbers name it, and equal runs share one folder."""

import hashlib
import json
import re
from dataclasses import dataclass, fields
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from safeexplorer.files.fields import option
from safeexplorer.learning.methods import CONSTRAINED, Method, get_method
from safeexplorer.runs.settings import Settings, from_dict

# Settings that say how a run is watched or executed; the training is the same whatever they are.
OBSERVERS = ("threads", "checkpoint_every", "falls_kept", "eval_every", "eval_episodes")
REGION = ("schedule", "initial_radius", "max_radius", "fraction")
RECOVERY = ("recovery", "intervention", *REGION, "handoff", "sampled_recovery")
IMITATION = ("lambda_compat", "per_segment")
SPREAD = ("initial_spread", "spread_fade")
HANDOVER = ("begin_as_recovery", "imitation_share", "safe_share", "haste", "hold_spread", *SPREAD)
NORMALISING = ("normalise_observations", "scale_rewards")
LONGEST_NAME = 100  # bytes of a subject in the name of a file
CONSTRAINT = ("cost", "cost_limit", "target_kl", "multiplier_start", "multiplier_rate")


def unread(settings: Settings) -> set[str]:
    """Settings that this run never reads: PPO has no radius, a run without a gate no weight for it."""
    method = settings.method_row()
    idle = set(OBSERVERS)
    if not method.intervenes:
        idle |= set(RECOVERY) | set(HANDOVER)
    if settings.method not in CONSTRAINED:
        idle |= set(CONSTRAINT) - ({"target_kl"} if method.limit_updates else set())
    else:
        idle |= {"min_log_std", "limit_updates", *NORMALISING}
        if settings.cost == "region":
            idle.discard("max_radius")
    if method.gate == "off":
        idle |= set(IMITATION)
    if method.gate != "hard":
        idle.add("wait_for_outcomes")
    idle |= unread_of_handover(settings, method)
    if not method.analytic_value:
        idle.add("analytic_samples")
    if method.importance_cap is None:
        idle.add("importance_cap")
    if get_method(settings.method).sampled_recovery:
        idle.add("sampled_recovery")
    if settings.intervention == "jump_start":
        idle |= set(REGION)
    else:
        idle.add("handoff")
    if settings.schedule in ("constant", "auto"):
        idle.add("initial_radius")
    if settings.schedule != "constant":
        idle.add("fraction")
    return idle


def unread_of_handover(settings: Settings, method: Method) -> set[str]:
    """Numbers of the parts that are off, and the floor under a spread that is held by other means."""
    idle = set() if method.begin_as_recovery else {"imitation_share"}
    if not (method.begin_as_recovery or method.hold_spread):
        idle.add("initial_spread")
    idle.add("min_log_std" if method.hold_spread else "spread_fade")
    return idle if settings.schedule == "auto" or method.hold_spread else idle | {"safe_share", "haste"}


@cache
def own_settings(robot: str | None, method: str) -> dict[str, Any]:
    """What a run of this method on this robot has if nothing is said."""
    return Settings(robot=robot, method=method).resolved().as_dict()


def without_effect(settings: Settings) -> list[str]:
    """What was set otherwise than the robot's and the method's own, although this run never reads it."""
    own, values = own_settings(settings.robot, settings.method), settings.as_dict()
    idle = unread(settings) - set(OBSERVERS)
    return [name for name, value in values.items() if name in idle and value != own[name]]


@dataclass(frozen=True)
class RunSpec:
    """A run before it is run: settings with everything filled in."""

    settings: Settings

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What shapes the numbers and is not the robot's or the method's own, so that a new setting renames no run."""
        s = self.settings
        own, idle = own_settings(s.robot, s.method), unread(s)
        named = {name: getattr(s, name) for name in ("robot", "method", "seed", "steps")}
        changed = {k: v for k, v in s.as_dict().items() if k not in idle and v != own[k]}
        return named | changed

    @property
    def changes(self) -> dict[str, Any]:
        """What differs from the robot's and the method's own settings."""
        own, named = own_settings(self.settings.robot, self.settings.method), ("environment", "seed")
        return {k: v for k, v in self.identity.items() if k not in named and v != own[k]}

    @cached_property
    def key(self) -> str:
        """SHA-256 of the identity as canonical JSON."""
        text = json.dumps(self.identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def name(self) -> str:
        """Readable, and unique by the hash at its end: the name of the run's folder."""
        s = self.settings
        return f"{file_name(s.subject)}-{s.method}-seed{s.seed}-{self.key[:10]}"

    @property
    def label(self) -> str:
        """For people."""
        return " ".join([self.settings.label, *(f"{k}={v}" for k, v in self.changes.items())])


def file_name(name: str) -> str:
    """A name that any file system takes."""
    return re.sub(r"[^\w.-]+", "_", name).encode()[:LONGEST_NAME].decode(errors="ignore")


def run_spec(settings: Settings) -> RunSpec:
    """The specification of a run with these settings."""
    return RunSpec(settings.resolved())


def spec_from_dict(values: dict[str, Any]) -> RunSpec:
    """The specification of a recorded run; a run of an older release may lack newer settings."""
    return RunSpec(from_dict(values).resolved())


def command_words(settings: Settings, folder: Path) -> list[str]:
    """The words after `safeexplorer` that run these settings: the method, and every setting that is not the default."""
    words = ["train", settings.robot, "--method", settings.method]
    for f in fields(Settings):
        value, name = getattr(settings, f.name), option(f.name)
        if f.name in ("robot", "method") or value == f.default:
            continue
        if isinstance(value, bool):
            words.append(name if value else name.replace("--", "--no-"))
        else:
            words += [name, *map(str, value if isinstance(value, tuple) else [value])]
    return [*words, "--out", str(folder)]
