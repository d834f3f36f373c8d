"""`safeexplorer film RUN...`: trained policies on their robots, or the last seconds before a fall."""

import argparse

import numpy as np

from safeexplorer import robots
from safeexplorer.commands.options import SEED, add, between, named_path, say
from safeexplorer.commands.robots import picture_size
from safeexplorer.robots.films import MOTION, Film, write_film
from safeexplorer.runs.film import file_name, play, read_fall
from safeexplorer.runs.policies import open_policy
from safeexplorer.runs.settings import robot_settings

IN_PYTHON = "SafeExplorer.load({folder}).predict(observation) inside gymnasium.wrappers.RecordVideo"


def add_film(parser: argparse.ArgumentParser) -> None:
    several = "run folder; several are shown side by side"
    files = "file to write, .mp4 or .gif (default: in the run folder film.mp4, film-alone.mp4 or fall-K.mp4)"
    fall = "play the black box of the K-th recorded fall instead"
    add(parser, "folders", several, named_path, nargs="+", metavar="RUN")
    add(parser, "--out", files, named_path)
    add(parser, "--fall", fall, between(int, 1, 10**9), metavar="K")
    add(parser, "--recovery", "off: the policy alone", default="on", choices=("on", "off"))
    add(parser, "--seconds", "simulated time", between(float, 0.01, 3600), 8.0)
    add(parser, "--seed", "of the start and of the policy's noise", SEED, 0)
    parser.add_argument("--noise", action="store_true", help="let the policy act with its exploration noise")
    add(parser, "--size", "WIDTHxHEIGHT in pixels", default="512x384")


def film_command(args: argparse.Namespace) -> int:
    """Write the film and say what is on it."""
    if len(args.folders) > 1 and args.out is None:
        raise ValueError("several runs in one film need --out; it belongs to no single run folder")
    helped = args.recovery == "on"
    path = args.out or args.folders[0] / file_name(args.fall, helped)
    if path.suffix.lower() not in MOTION:
        raise ValueError(f"--out must end in {', '.join(MOTION)}, got {str(path)!r}")
    size = picture_size(args.size)
    shown = [robots.get_robot(robot_settings(folder, IN_PYTHON).robot) for folder in args.folders]
    films = [
        read_fall(folder, args.fall)
        if args.fall is not None
        else play(open_policy(folder), args.seconds, args.seed, args.noise, helped)
        for folder in args.folders
    ]
    write_film(path, list(zip(shown, films, strict=True)), size)
    say(*(f"{path}: {describe(film)}" for film in films))
    return 0


def describe(film: Film) -> str:
    """Whose film, how long, how often the recovery acted and, of a policy, how often it fell."""
    share = np.mean([step.recovering for step in film.steps])
    falls = film.steps[-1].falls
    tail = f", {falls} fall{'s' * (falls != 1)}" if falls or not film.steps[-1].fell else ""
    return f"{film.caption}: {len(film.steps) / film.rate:.1f} s, recovery on {share:.0%} of steps{tail}"
