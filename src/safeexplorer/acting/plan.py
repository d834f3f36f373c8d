"""The numbers of a hand-over; one set for all robots."""

import math
from dataclasses import dataclass

PERIOD = 8192  # steps of all robots, at least, between two decisions ...
DECISIONS = 80  # ... or fewer, so that so many are left: a training with less than that is in haste
# The copy:
COPY = 0.2  # held-out actions within this share of the spread it starts with, root mean square
PATIENCE = 8  # periods in which it must improve ...
IMPROVEMENT = 0.05  # ... by this share, else it is as good as it gets
# By how much the noise on the recovery grows in a period, up to the spread that the copy starts with.
SHAKING = 0.5
BROKEN = 0.5  # share of episodes; a recovery that alone falls in more is none
TRIAL = 1 / 3  # of the steps that imitation may take are kept for trying the copy
# The region:
REST = 0.95  # quantile of the recovery's own distances that the first one holds ...
MARGIN = 1.1  # ... with this factor to spare
NEEDED = 2e-3  # exits per step of the policy; with fewer a larger one is of no use
SLOWEST, FASTEST = 0.02, 0.1  # growth per period; between them as the share of the policy's steps that exit
SHRINKING = 0.05, 0.5  # per period, least and most; between them as the share of the exits that fell
DOUBLINGS = 2  # of what must be proven, at most
SMALLEST = 0.5  # of the first one
# The spread, in log sigma:
CALM = 1e-2  # exits per step of the policy; with more it does not open, and more of them must end well
RESTLESS = 3e-2  # with more than this it goes back to the start
FIRST = -1.0  # at the hand-over, below the start
OPENING = 0.2  # per calm period without a fall, and an eleventh of it after one, up to the start; in haste beyond it
CLOSING, MOST, LOWEST = 0.2, 3, -0.7  # by a fall, by how many of a period at most, and how far in all
CHEAP = 0.05  # -d ln J / d ln sigma; where noise costs less, falls do not narrow the policy ...
NEAR_CEILING = 0.2  # ... and what they took comes back: the floor is no further below the ceiling
FADING = 0.5  # of training: until then the floor fades, after it the ceiling


@dataclass(frozen=True)
class Plan:
    """What a run decides about its hand-over."""

    updates: int  # N
    batch: int = PERIOD  # steps of an update
    begin_as_recovery: bool = True
    by_evidence: bool = True  # the radius follows the exits; else the intervention's own clock
    hold_spread: bool = True
    largest_radius: float = math.inf
    imitation_share: float = 0.3  # of all updates, at most
    safe_share: float = 0.99  # of the exits must be proven to end without a fall
    initial_spread: float = 0.1  # standard deviation at the hand-over, as a share of half the action range
    haste: float = 5.0  # of a short training, at most
    spread_fade: float = 2.0  # by how much the floor under log sigma falls, and the ceiling by half of it
