"""E copies of an environment with Brax's and MuJoCo Playground's interface: `reset(rng)` and `step(State, action)`.

The clock and the resets are kept here, so that the last observation of an episode is the real one; the environment is
given as it is, without wrappers that batch it or begin episodes anew. A row of observations is what the policy sees,
and behind it what only the critic sees, where `obs` is a dictionary with `state` and `privileged_state`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from safeexplorer.acting.policy import Sizes
from safeexplorer.adapters.ends import NOT

POLICY, CRITIC = "state", "privileged_state"  # keys of a dictionary of observations
WRAPPED = ("first_pipeline_state", "first_obs", "first_state")  # what wrappers that reset leave in `info`


class Robots(NamedTuple):
    """Where E robots are: all that the next rollout depends on."""

    state: Any  # the environment's own State, [E, ...]
    step: Any  # [E] steps since the episode began
    episode: Any  # [E] episodes before this one
    key: Any  # from which every start follows
    bank: Any  # start states [k, ...]; None: every episode begins with a reset


class Moved(NamedTuple):
    """What one step gave, [E, ...]; the observation is the one before any reset."""

    observation: Any
    distance: Any
    reward: Any
    terminated: Any
    truncated: Any
    reached: Any


def is_jax_environment(env: Any) -> bool:
    """Does it look like Brax's or Playground's?"""
    wanted = ("reset", "step", "action_size", "observation_size")
    return all(hasattr(env, name) for name in wanted) and not hasattr(env, "action_space")


class JaxEnvironments:
    """E copies behind one face; see the module's docstring.

    distance: a function of the policy's observations [E, n] -> [E], or a key of the State's `info` or `metrics`.
    fell: which terminations are falls, if not all: a function of (observations [E, n], info) -> [E], or a key, which
        may be negated, such as "not is_success".
    """

    def __init__(
        self,
        env: Any,
        num_envs: int,
        episode_length: int = 1000,
        start_states: int = 0,
        distance: Callable[[Any], Any] | str | None = None,
        fell: Callable[[Any, Any], Any] | str | None = None,
    ):
        self.env, self.num_envs, self.episode_length = env, num_envs, episode_length
        self.start_states, self._distance, self._fell = start_states, distance, fell
        self.action_size = int(env.action_size)
        self._spec = self._check_state()
        self.sizes = Sizes(self._width(POLICY), self.action_size, scale=(1.0,) * self.action_size)
        self.critic_size = self._width(CRITIC)
        rows = jax.ShapeDtypeStruct((num_envs, self.sizes.observation), jnp.float32)
        if callable(distance):
            check_traceable("distance", distance, (rows,), (num_envs,))
        elif distance is not None:
            self._named(distance, "distance", self._spec)
        if callable(fell):
            check_traceable("fell", fell, (rows, self._spec.info), (num_envs,))
        elif fell is not None:
            self._named(fell.removeprefix(NOT), "fell", self._spec)

    # -- what is asked of the environment --------------------------------------------------------------------

    def _check_state(self) -> Any:
        """The shapes of E States as `step` gives them; what does not fit is refused before any work."""
        keys = jax.ShapeDtypeStruct((self.num_envs, 2), jnp.uint32)
        actions = jax.ShapeDtypeStruct((self.num_envs, self.action_size), jnp.float32)
        begun = shapes_of("env.reset", jax.vmap(self.env.reset), keys)
        for name in ("obs", "reward", "done", "info"):
            if not hasattr(begun, name):
                raise ValueError(
                    f"env.reset gave {type(begun).__name__}; allowed: a State with obs, reward, done, info"
                )
        if any(name in begun.info for name in WRAPPED):
            raise ValueError(
                "env begins episodes anew by itself; allowed: the environment without such a wrapper"
            )
        stepped = shapes_of("env.step", jax.vmap(self.env.step), begun, actions)
        if jax.tree.structure(begun) != jax.tree.structure(stepped):
            raise ValueError("env.step gave a State of another structure than env.reset; allowed: the same")
        for name in ("reward", "done"):
            shape = getattr(stepped, name).shape
            if shape != (self.num_envs,):
                raise ValueError(
                    f"env.step gave {name} of shape {shape[1:]}; allowed: (), one number per robot"
                )
        return stepped

    def _width(self, key: str) -> int:
        """How many numbers the policy or the critic alone sees."""
        seen = self._spec.obs
        if not isinstance(seen, Mapping):
            seen = {POLICY: seen}
        if POLICY not in seen:
            raise ValueError(
                f"obs has the keys {', '.join(seen)}; allowed: {POLICY}, and {CRITIC} for the critic"
            )
        if key not in seen:
            return 0
        if len(seen[key].shape) != 2:
            raise ValueError(
                f"obs has shape {seen[key].shape[1:]}; allowed: (n,), one row of numbers per robot"
            )
        return seen[key].shape[1]

    def _named(self, key: str, what: str, state: Any) -> Any:
        """[E] what the State calls `key`, in its `info` or its `metrics`."""
        known = {**(getattr(state, "metrics", None) or {}), **state.info}
        if key not in known or getattr(known[key], "shape", None) != (self.num_envs,):
            each = sorted(k for k, x in known.items() if getattr(x, "shape", None) == (self.num_envs,))
            raise ValueError(
                f"{what} is {key!r}; allowed: a function, or one of {', '.join(each) or 'no keys'}"
            )
        return known[key]

    # -- looking ---------------------------------------------------------------------------------------------

    def rows(self, state: Any) -> Any:
        """[E, n + p] what the policy sees, then what the critic alone sees."""
        parts = [state.obs]
        if isinstance(state.obs, Mapping):
            parts = [state.obs[key] for key in (POLICY, CRITIC) if key in state.obs]
        return jnp.concatenate([part.astype(jnp.float32) for part in parts], axis=-1)

    def policy_rows(self, rows: Any) -> Any:
        """The policy's part of `rows`."""
        return rows[..., : self.sizes.observation]

    def distance(self, state: Any) -> Any:
        """[E] D(s), NaN where there is none."""
        if self._distance is None:
            return jnp.full(self.num_envs, jnp.nan)
        if callable(self._distance):
            return self._distance(self.policy_rows(self.rows(state))).astype(jnp.float32)
        return self._named(self._distance, "distance", state).astype(jnp.float32)

    def _fallen(self, state: Any) -> Any:
        """[E] would a termination here be a fall?"""
        if self._fell is None:
            return jnp.ones(self.num_envs, bool)
        if callable(self._fell):
            return self._fell(self.policy_rows(self.rows(state)), state.info).astype(bool)
        said = self._named(self._fell.removeprefix(NOT), "fell", state).astype(bool)
        return ~said if self._fell.startswith(NOT) else said

    # -- moving ----------------------------------------------------------------------------------------------

    def reset(self, seed: int) -> Robots:
        """New episodes everywhere, and the bank of start states where there is one."""
        return jax.jit(self._reset)(jax.random.PRNGKey(seed))

    def _reset(self, key: Any) -> Robots:
        begin, store = jax.random.split(key)
        bank = None
        if self.start_states:
            bank = self._as_stepped(jax.vmap(self.env.reset)(jax.random.split(store, self.start_states)))
        zeros = jnp.zeros(self.num_envs, jnp.int32)
        robots = Robots(None, zeros, zeros, begin, bank)
        return robots._replace(state=self._starts(robots))

    def _starts(self, robots: Robots) -> Any:
        """A first State for each robot's episode in hand, whoever asks and when."""
        numbered = jax.vmap(lambda e, k: jax.random.fold_in(jax.random.fold_in(robots.key, e), k))
        keys = numbered(jnp.arange(self.num_envs), robots.episode)
        if robots.bank is None:
            return self._as_stepped(jax.vmap(self.env.reset)(keys))
        drawn = jax.vmap(lambda key: jax.random.randint(key, (), 0, self.start_states))(keys)
        return jax.tree.map(lambda x: x[drawn], robots.bank)

    def _as_stepped(self, state: Any) -> Any:
        """In the types that `step` gives, so that a loop can carry it."""
        return jax.tree.map(lambda x, like: jnp.asarray(x).astype(like.dtype), state, self._spec)

    def step(self, robots: Robots, action: Any) -> tuple[Moved, Robots]:
        """One step everywhere; actions [E, m] are held within -1 and 1. Who ended begins anew."""
        after = self._as_stepped(jax.vmap(self.env.step)(robots.state, jnp.clip(action, -1.0, 1.0)))
        done, step = after.done > 0.5, robots.step + 1
        limit = after.info["truncation"] > 0.5 if "truncation" in after.info else jnp.zeros_like(done)
        terminated = done & ~limit
        truncated = ~terminated & (done | (step >= self.episode_length))
        moved = Moved(
            observation=self.rows(after),
            distance=self.distance(after),
            reward=after.reward.astype(jnp.float32),
            terminated=terminated,
            truncated=truncated,
            reached=terminated & ~self._fallen(after),
        )
        return moved, self._begin_again(robots._replace(state=after, step=step), terminated | truncated)

    def _begin_again(self, robots: Robots, ended: Any) -> Robots:
        """New episodes where `ended`; randomness in `info` runs on, as a stored start would repeat its own."""
        robots = robots._replace(step=jnp.where(ended, 0, robots.step), episode=robots.episode + ended)

        def begin(robots: Robots) -> Any:
            starts, now = self._starts(robots), robots.state
            if robots.bank is not None and "rng" in now.info:
                starts = starts.replace(info={**starts.info, "rng": now.info["rng"]})
            return jax.tree.map(lambda new, old: jnp.where(spread(ended, new), new, old), starts, now)

        return robots._replace(state=jax.lax.cond(ended.any(), begin, lambda robots: robots.state, robots))


def spread(mask: Any, like: Any) -> Any:
    """[E] -> [E, 1, ...], with as many axes as `like`."""
    return mask.reshape(-1, *(1,) * (like.ndim - 1))


# -- what others wrote, tried on shapes alone ----------------------------------------------------------------


def shapes_of(name: str, function: Callable, *shapes: Any) -> Any:
    """The shapes that a function gives, or one line on why it gives none."""
    try:
        return jax.eval_shape(function, *shapes)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
        raise ValueError(
            f"{name} cannot be compiled by JAX ({type(error).__name__}: {reason}); allowed: a function of jax.numpy"
        ) from error


def check_traceable(name: str, function: Callable, shapes: tuple, wanted: tuple[int, ...]) -> None:
    """One answer per robot, from a function that JAX can compile."""
    given = getattr(shapes_of(name, function, *shapes), "shape", None)
    if given != wanted:
        raise ValueError(f"{name} gave the shape {given} for {wanted[0]} robots; allowed: {wanted}")
