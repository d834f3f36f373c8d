"""What the correction costs: environment steps per second with the method, as plain PPO, and of Brax's own PPO.

    python oracles/jax/speed.py --task go1 --out speed.json

All on one environment, in one run, with equal sizes of robots, rollouts, networks, epochs and minibatches. The method
and PPO take turns, so that a machine that slows down slows both; Brax's trainer follows in a process of its own.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # so that the peak is what was used

import jax
import numpy as np
from tasks import TASKS, Task

from safeexplorer import SafeRegion
from safeexplorer.accelerated.environments import JaxEnvironments, Robots
from safeexplorer.accelerated.fleet import Fleet
from safeexplorer.accelerated.learner import DeviceLearner
from safeexplorer.accelerated.rollout import Crew
from safeexplorer.acting.interventions import NoIntervention
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.methods import PPO, SAFEEXPLORER
from safeexplorer.learning.networks import init_actor_critic

EPISODE = 1000


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=TASKS, default="go1")
    parser.add_argument("--envs", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=24, help="per robot and update")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--minibatches", type=int, default=32)
    parser.add_argument("--hidden", type=int, nargs="+", default=[512, 256, 128])
    parser.add_argument("--radius", type=float, help="of the region; the task's own if not given")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=5, help="per round")
    parser.add_argument("--without-brax", action="store_true")
    parser.add_argument("--brax-only", action="store_true", help="its PPO alone, which compiles for minutes")
    parser.add_argument("--out", type=Path, default=Path("speed.json"))
    return parser.parse_args()


def say(*words: Any) -> None:
    print(f"{time.perf_counter() - BEGAN:6.1f} s ", *words, flush=True)


BEGAN = time.perf_counter()


def peak() -> int | None:
    """Bytes of the device in use at most so far."""
    return (jax.local_devices()[0].memory_stats() or {}).get("peak_bytes_in_use")


# -- ours ----------------------------------------------------------------------------------------------------


class Trial:
    """One method on the task, compiled."""

    def __init__(
        self, name: str, task: Task, envs: JaxEnvironments, robots: Robots, args: argparse.Namespace
    ):
        row = SAFEEXPLORER if name == "safeexplorer" else PPO
        method = replace(row, normalise_observations=True, wait_for_outcomes=row is SAFEEXPLORER)
        hyper = Hyperparameters(epochs=args.epochs, minibatches=args.minibatches, max_gradient_norm=1.0)
        region = SafeRegion(args.radius or task.radius, task.distance)
        crew = Crew(envs, region, task.recovery) if method.intervenes else Crew(envs, NoIntervention(), None)
        sizes = (envs.sizes.observation, envs.action_size, tuple(args.hidden))
        params = init_actor_critic(
            np.random.default_rng(0), *sizes, activation="swish", critic_size=envs.critic_size
        )
        self.fleet = Fleet(crew, args.steps, hyper)
        self.learner = DeviceLearner(method, hyper, params, args.envs * args.steps, envs.action_size)
        self.rates: list[float] = []
        self.rows: list[dict] = []
        self.fleet.begin(robots, 0)
        began = time.perf_counter()
        update = jax.jit(self.fleet.make_update(self.learner.step), donate_argnums=(0, 1))
        told = self.fleet.told(1, 0.0, 3e-4)
        self.fleet._compiled = update.lower(self.fleet.robots, self.learner.carried, told).compile()
        self.compile_seconds = time.perf_counter() - began
        say(name, f"compiled in {self.compile_seconds:.0f} s")

    def go(self, updates: int, measured: bool = True) -> None:
        began, count = time.perf_counter(), 0
        for _ in range(updates):
            counted, row = self.fleet.update(self.learner, len(self.rows) + 1, 0.0, 3e-4)
            row["falls"] = int((counted["terminated"] & ~counted["reached"]).sum())
            row["reward"] = float(counted["task_reward"].mean())
            self.rows.append(row)
            count += counted["terminated"].size
        if measured:
            self.rates.append(count / (time.perf_counter() - began))

    def report(self) -> dict[str, Any]:
        memory = self.fleet._compiled.memory_analysis()
        names = (
            "argument_size_in_bytes",
            "output_size_in_bytes",
            "temp_size_in_bytes",
            "alias_size_in_bytes",
        )
        sizes = {name: int(getattr(memory, name, 0)) for name in names}
        needed = sum(sizes[n] for n in names[:3]) - sizes[names[3]]
        kept = ("recovery_rate", "segment_success", "waiting", "reward", "falls", "approx_kl", "value_loss")
        return {
            "steps_per_second": statistics.median(self.rates),
            "rounds": self.rates,
            "compile_seconds": self.compile_seconds,
            "program_bytes": needed,
            "first": {k: self.rows[0].get(k) for k in kept},
            "last": {k: self.rows[-1].get(k) for k in kept},
        }


def ours(args: argparse.Namespace) -> dict[str, Any]:
    """Both methods by turns."""
    task = TASKS[args.task]()
    say(args.task, "loaded")
    envs = JaxEnvironments(task.env, args.envs, EPISODE, args.envs, task.distance)
    robots = envs.reset(0)
    say("a bank of", args.envs, "start states is made")
    trials, found = {}, {}
    for name in ("ppo", "safeexplorer"):
        trials[name] = Trial(name, task, envs, jax.tree.map(jax.numpy.copy, robots), args)
        trials[name].go(1, measured=False)
        found[name] = {"peak_bytes_so_far": peak()}
    for number in range(args.rounds):
        turn = list(trials.items())[:: 1 if number % 2 else -1]
        for name, trial in turn:
            trial.go(args.updates)
            say(f"round {number + 1}: {name} {trial.rates[-1]:,.0f} steps/s")
    return {name: found[name] | trial.report() for name, trial in trials.items()}


# -- Brax's ---------------------------------------------------------------------------------------------------


COMPILED = 2  # its first two rounds compile


def replicated(tree: Any, devices: list) -> Any:
    """`jax.device_put_replicated`, which newer releases of JAX no longer have and Brax 0.14 still calls."""
    return jax.tree.map(lambda x: jax.numpy.stack([x] * len(devices)), tree)


def theirs(args: argparse.Namespace) -> dict[str, Any]:
    """Brax's own PPO on the same task and sizes."""
    from brax.training.agents.ppo import networks, train

    if not hasattr(jax, "device_put_replicated"):
        jax.device_put_replicated = replicated
    task, rates = TASKS[args.task](), []
    say("brax:", args.task, "loaded")

    def progress(step: int, metrics: dict[str, Any]) -> None:
        rates.append(float(metrics["training/sps"]))
        say(f"brax: {rates[-1]:,.0f} steps/s" + (" (with compilation)" if len(rates) <= COMPILED else ""))

    policy_key, value_key = task.obs_keys
    make = functools.partial(
        networks.make_ppo_networks,
        policy_hidden_layer_sizes=tuple(args.hidden),
        value_hidden_layer_sizes=tuple(args.hidden),
        policy_obs_key=policy_key,
        value_obs_key=value_key,
    )
    epochs = args.rounds + COMPILED
    train.train(
        environment=task.env,
        wrap_env_fn=task.wrap,
        num_timesteps=args.envs * args.steps * args.updates * epochs,
        num_evals=epochs + 1,
        run_evals=False,
        num_eval_envs=16,
        progress_fn=progress,
        num_envs=args.envs,
        episode_length=EPISODE,
        unroll_length=args.steps,
        batch_size=args.envs // args.minibatches,
        num_minibatches=args.minibatches,
        num_updates_per_batch=args.epochs,
        normalize_observations=True,
        learning_rate=3e-4,
        discounting=0.99,
        max_grad_norm=1.0,
        network_factory=make,
        seed=0,
    )
    return {
        "steps_per_second": statistics.median(rates[COMPILED:]),
        "rounds": rates[COMPILED:],
        "peak_bytes": peak(),
    }


