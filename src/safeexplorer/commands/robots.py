"""`safeexplorer robots` and `safeexplorer show`."""

import argparse

from rich.table import Table

from safeexplorer.commands.options import SEED, add, between, emit, named_path, say
from safeexplorer.robots import ROBOTS, make
from safeexplorer.robots.films import MOTION, POLICIES, STILLS, film_robot, motion

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


def robots_command(args: argparse.Namespace) -> int:
    """List the robots with their dimensions, fall predicate, distance, radii and budget."""
    facts = ("initial_radius", "max_radius", "budget", "time_limit")
    rows = [
        {"robot": robot.name, "env_id": robot.env_id, "observation": robot.observation_size}
        | {"action": robot.action_size, "fall": robot.fall, "distance": robot.distance_text}
        | {fact: getattr(robot, fact) for fact in facts}
        | {"flavours": list(robot.flavours)}
        for robot in ROBOTS.values()
    ]
    table = Table("", *(row["robot"] for row in rows), title="Robots", show_lines=True)
    for heading, describe in DESCRIPTION.items():
        table.add_row(heading, *(describe(row) for row in rows))
    return emit(args, rows, table)


def add_show(parser: argparse.ArgumentParser) -> None:
    motion = "simulated time (default: 4 of motion, 0.5 before a still)"
    add(parser, "robot", ", ".join(ROBOTS), metavar="ROBOT")
    add(parser, "--out", f"file to write: {', '.join(STILLS + MOTION)}", named_path, required=True)
    add(parser, "--flavour", "task, recovery, ...", default="task")
    add(parser, "--policy", "what the robot does", default="hold", choices=POLICIES)
    add(parser, "--seconds", motion, between(float, 0, 3600))
    add(parser, "--seed", "of the start and of random actions", SEED, 0)
    parser.add_argument("--size", help="WIDTHxHEIGHT in pixels (default: 640x480, a still 960x720)")


def show_command(args: argparse.Namespace) -> int:
    """Draw one robot under a simple policy."""
    kind = args.out.suffix.lower()
    if kind not in STILLS + MOTION:
        raise ValueError(f"--out must end in {', '.join(STILLS + MOTION)}, got {str(args.out)!r}")
    size = picture_size(args.size or ("640x480" if kind in MOTION else "960x720"))
    seconds = args.seconds if args.seconds is not None else (4.0 if kind in MOTION else 0.5)
    simulation = make(args.robot, 1, flavour=args.flavour)
    count = round(seconds * simulation.metadata["render_fps"])
    film_robot(args.out, simulation, motion(simulation, args.policy, count, args.seed), size)
    say(f"{args.out}: {args.robot}, {args.policy}, {seconds:g} s")
    return 0


def picture_size(text: str) -> tuple[int, int]:
    width, _, height = text.partition("x")
    if not all(side.isdecimal() and len(side) < 5 and 16 <= int(side) <= 4096 for side in (width, height)):
        raise ValueError(f"--size must be WIDTHxHEIGHT with both from 16 to 4096, got {text!r}")
    return int(width), int(height)
