"""Small exact decision processes: float64 numpy, values and visitations by linear solves.

Conventions: S states, A actions, theta [S, A] the logits of a tabular softmax policy. A terminal state is
absorbing and pays nothing (the paper's infinite-horizon convention with absorption at failure).
"""

from dataclasses import dataclass, replace

import numpy as np

from safeexplorer.acting.interventions import Intervention, Situation


@dataclass(frozen=True)
class MDP:
    """(S, A, P, r, gamma) with a start distribution, a distance D(s) and terminal states."""

    transition: np.ndarray  # [S, A, S] P(s' | s, a)
    reward: np.ndarray  # [S, A, S] r(s, a, s')
    start: np.ndarray  # [S] p(s_1)
    gamma: float
    distance: np.ndarray  # [S] D(s), for safe regions
    terminal: np.ndarray  # [S] bool

    @property
    def states(self) -> int:
        """S."""
        return len(self.start)

    @property
    def actions(self) -> int:
        """A."""
        return self.transition.shape[1]

    @property
    def r_max(self) -> float:
        """The reward bound: max |r| over transitions that can happen."""
        return float(np.abs(self.reward[self.transition > 0]).max())


def softmax(theta: np.ndarray) -> np.ndarray:
    """pi_theta(a | s) [S, A]."""
    weight = np.exp(theta - theta.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True)


def outside_region(mdp: MDP, radius: float) -> np.ndarray:
    """[S] bool, s not in R(d)."""
    return ~(mdp.distance <= radius)


def mixed_policy(main: np.ndarray, recovery: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """Equation (partition-policy): the main policy inside M, the recovery outside."""
    return np.where(outside[:, None], recovery, main)


def value(mdp: MDP, policy: np.ndarray) -> np.ndarray:
    """V(s) of a stationary policy: (I - gamma P_pi) V = r_pi."""
    step = np.einsum("sa,sap->sp", policy, mdp.transition)
    reward = np.einsum("sa,sap,sap->s", policy, mdp.transition, mdp.reward)
    return np.linalg.solve(np.eye(mdp.states) - mdp.gamma * step, reward)


def action_value(mdp: MDP, values: np.ndarray) -> np.ndarray:
    """Q(s, a) = E[r + gamma V(s')]."""
    return np.einsum("sap,sap->sa", mdp.transition, mdp.reward + mdp.gamma * values)


def visitation(mdp: MDP, policy: np.ndarray) -> np.ndarray:
    """The normalised discounted visitation d(s) = (1 - gamma) sum_t gamma^t Pr[s_t = s]."""
    step = np.einsum("sa,sap->sp", policy, mdp.transition)
    return (1 - mdp.gamma) * np.linalg.solve(np.eye(mdp.states) - mdp.gamma * step.T, mdp.start)


def expected_return(mdp: MDP, policy: np.ndarray) -> float:
    """J = sum_s p(s_1 = s) V(s)."""
    return float(mdp.start @ value(mdp, policy))


def training_reward(mdp: MDP, outside: np.ndarray, r_term: float) -> MDP:
    """Proposition 6's convention: outside R nothing is earned, and a fall from there pays r_term."""
    reward = np.where(outside[:, None, None], np.where(mdp.terminal, r_term, 0.0), mdp.reward)
    reward[mdp.terminal] = 0.0
    return replace(mdp, reward=reward)


def recovering_table(mdp: MDP, intervention: Intervention, horizon: int) -> np.ndarray:
    """[T, S, A] bool: who acts, asked of a real intervention at every time and state.

    A state's observation is its number. The last axis is the proposed action, on which no intervention
    depends; only the counterexample of an action-triggered shield does.
    """
    observation, time = np.arange(mdp.states, dtype=float)[:, None], np.ones(mdp.states, np.int64)
    situations = [Situation(observation, mdp.distance, t * time) for t in range(horizon)]
    rows = np.array([intervention.takes_over(situation, 0.0) for situation in situations])
    return np.repeat(rows[:, :, None], mdp.actions, axis=2)


def leaning_robot(gamma: float = 0.9) -> MDP:
    """A robot in five states: upright, leaning, tilted, toppling, fallen; it can stand, walk or run.

    Faster gaits earn more and lean more. Standing leans back by one state with probability 0.8; walking
    leans further with 0.4 and back with 0.3; running leans further with 0.7 and back with 0.1. Leaning
    further than toppling is a fall and costs 5. D(s) is the number of the state.
    """
    further, back, earned = (0.1, 0.4, 0.7), (0.8, 0.3, 0.1), (0.2, 1.0, 1.6)
    transition, reward = np.zeros((5, 3, 5)), np.zeros((5, 3, 5))
    for state in range(4):
        for action in range(3):
            transition[state, action, state + 1] += further[action]
            transition[state, action, max(state - 1, 0)] += back[action]
            transition[state, action, state] += 1 - further[action] - back[action]
            reward[state, action] = earned[action]
            reward[state, action, 4] = -5.0
    transition[4, :, 4] = 1.0
    start = np.array([0.7, 0.3, 0.0, 0.0, 0.0])
    return MDP(transition, reward, start, gamma, np.arange(5.0), np.arange(5) == 4)


def random_mdp(
    rng: np.random.Generator, states: int = 5, actions: int = 2, gamma: float | None = None
) -> MDP:
    """Sparse random transitions, rewards in [-1, 1], distances in [0, 1]; the last state is a fall.

    Episodes start at the state nearest to nominal, which is inside every region used.
    """
    transition = rng.dirichlet(np.full(states, 0.4), (states, actions))
    reward = rng.uniform(-1.0, 1.0, (states, actions, states))
    distance = np.concatenate([[0.0], np.sort(rng.uniform(size=states - 2)), [np.inf]])
    terminal = np.arange(states) == states - 1
    transition[terminal] = terminal
    reward[terminal] = 0.0
    return MDP(transition, reward, np.eye(states)[0], gamma or rng.uniform(0.5, 0.97), distance, terminal)


def random_policy(rng: np.random.Generator, mdp: MDP, deterministic: bool = False) -> np.ndarray:
    """A recovery [S, A]: one action per state, or a distribution that leaves every action possible."""
    if deterministic:
        return np.eye(mdp.actions)[rng.integers(mdp.actions, size=mdp.states)]
    return 0.05 + (1 - 0.05 * mdp.actions) * rng.dirichlet(np.ones(mdp.actions), mdp.states)
