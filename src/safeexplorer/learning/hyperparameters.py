"""The numbers of the learners; nothing here needs JAX."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hyperparameters:
    """The learner's numbers (the paper's Table of PPO hyperparameters)."""

    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    value_coefficient: float = 0.5
    entropy_coefficient: float = 0.0
    lambda_compat: float = 1e-3
    max_gradient_norm: float = 0.5
    adam_epsilon: float = 1e-5
    epochs: int = 10
    minibatches: int = 32
    per_segment: bool = False
    desired_kl: float | None = None  # the learning rate follows the KL divergence of the minibatches
    min_log_std: float = -20.0  # of a Gaussian policy: the theorem asks for a bounded log standard deviation
    target_kl: float = 0.02  # where a method limits its updates


@dataclass(frozen=True)
class ConstrainedHyperparameters:
    """The constrained learners' numbers (the paper's appendix)."""

    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    max_gradient_norm: float = 40.0
    adam_epsilon: float = 1e-8
    epochs: int = 10
    minibatches: int = 32
    target_kl: float = 0.02
    multiplier_start: float = 1e-3
    multiplier_rate: float = 0.035
