"""The curriculum: progress (u - 1) / N in [0, 1) -> radius d of the safe region."""

import math
from collections.abc import Callable

Schedule = Callable[[float], float]


def linear(initial: float, maximum: float) -> Schedule:
    """d0 + progress * d_max, the paper's literal schedule: it ends at d0 + d_max."""
    return lambda progress: initial + progress * maximum


def interpolate(initial: float, maximum: float) -> Schedule:
    """d0 + progress * (d_max - d0): ends at d_max."""
    return lambda progress: initial + progress * (maximum - initial)


def logarithmic(initial: float, maximum: float) -> Schedule:
    """d0 + d_max * log10(1 + 9 progress): fast first, then slow."""
    return lambda progress: initial + maximum * math.log10(1.0 + 9.0 * progress)


def step(initial: float, maximum: float) -> Schedule:
    """Four equal jumps, at a fifth, two, three and four fifths of training."""
    return lambda progress: initial + maximum * math.floor(5.0 * progress) / 4.0


def constant(radius: float) -> Schedule:
    """The same radius throughout."""
    return lambda progress: radius


class Auto:
    """No clock: the radius follows what the exits show (see `handover`), up to `largest`. Without a run it is 0."""

    def __init__(self, largest: float = math.inf):
        if not largest > 0:
            raise ValueError(f"largest is {largest!r}; allowed: a number above 0")
        self.largest = largest

    def __call__(self, progress: float) -> float:
        return 0.0


def auto(largest: float = math.inf) -> Auto:
    """By evidence, up to the largest sensible radius."""
    return Auto(largest)


SHAPES = {"linear": linear, "interpolate": interpolate, "log": logarithmic, "step": step}
SCHEDULES = (*SHAPES, "constant", "auto")


def make_schedule(shape: str, initial: float, maximum: float, fraction: float = 1.0) -> Schedule:
    """A schedule by name; `constant` holds `fraction` of the maximum."""
    if shape == "constant":
        return constant(fraction * maximum)
    if shape == "auto":
        return auto(maximum)
    if shape not in SHAPES:
        raise ValueError(f"schedule is {shape!r}; allowed: {', '.join(SCHEDULES)}")
    return SHAPES[shape](initial, maximum)
