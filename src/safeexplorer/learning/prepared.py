"""The weighted learner behind everything that prepares its rollouts: normalised observations, scaled rewards, outcomes
that are waited for, and the hand-over from the recovery. Each part is there or not, as the method's row says."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from safeexplorer.acting.handover import Handover
from safeexplorer.acting.networks import Params
from safeexplorer.acting.plan import PERIOD
from safeexplorer.acting.policy import is_gaussian, propose, softened
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.learning.hyperparameters import Hyperparameters
from safeexplorer.learning.learners import as_row
from safeexplorer.learning.methods import SAFEEXPLORER, Method
from safeexplorer.learning.noise import make_noise_cost
from safeexplorer.learning.normalising import Normaliser, RewardScale
from safeexplorer.learning.update import LearnerState, init_learner, make_learn
from safeexplorer.learning.waiting import WaitingRows

IMITATION_WEIGHT = 1.0  # lambda while the recovery acts alone
IMITATION_RATE, IMITATION_DECAY = 1e-3, 0.95  # step size of Adam then, and what is left of it after a period
FINER = 4  # minibatches then for every one of the policy's updates, where they can be divided
# By which the pace of the policy's steps changes after an update, and the least it can be.
PACE, SLOWEST = 1.5, 0.05
LATE_ROWS = 64  # of a minibatch of the policy's, at most: steps whose outcome came after their rollout
ROOM = 8192  # steps that can wait, at least


class PreparedLearner:
    """Prepares a rollout, learns from it, and tells each part what the rollout showed."""

    columns = [*Handover.columns, "spread_low", "spread_high", "pace", "reward_scale", "waiting"]

    def __init__(
        self,
        method: Method,
        hyper: Hyperparameters,
        params: Params,
        handover: Handover | None,
        shape: tuple[int, int, int],
    ):
        robots, steps, action_size = shape
        self.method, self.hyper, self.handover = method, hyper, handover
        observation_size = len(params["actor"][0]["weight"])
        self.normaliser = Normaliser(observation_size) if method.normalise_observations else None
        self.scale = RewardScale(robots, hyper.gamma) if method.scale_rewards else None
        self.rows = None
        if method.wait_for_outcomes:
            room = max(2 * robots * steps, ROOM)
            self.rows = WaitingRows(room, observation_size, action_size)
            self.late = hyper.minibatches * min(robots * steps // hyper.minibatches, LATE_ROWS)
            self.late_while_imitating = robots * steps  # all that come in can go out
        begins_narrow = handover is not None and (handover.imitating or handover.plan.hold_spread)
        if begins_narrow and is_gaussian(params):
            params = params | {"log_std": handover.spread.initial_log_std.astype(np.float32)}
        self.learn, self.noise_cost = make_learn(method, hyper), make_noise_cost(method, hyper)
        finer = FINER if robots * steps // hyper.minibatches % FINER == 0 else 1
        changes = {"lambda_compat": IMITATION_WEIGHT, "minibatches": finer * hyper.minibatches}
        self.imitate = make_learn(imitation_of(method), replace(hyper, **changes))
        self.state, self.pace = init_learner(params, hyper), 1.0
        self._publish()

    def _publish(self) -> None:
        own = {} if self.normaliser is None else {"normaliser": self.normaliser.params}
        self.params = jax.device_get(self.state.params) | own

    # -- one update ----------------------------------------------------------------------------------------

    def update(self, rollout: Rollout, order: np.ndarray, learning_rate: float) -> dict[str, float | None]:
        """Learn from one rollout; a row of metrics, with `finite` among them."""
        imitating = self.handover is not None and self.handover.imitating
        seen, rollout, late = rollout, *self._prepare(rollout, imitating)
        spread = self._spread()
        learn, rate = self.learn, learning_rate
        if imitating:
            before = self.handover.update * seen.terminated.size
            left = max(IMITATION_DECAY ** (before / PERIOD), 0.1)
            learn, rate = self.imitate, IMITATION_RATE * left
        errors = squared_errors(self.params, seen, self.handover) if imitating else None
        acted_with = self.params.get("log_std")
        scales = np.float32(self.pace), self._imitation_share()
        cost = None if imitating or spread is None else float(self.noise_cost(self.state.params, rollout))
        self.state, metrics = learn(self.state, rollout, order, np.float32(rate), spread, late, *scales)
        if self.method.limit_updates and not imitating:
            self.pace = paced(self.pace, float(metrics["approx_kl"]), self.hyper.target_kl)
        if self.handover is not None and self.handover.observe(seen, errors, acted_with, cost):
            self._take_over(seen, imitating)
        elif self.normaliser is not None and not imitating:
            self._with(self.normaliser.add(seen, self.state.params))
        self._hold_spread()
        self._publish()
        return as_row(metrics) | self._report(spread)

    def _prepare(self, rollout: Rollout, imitating: bool) -> tuple[Rollout, Any]:
        """The rollout as the learner sees it, and the steps of earlier ones that are to be imitated now."""
        late = None
        if self.rows is not None:
            rollout = self.rows.hold_back(rollout)
            late = self.rows.release(self.late_while_imitating if imitating else self.late)
            if self.normaliser is not None:
                late = late._replace(observation=self.normaliser.of(late.observation))
        if self.scale is not None:
            self._with(self.scale.add(rollout, self.state.params))
            rollout = self.scale.apply(rollout)
        return (rollout if self.normaliser is None else self.normaliser.apply(rollout)), late

    def _imitation_share(self) -> np.float32:
        """(sigma / sigma_0)^2, so that imitation pulls on a narrow policy's mean as it does on the first one's: the
        gradient of log pi goes as 1 / sigma^2, that of the surrogate as 1 / sigma."""
        if self._spread() is None:
            return np.float32(1.0)
        narrower = np.mean(self.params["log_std"] - self.handover.spread.initial_log_std)
        return np.float32(min(np.exp(2.0 * narrower), 1.0))

    def _spread(self) -> tuple[np.ndarray, np.ndarray] | None:
        spread = self.handover.limits() if self.handover is not None and is_gaussian(self.params) else None
        return None if spread is None else tuple(limit.astype(np.float32) for limit in spread)

    def _hold_spread(self) -> None:
        """What a fall took back is not waited for: the next rollout is narrower already."""
        spread = self._spread()
        if spread is not None:
            self._with(self.state.params | {"log_std": jnp.clip(self.state.params["log_std"], *spread)})

    def _take_over(self, rollout: Rollout, imitated: bool) -> None:
        """The policy is the copy with the spread it starts with; the optimiser begins anew."""
        if not imitated:
            return
        params = jax.device_get(self.state.params)
        if not is_gaussian(params):
            rows = rollout.observation.reshape(-1, rollout.observation.shape[-1])
            rows = rows if self.normaliser is None else self.normaliser.of(rows)
            params = softened(params, rows, 1.0 - self.handover.plan.initial_spread)
        self.state = init_learner(params, self.hyper)

    def _with(self, params: Params) -> None:
        self.state = LearnerState(jax.tree.map(jnp.asarray, params), self.state.optimizer)

    def _report(self, spread: tuple[np.ndarray, np.ndarray] | None) -> dict[str, float | None]:
        row = dict.fromkeys(self.columns) | {"pace": self.pace}
        if self.handover is not None:
            row |= self.handover.report(self.hyper.gamma)
        if spread is not None:
            row |= {"spread_low": float(spread[0].mean()), "spread_high": float(spread[1].mean())}
        if self.scale is not None:
            row["reward_scale"] = self.scale.scale
        if self.rows is not None:
            row["waiting"] = self.rows.waiting
        return row

    def cut(self) -> None:
        """New episodes begin everywhere: what was under way ends without an outcome."""
        for part in (self.handover, self.scale, self.rows):
            if part is not None:
                part.cut()

    # -- resuming ------------------------------------------------------------------------------------------

    @property
    def _parts(self) -> dict[str, Any]:
        parts = {
            "handover": self.handover,
            "normaliser": self.normaliser,
            "scale": self.scale,
            "rows": self.rows,
        }
        return {name: part for name, part in parts.items() if part is not None}

    def get_state(self) -> Any:
        """Parameters, optimiser and the state of every part."""
        parts = {name: part.get_state() for name, part in self._parts.items()}
        return (*jax.device_get(self.state), parts | {"pace": np.array(self.pace)})

    def set_state(self, state: Any) -> None:
        """Go on from `get_state`."""
        params, optimizer, parts = state
        self.state = LearnerState(*jax.tree.map(jnp.asarray, (params, optimizer)))
        for name, part in self._parts.items():
            part.set_state(parts[name])
        self.pace = float(parts["pace"])
        self._publish()


def paced(pace: float, kl: float, target: float) -> float:
    """The pace after an update that moved the policy by `kl`, in KL divergence."""
    if kl > PACE * target:
        return max(pace / PACE, SLOWEST)
    return min(pace * PACE, 1.0) if kl < target / PACE else pace


def imitation_of(method: Method) -> Method:
    """The row that is learned with while the recovery acts alone: its actions, and the value of what it does."""
    kept = {name: getattr(method, name) for name in ("critic_heads", "sampled_recovery")}
    return replace(SAFEEXPLORER, recovery_reward="task", analytic_value=False, **kept)


def squared_errors(params: Params, rollout: Rollout, handover: Handover) -> np.ndarray:
    """How far the policy is from the recovery at every step, squared: in halves of the action range, or 1 where it
    would have chosen something else."""
    recovering = np.asarray(rollout.recovering)
    chosen, executed = propose(params, rollout.observation[recovering]), rollout.action[recovering]
    if not is_gaussian(params):
        return (chosen != executed).astype(np.float64)
    return (((chosen - executed) / handover.action_scale) ** 2).mean(-1)
