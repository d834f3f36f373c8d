"""The traced rollout: field by field what the numpy collector gives, and the real last observation of an episode."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_toys import GymnasiumFace, JaxDrift, far, pull_back, too_weak

from safeexplorer import SafeRegion
from safeexplorer.accelerated.environments import JaxEnvironments
from safeexplorer.accelerated.rollout import Crew, collect
from safeexplorer.acting import collector as host
from safeexplorer.acting.interventions import NoIntervention
from safeexplorer.acting.trajectory import Rollout
from safeexplorer.adapters.environments import Environments
from safeexplorer.learning.networks import init_actor_critic
from safeexplorer.recovery import as_recovery, interface_between

E, T, LIMIT, RADIUS = 5, 40, 9, 0.4
PARAMS = init_actor_critic(np.random.default_rng(0), 2, 1, (4,))
NOISE = np.random.default_rng(1).standard_normal((2, T, E, 1), np.float32)


def crew(recovery=too_weak, region=True, env=None, **changes) -> Crew:
    envs = JaxEnvironments(env or JaxDrift(), E, LIMIT, distance=far if region else None, **changes)
    return Crew(envs, SafeRegion(RADIUS, far) if region else NoIntervention(), recovery if region else None)


def rollouts(crew: Crew, count: int = 2, seed: int = 3) -> list[Rollout]:
    go = jax.jit(lambda robots, noise: collect(crew, PARAMS, robots, noise, RADIUS))
    robots, found = crew.envs.reset(seed), []
    for noise in NOISE[:count]:
        robots, rollout = go(robots, noise)
        found.append(jax.device_get(rollout))
    return found


@pytest.fixture(scope="module")
def traced() -> list[Rollout]:
    return rollouts(crew())


def test_every_field_equals_the_numpy_collectors(traced, monkeypatch):
    """Two rollouts in a row, with falls, time limits and cut segments, on the same environment and the same noise."""
    env = Environments(GymnasiumFace(JaxDrift(), E, LIMIT), far)
    interface = interface_between("the toy", env.single_observation_space, env.single_action_space)
    recovery = as_recovery(lambda rows: np.asarray(too_weak(rows)), interface)
    collector = host.Collector(env, recovery, SafeRegion(RADIUS, far), T)
    collector.reset(3)
    for ours, noise in zip(traced, NOISE, strict=True):
        monkeypatch.setattr(host, "draw_noise", lambda *_, noise=noise: noise)
        theirs = collector.collect(PARAMS, 0.0, np.random.default_rng(0))
        for name in Rollout._fields:
            mine, his = getattr(ours, name), getattr(theirs, name)
            np.testing.assert_allclose(mine, his, atol=1e-6, rtol=0, err_msg=name)
    both = [
        np.concatenate([getattr(r, name) for r in traced])
        for name in ("terminated", "truncated", "recovering")
    ]
    assert all(mask.any() and not mask.all() for mask in both)  # there is something to compare


def test_the_last_observation_at_a_time_limit_is_the_real_one(traced):
    """x' = 1.2 x + 0.2 a: what the step gave, and not where the next episode begins."""
    for rollout in traced:
        t, e = np.nonzero(rollout.truncated)
        x, action = rollout.observation[t, e, 0], np.clip(rollout.action[t, e, 0], -1, 1)
        np.testing.assert_allclose(rollout.next_observation[t, e, 0], 1.2 * x + 0.2 * action, atol=1e-6)
        later = t + 1 < T
        assert (
            (rollout.observation[(t + 1)[later], e[later]] != rollout.next_observation[t, e][later])
            .any(1)
            .all()
        )


def test_a_fall_on_the_last_allowed_step_is_a_fall(traced):
    assert not any((rollout.terminated & rollout.truncated).any() for rollout in traced)


def test_a_bank_of_start_states_is_all_that_episodes_begin_with():
    made = crew(start_states=3)
    robots = made.envs.reset(0)
    bank = np.asarray(robots.bank.x)
    begun = [np.asarray(robots.state.x)]
    for rollout in rollouts(made, seed=0):
        t, e = np.nonzero(rollout.terminated | rollout.truncated)
        inside = t + 1 < T
        begun.append(rollout.observation[(t + 1)[inside], e[inside], 0])
    assert len(bank) == 3 and set(np.concatenate(begun).tolist()) == set(bank.tolist())


def test_a_goal_is_no_fall():
    rollout = rollouts(crew(env=JaxDrift(goal=0.35), fell="not is_success"), 1)[0]
    right = rollout.next_observation[..., 0] > 0
    assert (rollout.reached == (rollout.terminated & (rollout.next_observation[..., 0] < 1) & right)).all()
    assert rollout.reached.any() and rollout.fell.any()


def test_the_critics_own_observations_follow_the_policys():
    """Rows of 2 + 3 numbers: x and x^2, then both again with the start of the episode."""
    rollout = rollouts(crew(env=JaxDrift(privileged=True)), 1)[0]
    assert rollout.observation.shape == (T, E, 5)
    np.testing.assert_array_equal(rollout.observation[..., :2], rollout.observation[..., 2:4])
    first = crew(env=JaxDrift(privileged=True)).envs.reset(3).state.info["start"]
    np.testing.assert_array_equal(rollout.observation[0, :, 4], first)


def test_a_distance_may_be_a_metric_of_the_state():
    plain = rollouts(crew(), 1)[0]
    named = Crew(JaxEnvironments(JaxDrift(), E, LIMIT, distance="gap"), SafeRegion(RADIUS), too_weak)
    np.testing.assert_allclose(rollouts(named, 1)[0].distance, plain.distance, atol=1e-6)


class Odd(JaxDrift):
    def __init__(self, **wrong):
        super().__init__()
        self.wrong = wrong

    def step(self, state, action):
        return super().step(state, action).replace(**self.wrong)


REFUSED = [
    (Odd(reward=jnp.zeros(2)), {}, "env.step gave reward of shape (2,)"),
    (Odd(info={}), {}, "another structure"),
    (JaxDrift(), {"distance": "height"}, "distance is 'height'; allowed: a function, or one of gap"),
    (JaxDrift(), {"distance": lambda rows: rows}, "distance gave the shape (5, 2) for 5 robots"),
    (
        JaxDrift(),
        {"distance": lambda rows: np.abs(rows)[:, 0] if np.any(rows) else 0},
        "distance cannot be compiled",
    ),
    (JaxDrift(), {"fell": "not crashed"}, "fell is 'crashed'"),
    (JaxDrift(), {"fell": lambda rows, info: rows[0]}, "fell gave the shape (2,) for 5 robots"),
]


@pytest.mark.parametrize(("env", "arguments", "message"), REFUSED, ids=[m[:30] for *_, m in REFUSED])
def test_what_does_not_fit_is_refused_in_one_line(env, arguments, message):
    with pytest.raises(ValueError) as caught:
        JaxEnvironments(env, E, LIMIT, **arguments)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_an_environment_that_resets_itself_is_refused():
    env = JaxDrift()
    reset = env.reset
    env.reset = lambda rng: (s := reset(rng)).replace(info={**s.info, "first_obs": s.obs})
    with pytest.raises(ValueError, match="begins episodes anew by itself"):
        JaxEnvironments(env, E)


def test_pull_back_keeps_everyone_up():
    assert not rollouts(crew(pull_back), 1)[0].terminated.any()
