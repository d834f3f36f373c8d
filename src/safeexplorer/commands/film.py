"""`safeexplorer film RUN`: the trained policy on its robot, or the last seconds before one of its falls."""

from __future__ import annotations

import argparse

import numpy as np

from safeexplorer import robots
from safeexplorer.commands.options import named_path, say
from safeexplorer.commands.robots import picture_size
from safeexplorer.robots.films import MOTION, write_film
from safeexplorer.runs.film import play, read_fall
from safeexplorer.runs.policies import open_policy
from safeexplorer.runs.settings import stored_settings


def add_film(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=named_path, metavar="RUN", help="run folder")
    parser.add_argument(
        "--out", type=named_path, help="file to write, .mp4 or .gif (default: film.mp4 in the run folder)"
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
    size = picture_size(args.size)
    if args.fall is not None:
        film = read_fall(args.folder, args.fall)
    else:
        policy, helped = open_policy(args.folder), args.recovery == "on"
        film = play(policy, args.seconds, args.seed, args.noise, helped)
    write_film(path, robots.get_robot(stored_settings(args.folder).robot), film, size)
    share = np.mean([step.recovering for step in film.steps])
    tail = "" if film.of_a_fall else f", {sum(step.fell for step in film.steps)} falls"
    say(f"{path}: {len(film.steps) / film.rate:.1f} s, recovery on {share:.0%} of steps{tail}")
    return 0