def brax_in_a_process_of_its_own(args: argparse.Namespace) -> dict[str, Any]:
    out = args.out.with_suffix(".brax.json")
    command = [sys.executable, __file__, *sys.argv[1:], "--brax-only", "--out", str(out)]
    if subprocess.run(command).returncode:
        return {"failed": True}
    found = json.loads(out.read_text())
    out.unlink()
    return found


# -- all ------------------------------------------------------------------------------------------------------


def main() -> None:
    args = options()
    if args.brax_only:
        args.out.write_text(json.dumps(theirs(args)))
        return
    device = jax.devices()[0]
    sizes = {k: v for k, v in vars(args).items() if k not in ("out", "brax_only", "without_brax")}
    result = {"device": f"{device.platform} {device.device_kind}", "jax": jax.__version__, **sizes}
    say(result)
    result |= ours(args)
    rate = result["safeexplorer"]["steps_per_second"]
    result["of_ppo"] = rate / result["ppo"]["steps_per_second"]
    args.out.write_text(json.dumps(result, indent=1))
    if not args.without_brax:
        result["brax"] = brax_in_a_process_of_its_own(args)
        if "steps_per_second" in result["brax"]:
            result["of_brax"] = rate / result["brax"]["steps_per_second"]
            result["ppo_of_brax"] = result["ppo"]["steps_per_second"] / result["brax"]["steps_per_second"]
    result["seconds"] = time.perf_counter() - BEGAN
    args.out.write_text(json.dumps(result, indent=1))
    say(json.dumps(result))


if __name__ == "__main__":
    main()
