"""Robots in motion as files: frame by frame, with a gauge of the distance where there is a region."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from safeexplorer.files.extras import load
from safeexplorer.robots.robot import Robot
from safeexplorer.robots.simulation import Simulation

if TYPE_CHECKING:
    from PIL import ImageDraw

    from safeexplorer.robots.rendering import Painter

STILLS, MOTION = (".png", ".jpg"), (".mp4", ".gif")
POLICIES = ("hold", "random", "zero")
MAX_FPS, GIF_COLOURS = 30, 48
TINT, TINT_SHARE = np.array([214, 40, 57], np.float32), 0.22  # of a frame in which the recovery acts
FELL_SECONDS = 0.7  # a film rests on a fall for so long
INSIDE, OUTSIDE, INK, PANEL = (46, 160, 110), (214, 40, 57), (255, 255, 255), (20, 22, 26, 190)


class Step(NamedTuple):
    """One instant of a film."""

    qpos: np.ndarray
    distance: float
    radius: float | None  # None: nobody would intervene
    recovering: bool
    fell: bool = False  # it lies there
    falls: int = 0  # so far


class Film(NamedTuple):
    """What happened, step by step."""

    steps: list[Step]
    rate: int  # steps per second
    caption: str


def rest_on(step: Step, rate: int) -> list[Step]:
    """A robot that has fallen lies there for a moment."""
    return [step._replace(fell=True)] * round(FELL_SECONDS * rate)


def write_film(path: Path, shown: Sequence[tuple[Robot, Film]], size: tuple[int, int]) -> None:
    """One film, or several side by side as long as the shortest; each frame with its gauge."""
    rates = {film.rate for _, film in shown}
    if len(rates) > 1:
        raise ValueError(
            f"these robots take {', '.join(map(str, sorted(rates)))} steps a second; allowed: one rate"
        )
    rate = rates.pop()
    stride = stride_at(rate)
    frames = zip(*(draw_film(robot, film, stride, size) for robot, film in shown), strict=False)
    write_motion(path, [np.hstack(side_by_side) for side_by_side in frames], rate / stride)


def draw_film(robot: Robot, film: Film, stride: int, size: tuple[int, int]) -> list[np.ndarray]:
    """Every stride-th step as a picture."""
    painter = robot.painter(*size)
    frames = [paint(painter, step, film.caption) for step in film.steps[::stride]]
    painter.close()
    return frames


def film_robot(
    path: Path, simulation: Simulation, poses: Sequence[np.ndarray], size: tuple[int, int]
) -> None:
    """Poses of one robot as a film, or the last of them as a picture."""
    painter, rate = simulation.robot.painter(*size), simulation.metadata["render_fps"]
    stride = stride_at(rate)
    if path.suffix.lower() in MOTION:
        write_motion(path, [painter.draw(pose) for pose in poses[::stride]], rate / stride)
    else:
        write_image(path, painter.draw(poses[-1]))
    painter.close()


def stride_at(rate: int) -> int:
    """Steps per frame."""
    return -(-rate // MAX_FPS)


def motion(simulation: Simulation, policy: str, steps: int, seed: int) -> list[np.ndarray]:
    """qpos before each step and after the last."""
    simulation.reset(seed=seed)
    poses = [simulation.now.qpos[0].copy()]
    for _, action in zip(range(steps), actions(simulation, policy, seed), strict=False):
        simulation.step(action)
        poses.append(simulation.now.qpos[0].copy())
    return poses


def actions(simulation: Simulation, policy: str, seed: int) -> Iterator[np.ndarray]:
    """hold: the nominal pose; zero: zeros; random: uniform over the action space."""
    space = simulation.action_space
    space.seed(seed)
    hold = np.tile(simulation.robot.hold_action(), (simulation.num_envs, 1))
    while True:
        yield {"hold": hold, "zero": 0 * hold, "random": space.sample()}[policy]


def write_motion(path: Path, frames: list[np.ndarray], rate: float) -> None:
    """Frames as a film, `rate` of them per second."""
    if path.suffix.lower() == ".gif":
        write_gif(path, frames, rate)
        return
    with warnings.catch_warnings():
        # The encoder is a process of its own: forked and replaced at once, which JAX cannot know.
        warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
        write_image(path, frames, fps=rate, codec="libx264")


def write_gif(path: Path, frames: list[np.ndarray], rate: float) -> None:
    """Each frame in its own few colours, undithered: a third of the size."""
    from PIL import Image

    first, *others = [Image.fromarray(f).quantize(GIF_COLOURS, dither=Image.Dither.NONE) for f in frames]
    first.save(path, save_all=True, append_images=others, duration=1000 / rate, loop=0)


def write_image(path: Path, pixels: np.ndarray | list[np.ndarray], **options: Any) -> None:
    load("imageio.v3", "robots", f"{path.suffix} files").imwrite(path, pixels, **options)


def paint(painter: Painter, step: Step, caption: str) -> np.ndarray:
    """The robot, tinted while the recovery acts, and the gauge."""
    from PIL import Image, ImageDraw, ImageFont

    frame = painter.draw(step.qpos)
    if step.recovering:
        frame = ((1 - TINT_SHARE) * frame + TINT_SHARE * TINT).astype(np.uint8)
    image = Image.fromarray(frame)
    draw = ImageDraw.Draw(image, "RGBA")
    draw_gauge(draw, image.size, step)
    font = ImageFont.load_default(max(11, image.height // 28))
    counted = f", falls {step.falls}" if step.falls else ""
    draw.text((10, 8), caption + counted, INK, font, stroke_width=1, stroke_fill=(0, 0, 0, 160))
    word = "FELL" if step.fell else "RECOVERY" if step.recovering else ""
    draw.text((image.width - 10, 8), word, INK, font, anchor="ra", stroke_width=1, stroke_fill=OUTSIDE)
    return np.asarray(image)


def draw_gauge(draw: ImageDraw.ImageDraw, size: tuple[int, int], step: Step) -> None:
    """D as a bar; the radius d is a mark at its middle, so that beyond the middle is outside the region."""
    from PIL import ImageFont

    width, height = size
    left, right, top, bottom = 10, width - 10, height - 34, height - 10
    draw.rounded_rectangle((left, top, right, bottom), 6, PANEL)
    font = ImageFont.load_default(max(10, height // 30))
    full = 2.0 * step.radius if step.radius else 1.0
    inner = left + 6, right - 6
    share = min(step.distance / full, 1.0)
    colour = OUTSIDE if step.radius is not None and step.distance > step.radius else INSIDE
    draw.rectangle((inner[0], bottom - 9, inner[0] + share * (inner[1] - inner[0]), bottom - 4), colour)
    text = f"D {step.distance:.3f}" + (f"   d {step.radius:.3f}" if step.radius is not None else "")
    draw.text((inner[0], top + 1), text, INK, font)
    if step.radius is not None:
        middle = (inner[0] + inner[1]) / 2
        draw.line((middle, bottom - 13, middle, bottom - 2), INK, 2)
