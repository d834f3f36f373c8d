"""`safeexplorer film RUN`: the trained policy on its robot, or the last seconds before one of its falls."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.console import Console

from safeexplorer import robots
from safeexplorer.acting.interventions import NoIntervention, SafeRegion, Situation
from safeexplorer.acting.mixed import MixedPolicy
from safeexplorer.acting.policy import draw_noise, propose
from safeexplorer.commands.robots import MAX_FPS, MOTION, picture_size, write_motion
from safeexplorer.recovery import load_recovery
from safeexplorer.runs.policies import load_policy
from safeexplorer.runs.settings import Settings, stored_settings
from safeexplorer.runs.world import make_intervention

if TYPE_CHECKING:
    from PIL import ImageDraw

    from safeexplorer.robots.rendering import Painter

TINT, TINT_SHARE = np.array([214, 40, 57], np.float32), 0.22  # of a frame in which the recovery acts
FELL_SECONDS = 0.7  # a film of a fall ends on its last frame for so long
INSIDE, OUTSIDE, INK, PANEL = (46, 160, 110), (214, 40, 57), (255, 255, 255), (20, 22, 26, 190)


class Step(NamedTuple):
    """One instant of a film."""

    qpos: np.ndarray
    distance: float
    radius: float | None  # None: nobody would intervene
    recovering: bool
    fell: bool = False


def add_film(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="RUN", help="run folder")
    parser.add_argument(
        "--out", type=Path, help="file to write, .mp4 or .gif (default: film.mp4 in the run folder)"
    )
    parser.add_argument(
        "--fall", type=int, metavar="K", help="play the black box of the K-th recorded fall instead"
    )
    parser.add_argument(
        "--recovery", choices=("on", "off"), default="on", help="off: the policy alone (default: on)"
    )
    parser.add_argument("--seconds", type=float, default=8.0, help="simulated time (default: 8)")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the start and of the policy's noise (default: 0)"
    )
    parser.add_argument("--noise", action="store_true", help="let the policy act with its exploration noise")
    parser.add_argument("--size", default="512x384", help="WIDTHxHEIGHT in pixels (default: 512x384)")
    parser.set_defaults(run=film_command)


def film_command(args: argparse.Namespace) -> int:
    """Write the film and say what is on it."""
    path = args.out or args.folder / "film.mp4"
    if path.suffix.lower() not in MOTION:
        raise ValueError(f"--out must end in {', '.join(MOTION)}, got {str(path)!r}")
    if not 0 < args.seconds < float("inf"):
        raise ValueError(f"--seconds must be a finite number > 0, got {args.seconds}")
    settings = stored_settings(args.folder)
    robot = robots.get_robot(settings.robot)
    if args.fall is not None:
        steps, rate = read_fall(args.folder, settings, args.fall)
        caption = f"fall {args.fall} of {settings.robot}, {settings.method}, seed {settings.seed}"
    else:
        rate = robots.make(settings.robot, 1).metadata["render_fps"]
        steps = list(play(args.folder, settings, round(args.seconds * rate), args))
        caption = f"{settings.robot}, {settings.method}, seed {settings.seed}, recovery {args.recovery}"
    width, height = picture_size(args.size)
    painter = robot.painter(width, height)
    stride = -(-rate // MAX_FPS)
    frames = [paint(painter, step, caption) for step in steps[::stride]]
    if args.fall is not None:
        frames += [paint(painter, steps[-1]._replace(fell=True), caption)] * round(
            FELL_SECONDS * rate / stride
        )
    painter.close()
    write_motion(path, frames, rate / stride)
    share = np.mean([step.recovering for step in steps])
    falls = sum(step.fell for step in steps)
    tail = "" if args.fall is not None else f", {falls} falls"
    Console().print(
        f"{path}: {len(steps) / rate:.1f} s, recovery on {share:.0%} of steps{tail}",
        highlight=False,
        soft_wrap=True,
    )
    return 0


# -- what happens ------------------------------------------------------------------------------------------


def play(folder: Path, settings: Settings, count: int, args: argparse.Namespace) -> Iterator[Step]:
    """The policy of the last checkpoint, with the region as it is at that point of training."""
    params, update = load_policy(folder, settings)
    progress = settings.progress(update)
    world = robots.make(settings.robot, 1)
    intervention = make_intervention(settings)
    radius = intervention.radius(progress) if isinstance(intervention, SafeRegion) else None
    method, mixed = settings.method_row(), MixedPolicy(NoIntervention(), None)
    if method.intervenes and args.recovery == "on":
        recovery = load_recovery(settings.recovery, world.robot)
        mixed = MixedPolicy(intervention, recovery, method.sampled_recovery)
    rng = np.random.default_rng(args.seed)
    observation, info = world.reset(seed=args.seed)
    for _ in range(count):
        situation = Situation(observation, info["distance"], info["episode_length"])
        noise = draw_noise(params, (1,), rng) if args.noise else 0.0
        proposed = propose(params, observation.astype(np.float32), noise)
        acted = mixed.act(situation, proposed, progress, rng)
        qpos, distance = world.now.qpos[0].copy(), float(info["distance"][0])
        observation, _, terminated, _, info = world.step(acted.action)
        yield Step(qpos, distance, radius, bool(acted.recovering[0]), bool(terminated[0]))


def read_fall(folder: Path, settings: Settings, number: int) -> tuple[list[Step], int]:
    """The black box of one fall."""
    kept = {int(path.stem): path for path in (folder / "falls").glob("*.npz")}
    if number not in kept:
        known = ", ".join(map(str, sorted(kept))) or "none"
        raise ValueError(f"fall {number} is not recorded in {folder}; recorded: {known}")
    with np.load(kept[number], allow_pickle=False) as box:
        radius = float(box["radius"]) if isinstance(make_intervention(settings), SafeRegion) else None
        rows = zip(box["qpos"], box["distance"], box["recovering"], strict=True)
        steps = [Step(qpos, float(distance), radius, bool(acts)) for qpos, distance, acts in rows]
        return steps, int(box["rate"])


# -- how it looks ------------------------------------------------------------------------------------------


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
    draw.text((10, 8), caption, INK, font, stroke_width=1, stroke_fill=(0, 0, 0, 160))
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
