# ruff: noqa: E501
"""Mutations of the code that trains, each caught or missed by `safeexplorer verify` (its part on training).

    python tests/support/mutants.py            every mutation; exit code 1 if less than 95% are caught
    python tests/support/mutants.py 0 6        only these, by number

Each is one text substitution in a copy of `src`. A mutation is caught if a check fails or the code does not run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"
SHARE = 0.95
CHECK = """
from safeexplorer.theory.training import training_checks
from safeexplorer.theory.update import update_checks
raise SystemExit(not all(check.passed for check in [*training_checks(), *update_checks()]))
"""
LABELLING, LOSS, SEGMENTS = "learning/labelling.py", "learning/loss.py", "learning/segments.py"
METHODS, WHO, COLLECTOR = "learning/methods.py", "acting/interventions.py", "acting/collector.py"
UPDATE = "learning/update.py"
SCHEDULES, MIXED, NETWORKS = "acting/schedules.py", "acting/mixed.py", "learning/networks.py"
MUTANTS = [  # what is wrong, file, text, instead of it
    ("recovery reward not zeroed", LABELLING, "rollout.recovering & ~rollout.terminated, 0.0,", "rollout.recovering & ~rollout.terminated, rollout.task_reward,"),
    ("r_term zeroed", LABELLING, "rollout.recovering & ~rollout.terminated, 0.0", "rollout.recovering, 0.0"),
    ("bootstrap through falls", LABELLING, "jnp.where(rollout.terminated, 0.0, next_value)", "next_value"),
    ("trace not cut at time limits", LABELLING, "jnp.where(ended, 0.0, gamma * gae_lambda)", "jnp.where(rollout.terminated, 0.0, gamma * gae_lambda)"),
    ("advantages on the un-overwritten value", LABELLING, "learning_reward(rollout, method), value, appraisal", "learning_reward(rollout, method), appraisal.value, appraisal"),
    ("targets on the un-overwritten value", LABELLING, "value_target=advantage + value", "value_target=advantage + appraisal.value"),
    ("analytic value at every recovery step", LABELLING, "jnp.where(segments.start, gamma**exponent", "jnp.where(segments.length > 0, gamma**exponent"),
    ("soft gate of the wrong sign", LABELLING, "gamma**exponent * segments.end_value - value", "value - gamma**exponent * segments.end_value"),
    ("value mask", LABELLING, 'every if method.value_steps == "all" else main', "every"),
    ("max for min in the clip", LOSS, "jnp.minimum(ratio * advantage, clipped * advantage)", "jnp.maximum(ratio * advantage, clipped * advantage)"),
    ("no soft centring", LOSS, "batch.gate - batch.gate_centred * mean", "batch.gate"),
    ("no importance cap", LOSS, "jnp.minimum(log_pi - batch.log_mu, batch.log_cap)", "log_pi - batch.log_mu"),
    ("no stop-gradient", LOSS, "jax.lax.stop_gradient(jnp.exp(log_weight))", "jnp.exp(log_weight)"),
    ("critic without its 0.5", LOSS, "critic = 0.5 * weighted", "critic = weighted"),
    ("safe region inverted", WHO, "return ~(distance <= radius)", "return distance <= radius"),
    ("safe region strict", WHO, "~(distance <= radius)", "~(distance < radius)"),
    ("jump start inverted", WHO, "situation.step < known(", "situation.step >= known("),
    ("the recovery is never executed", COLLECTOR, "self._sent(params, acted.action,", "self._sent(params, rollout.proposed[t],"),
    ("curriculum off by one", "runs/settings.py", "return (update - 1) / self.updates", "return update / self.updates"),
    ("gate of SafeExplorer always on", METHODS, 'imitation of recoveries that succeeded", gate="hard"', 'imitation of recoveries that succeeded", gate="always"'),
    ("policy on every step", LABELLING, 'every if method.policy_steps == "all" else main', "every"),
    ("relabelling swapped", LABELLING, 'rollout.proposed if method.stored_action == "proposed" else rollout.action', 'rollout.action if method.stored_action == "proposed" else rollout.proposed'),
    ("penalty added", LABELLING, "rollout.task_reward - rollout.recovering", "rollout.task_reward + rollout.recovering"),
    ("failure discounted once more", LABELLING, "exponent = segments.length - segments.terminal", "exponent = segments.length"),
    ("success discounted once less", LABELLING, "exponent = segments.length - segments.terminal", "exponent = segments.length - 1"),
    ("time limit treated as a fall", LABELLING, "delta = reward + gamma * jnp.where(rollout.terminated,", "delta = reward + gamma * jnp.where(ended,"),
    ("no bootstrap from the final observation", LABELLING, "jnp.where(ended, appraisal.next_value, following)", "following"),
    ("hard gate inverted", LABELLING, "return segments.succeeded.astype", "return (~segments.succeeded).astype"),
    ("hard gate on everything", LABELLING, "return segments.succeeded.astype(value.dtype)", "return jnp.ones_like(value)"),
    ("soft gate by the whole length", LABELLING, "segments.remaining - segments.terminal", "segments.length - segments.terminal"),
    ("importance on the policy's steps", LABELLING, "(rollout.recovering & (method.importance_cap", "(~rollout.recovering & (method.importance_cap"),
    ("advantages not normalised", LOSS, "return centred / (jnp.sqrt(variance) + 1e-8)", "return advantage"),
    ("advantages not centred", LOSS, "centred = advantage - weighted_mean(advantage, weight)", "centred = advantage"),
    ("population variance", LOSS, "jnp.maximum(weight.sum() - 1.0, 1.0)", "jnp.maximum(weight.sum(), 1.0)"),
    ("ratio upside down", LOSS, "log_pi - batch.log_prob, 0.0)", "batch.log_prob - log_pi, 0.0)"),
    ("clip range one-sided", LOSS, "1.0 - hyper.clip, 1.0 + hyper.clip)", "0.0, 1.0 + hyper.clip)"),
    ("policy loss of the wrong sign", LOSS, "policy = -surrogate.sum()", "policy = surrogate.sum()"),
    ("imitation of the wrong sign", LOSS, "compat = -imitated", "compat = imitated"),
    ("entropy of the wrong sign", LOSS, "entropy=-hyper.entropy_coefficient", "entropy=hyper.entropy_coefficient"),
    ("no weight of the value loss", LOSS, "value=hyper.value_coefficient * critic", "value=critic"),
    ("no weight of the imitation", LOSS, "compat=hyper.lambda_compat * imitation_share * compat", "compat=compat"),
    ("a fall succeeds", SEGMENTS, "jnp.where(last, ~fell, succeeded)", "jnp.where(last, True, succeeded)"),
    ("segments run across episodes", SEGMENTS, "(recovering[1:] & ~ended[:-1])", "recovering[1:]"),
    ("no new segment after an episode's end", SEGMENTS, "(recovering & ~ended)[:-1]", "recovering[:-1]"),
    ("a fall's value is the critic's", SEGMENTS, "jnp.where(terminated, rollout.task_reward, next_value)", "next_value"),
    ("one step too long", SEGMENTS, "jnp.where(last, 1, remaining + 1)", "jnp.where(last, 2, remaining + 1)"),
    ("NaN is inside", WHO, "~(distance <= radius)", "distance > radius"),
    ("shield inverted", WHO, "np.asarray(self.engages(situation.observation), bool)", "~np.asarray(self.engages(situation.observation), bool)"),
    ("executed action not stored", COLLECTOR, "rollout.recovering[t], rollout.action[t], rollout.recovery_log_density[t] = acted", "rollout.recovering[t], _, rollout.recovery_log_density[t] = acted; rollout.action[t] = rollout.proposed[t]"),
    ("final observation lost", COLLECTOR, "rollout.next_observation[t, robots] = final", "rollout.next_observation[t, robots] = self.observation[robots]"),
    ("a late fall is a time limit", COLLECTOR, "rollout.truncated[t] &= ~rollout.terminated[t]", "rollout.terminated[t] &= ~rollout.truncated[t]"),
    ("next side of the boundary inverted", COLLECTOR, "rollout.next_outside[t, robots] = self.mixed", "rollout.next_outside[t, robots] = ~self.mixed"),
    ("the recovery acts inside", MIXED, "recovering.nonzero()[0]", "(~recovering).nonzero()[0]"),
    ("linear curriculum ends at d_max", SCHEDULES, "return lambda progress: initial + progress * maximum", "return lambda progress: initial + progress * (maximum - initial)"),
    ("log curriculum in natural logarithms", SCHEDULES, "maximum * math.log10(", "maximum * math.log("),
    ("five jumps", SCHEDULES, "math.floor(5.0 * progress) / 4.0", "math.floor(5.0 * progress) / 5.0"),
    ("no annealing", "runs/training.py", "1.0 - progress if self.settings.anneal", "1.0 if self.settings.anneal"),
    ("masked learns values everywhere", METHODS, '{"policy_steps": "main", "value_steps": "main"}', '{"policy_steps": "main"}'),
    ("analytic without analytic values", METHODS, '"analytic_value": True, ', ""),
    ("Recovery RL keeps the executed action", METHODS, "as if the policy's own proposal had acted\", stored_action=\"proposed\"", "as if the policy's own proposal had acted\", stored_action=\"executed\""),
    ("value added in the error", LABELLING, "next_value) - value", "next_value) + value"),
    ("trace without gamma", LABELLING, "jnp.where(ended, 0.0, gamma * gae_lambda)", "jnp.where(ended, 0.0, gae_lambda)"),
    ("reward discounted", LABELLING, "delta = reward + gamma *", "delta = gamma * reward + gamma *"),
    ("next value not discounted", LABELLING, "delta = reward + gamma * jnp.where", "delta = reward + jnp.where"),
    ("the last step follows itself", LABELLING, "jnp.concatenate([value[1:], appraisal.next_value[-1:]])", "jnp.concatenate([value[1:], value[-1:]])"),
    ("trace runs forwards", LABELLING, "reverse=True)[1]", "reverse=False)[1]"),
    ("DAgger imitates nothing", LABELLING, "return jnp.ones_like(value)", "return jnp.zeros_like(value)"),
    ("soft gate on the overwritten value", LABELLING, "gate=gate(method, segments, appraisal.value, gamma)", "gate=gate(method, segments, value, gamma)"),
    ("importance by the policy's own density", LABELLING, "log_mu=rollout.recovery_log_density", "log_mu=appraisal.log_prob"),
    ("importance cap as its own logarithm", LABELLING, "math.log(method.importance_cap or 1.0)", "(method.importance_cap or 1.0)"),
    ("policy loss over all rows", LOSS, "policy = -surrogate.sum() / jnp.where(count > 0, count, 1.0)", "policy = -surrogate.mean()"),
    ("imitation over what succeeded alone", LOSS, "norm, imitated = batch.imitation_norm.sum(),", "norm, imitated = (imitation != 0).sum(),"),
    ("value error not squared", LOSS, "weighted_mean(error**2,", "weighted_mean(jnp.abs(error),"),
    ("advantages normalised over every step", LOSS, "normalised(batch.advantage, policy_steps)", "normalised(batch.advantage, jnp.ones_like(policy_steps))"),
    ("importance term subtracted", LOSS, "surrogate += importance_term", "surrogate -= importance_term"),
    ("density without its normaliser", NETWORKS, "- log_std.sum(-1) - 0.5 * LOG_2PI", "- 0.5 * LOG_2PI"),
    ("every step is a segment's end", SEGMENTS, "jnp.where(last, end_value_here, end_value)", "end_value_here"),
    ("a time limit is terminal", SEGMENTS, "jnp.where(last, terminated, terminal)", "jnp.where(last, True, terminal)"),
    ("the distance stays that of the reset", COLLECTOR, 'self.distance, rollout.reached[t] = info["distance"],', "rollout.reached[t] ="),
    ("the last step sees itself next", COLLECTOR, "rollout.observation, self.observation, goes_on", "rollout.observation, rollout.observation[-1], goes_on"),
    ("the next value is that of the same state", UPDATE, "rollout.next_observation, rollout.next_outside", "rollout.observation, rollout.next_outside"),
    ("the next value's head is that of this side", UPDATE, "rollout.next_observation, rollout.next_outside", "rollout.next_observation, rollout.recovering"),
    ("the inner head everywhere", UPDATE, "rollout.observation, rollout.recovering)", "rollout.observation, rollout.next_outside)"),
    ("the density of the proposal", UPDATE, "log_prob(params, rollout.observation, action)", "log_prob(params, rollout.observation, rollout.proposed)"),
    ("one head for both sides", METHODS, "critic_heads=2", "critic_heads=1"),
    ("DAgger imitates successes alone", METHODS, 'imitation of every recovery", gate="always"', 'imitation of every recovery", gate="hard"'),
    ("a hundred for the cap", METHODS, '"importance_cap": 10.0', '"importance_cap": 100.0'),
    ("interpolation beyond d_max", SCHEDULES, "progress * (maximum - initial)", "progress * maximum"),
]  # fmt: skip


def fails(mutant: tuple[str, str, str, str] | None) -> bool:
    """Does a check fail on a copy with this mutation? None: on the code as it is."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SOURCE, Path(folder) / "src", ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            what, file, text, instead = mutant
            path = Path(folder) / "src" / "safeexplorer" / file
            code = path.read_text(encoding="utf-8")
            if code.count(text) != 1:
                raise ValueError(f"{what}: {text!r} occurs {code.count(text)} times in {file}")
            path.write_text(code.replace(text, instead), encoding="utf-8")
        cache = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        cache["JAX_COMPILATION_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / "safeexplorer-mutants")
        environment = os.environ | cache | {"PYTHONPATH": f"{folder}/src", "JAX_PLATFORMS": "cpu"}
        done = subprocess.run([sys.executable, "-c", CHECK], env=environment, capture_output=True)
        return done.returncode != 0


def main() -> int:
    numbers = [int(word) for word in sys.argv[1:]] or range(len(MUTANTS))
    if fails(None):
        sys.exit("the checks fail on the code as it is: nothing can be said of mutations")
    count = 0
    for number in numbers:
        found = fails(MUTANTS[number])
        count += found
        print(f"{'caught' if found else 'MISSED'}  {number:2}  {MUTANTS[number][0]}", flush=True)
    print(f"{count} of {len(numbers)} caught")
    return int(count < SHARE * len(numbers))


if __name__ == "__main__":
    sys.exit(main())
