"""The rows that the loop records: one per tick, closed by the reading of the tick after it."""

import math
import queue
from collections.abc import Callable

import numpy as np

Policy = Callable[[np.ndarray, int], np.ndarray]  # observation [n], row -> action [m]


class Rows:
    """T rows of one robot. The loop's thread fills them; everyone else reads them once they are full."""

    def __init__(
        self, policy: Policy, steps: int, sizes: tuple[int, int], progress: float, within: float = -math.inf
    ):
        n, m = sizes
        self.policy, self.progress, self.steps = policy, progress, steps
        self.within = within  # D up to which the policy is tried where the recovery would act
        self.observation = np.zeros((steps, n), np.float32)  # the last good one
        self.next_observation = np.zeros((steps, n), np.float32)
        self.sample = np.zeros((steps, m), np.float32)  # the policy's own action where it acted, unclipped
        self.sent = np.zeros((steps, m), np.float32)  # the command
        self.advice = np.full(
            (steps, m), np.nan, np.float32
        )  # the recovery's action where the policy was tried
        self.distance = np.full(steps, np.nan)
        self.step = np.zeros(steps, np.int64)  # since the episode began
        self.recovering = np.zeros(steps, bool)  # someone other than the policy acted
        self.terminated, self.truncated = np.zeros(steps, bool), np.zeros(steps, bool)
        self.count = 0  # rows closed
        self.open = False  # row `count` waits for the next reading
        self.now = 0  # steps since the episode began
        # Between the loop's thread and the one that waits for the rows: "full", "fallen", "disarmed".
        self.news: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.asked = False  # for a reset by hand
        self.reset_at = math.inf  # when the one who was asked said it was done

    def begin(self, observation: np.ndarray, distance: float, sent: np.ndarray) -> int:
        """Open a row; its number."""
        row = self.count
        self.observation[row], self.distance[row], self.sent[row] = observation, distance, sent
        self.step[row] = self.now
        self.open = True
        return row

    def end(self, next_observation: np.ndarray, fell: bool, halted: bool) -> None:
        """Close the open row, if there is one. A fall terminates its episode; a halt or the last row truncates it."""
        if not self.open:
            return
        row = self.count
        self.next_observation[row] = next_observation
        self.terminated[row] = fell
        self.truncated[row] = not fell and (halted or row + 1 == self.steps)
        self.now = 0 if fell or halted else self.now + 1
        self.count, self.open = row + 1, False

    @property
    def full(self) -> bool:
        return self.count == self.steps
