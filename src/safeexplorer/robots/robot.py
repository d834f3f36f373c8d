"""What a robot is: a model, constants and functions on batched arrays [E, ...], all in one file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from safeexplorer.recovery.protocol import Interface
from safeexplorer.recovery.scripted import Posture

if TYPE_CHECKING:
    import mujoco

    from safeexplorer.robots.rendering import Painter, Window

Array = np.ndarray


class Bodies(SimpleNamespace):
    """The arrays of E robots at one instant, each [E, ...]. They are live and never move, so views of them are made
    once: a robot names its own as cached properties of a subclass.

    qpos, qvel, motion  views of the physics state; motion is qpos and qvel side by side
    <derived field>     what the robot lists in `derived`; filled by every step, one substep behind as in mj_step
    <memory>            what the robot lists in `memory`
    action              the executed action
    """


@dataclass(frozen=True)
class Robot:
    """One robot. Every function takes and returns arrays over E robots."""

    name: str  # as commands, settings and folders know it
    label: str  # as tables and figures print it
    env_id: str
    fall: str  # the predicate that ends an episode, in one line
    distance_text: str  # D(s), in one line
    initial_radius: float  # d0
    max_radius: float  # d_max
    budget: int  # environment steps of a whole training
    frame_skip: int  # physics steps per control step
    observation_size: int
    action_size: int
    terms: tuple[str, ...]  # of the reward, in the order in which they are summed
    flavours: Mapping[str, Mapping[str, float]]  # flavour -> weight per term; a missing term weighs 0

    build_model: Callable[[], mujoco.MjModel]
    observe: Callable[[Bodies], Array]  # [E, n]
    distance: Callable[[Bodies], Array]  # D(s), [E]
    fallen: Callable[[Bodies], Array]  # bool [E]
    # (now, before, fallen, D) -> terms, unweighted
    reward_terms: Callable[[Bodies, Bodies, Array, Array], dict[str, Array]]
    # One robot's first state, {"qpos": ..., "qvel": ..., <memory>: ...}; the MjData is scratch space.
    task_start: Callable[[np.random.Generator, mujoco.MjModel, mujoco.MjData], dict[str, Array]]
    recovery_start: Callable[[np.random.Generator, mujoco.MjModel, mujoco.MjData], dict[str, Array]]

    bodies: type[Bodies] = Bodies
    # Computes from qpos and qvel what the functions above share, in arrays of the bodies.
    prepare: Callable[[Bodies], None] = lambda now: None
    derived: tuple[str, ...] = ()  # MjData fields that the reward reads
    memory: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # shapes of state beyond the physics
    remember: Callable[[Bodies], None] = lambda now: None  # updates the memory after a step
    floored: bool = False  # the reward is max(0, sum of terms), and 0 on a fall
    observation_bound: float = np.inf
    min_log_std: float = -20.0  # the policy's spread stays above exp of this; -20 is practically no floor
    time_limit: int = 1000
    recovery_time_limit: int = 250
    build_picture: Callable[[], mujoco.MjModel] | None = None  # to draw instead of the physics model
    posture: Posture | None = None  # with it, the robot has the recoveries `hold` and `passive`
    recipe: Mapping[str, Any] = field(default_factory=dict)  # settings of `recovery train` that are its own
    camera: Mapping[str, float] = field(default_factory=dict)  # fields of MjvCamera

    def weights(self, flavour: str) -> Array:
        """The weight of every term in the order of `terms`, [K]."""
        if flavour not in self.flavours:
            raise ValueError(f"{self.name} has no flavour {flavour!r}; known: {', '.join(self.flavours)}")
        return np.array([self.flavours[flavour].get(term, 0.0) for term in self.terms])

    def picture(self) -> mujoco.MjModel:
        """The model to draw."""
        return (self.build_picture or self.build_model)()

    def painter(self, width: int = 640, height: int = 480) -> Painter:
        """Draws this robot without a screen."""
        model = self.picture()
        from safeexplorer.robots.rendering import Painter  # loads MuJoCo

        return Painter(model, self.camera, width, height)

    def window(self) -> Window:
        """Draws this robot on the screen."""
        from safeexplorer.robots.rendering import Window

        return Window(self.picture(), self.camera)

    def interface(self) -> Interface:
        """What a recovery of this robot reads and may answer."""
        low, high = self.build_model().actuator_ctrlrange.T.astype(np.float32)
        return Interface(self.name, self.observation_size, low, high, posture=self.posture)

    def hold_action(self) -> Array:
        """The constant action that keeps the nominal pose, [m]: its angles for servos, else no torque."""
        servos = self.posture is not None and self.posture.stiffness is None
        return np.array(self.posture.pose) if servos else np.zeros(self.action_size)

    def episode_limit(self, flavour: str) -> int:
        return self.time_limit if flavour == "task" else self.recovery_time_limit

    def start(self, flavour: str) -> Callable[..., dict[str, Array]]:
        return self.task_start if flavour == "task" else self.recovery_start


def check(robot: Robot) -> None:
    """Refuse what would go wrong later, naming the field, what was got and what is allowed."""
    if not robot.name.isidentifier():
        raise ValueError(f"name is {robot.name!r}; allowed: letters, digits and underscores")
    for flavour in ("task", "recovery"):
        robot.weights(flavour)
    for flavour, weights in robot.flavours.items():
        for term in weights:
            if term not in robot.terms:
                raise ValueError(
                    f"{robot.name}: flavour {flavour!r} weighs {term!r}; its terms: {', '.join(robot.terms)}"
                )
    joints = [len(part) for p in [robot.posture] if p for part in (p.angle, p.speed, p.pose)]
    if any(count != robot.action_size for count in joints):
        raise ValueError(
            f"{robot.name}: posture has {joints} joints; allowed: action_size = {robot.action_size}"
        )
