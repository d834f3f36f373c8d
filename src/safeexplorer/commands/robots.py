"""`safeexplorer robots` and `safeexplorer show`."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from safeexplorer.files.extras import load
from safeexplorer.robots import ROBOTS, make
from safeexplorer.robots.simulation import Simulation

POLICIES = ("hold", "random", "zero")
STILLS, MOTION = (".png", ".jpg"), (".mp4", ".gif")
MAX_FPS = 30
DESCRIPTION = {  # line of the table of robots -> how it is written
    "Gymnasium id": lambda row: row["env_id"].replace("/", "/\n"),
    "observation, action": lambda row: f"{row['observation']}, {row['action']}",
    "falls when": lambda row: row["fall"],
    "distance D": lambda row: row["distance"],
    "radius d0, d_max": lambda row: f"{row['initial_radius']:g}, {row['max_radius']:g}",
    "budget": lambda row: f"{row['budget'] / 1e6:g}M steps",
    "time limit": lambda row: f"{row['time_limit']} steps",
    "flavours": lambda row: ", ".join(row["flavours"]),
}


def add_robots(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.set_defaults(run=robots_command)


def robots_command(args: argparse.Namespace) -> int:
    """List the robots with their dimensions, fall predicate, distance, radii and budget."""
    rows = [
        {
            "robot": robot.name,
            "env_id": robot.env_id,
            "observation": robot.observation_size,
            "action": robot.action_size,
            "fall": robot.fall,
            "distance": robot.distance_text,
            "initial_radius": robot.initial_radius,
            "max_radius": robot.max_radius,
            "budget": robot.budget,
            "time_limit": robot.time_limit,
            "flavours": list(robot.flavours),
        }
        for robot in ROBOTS.values()
    ]
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    table = Table("", *(row["robot"] for row in rows), title="Robots", show_lines=True)
    for heading, describe in DESCRIPTION.items():
        table.add_row(heading, *(describe(row) for row in rows))
    Console().print(table)
    return 0


def add_show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("robot", metavar="ROBOT", help=", ".join(ROBOTS))
    parser.add_argument(
        "--out", type=Path, required=True, help=f"file to write: {', '.join(STILLS + MOTION)}"
    )
    parser.add_argument("--flavour", default="task", help="task, recovery, ... (default: task)")
    parser.add_argument(
        "--policy", choices=POLICIES, default="hold", help="what the robot does (default: hold)"
    )
    parser.add_argument(
        "--seconds", type=float, help="simulated time (default: 4 of motion, 0.5 before a still)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the start and of random actions (default: 0)")
    parser.add_argument("--size", help="WIDTHxHEIGHT in pixels (default: 640x480, a still 960x720)")
    parser.set_defaults(run=show_command)


def show_command(args: argparse.Namespace) -> int:
    """Draw one robot under a simple policy."""
    kind = args.out.suffix.lower()
    if kind not in STILLS + MOTION:
        raise ValueError(f"--out must end in {', '.join(STILLS + MOTION)}, got {str(args.out)!r}")
    width, height = picture_size(args.size or ("640x480" if kind in MOTION else "960x720"))
    seconds = args.seconds if args.seconds is not None else (4.0 if kind in MOTION else 0.5)
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"--seconds must be a finite number >= 0, got {seconds}")
    simulation = make(args.robot, 1, flavour=args.flavour)
    painter = simulation.robot.painter(width, height)
    step_rate = simulation.metadata["render_fps"]
    stride = -(-step_rate // MAX_FPS)  # steps per frame
    poses = motion(simulation, args.policy, round(seconds * step_rate), args.seed)
    if kind in MOTION:
        frames = [painter.draw(pose) for pose in poses[::stride]]
        write_motion(args.out, frames, step_rate / stride)
    else:
        write_image(args.out, painter.draw(poses[-1]))
    painter.close()
    Console().print(f"{args.out}: {args.robot}, {args.policy}, {seconds:g} s", highlight=False)
    return 0


def write_motion(path: Path, frames: list[np.ndarray], rate: float) -> None:
    """Frames as a film, `rate` of them per second."""
    gif = path.suffix.lower() == ".gif"
    options = {"duration": 1000 / rate, "loop": 0} if gif else {"fps": rate, "codec": "libx264"}
    with warnings.catch_warnings():
        # The encoder is a process of its own: forked and replaced at once, which JAX cannot know.
        warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
        write_image(path, frames, **options)


def write_image(path: Path, pixels: np.ndarray | list[np.ndarray], **options: Any) -> None:
    load("imageio.v3", "robots", f"{path.suffix} files").imwrite(path, pixels, **options)


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


def picture_size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    if not (width.isdigit() and height.isdigit() and int(width) >= 16 and int(height) >= 16):
        raise ValueError(f"--size must be WIDTHxHEIGHT with both at least 16, got {text!r}")
    return int(width), int(height)
