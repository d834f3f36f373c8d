"""The command `safeexplorer`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from safeexplorer.files.threads import use_one_thread

# command -> (summary, "module:function"); the function gets the command's parser, adds arguments and sets `run`,
# which takes the parsed arguments and returns the exit code. Only the chosen command's module is imported.
COMMANDS = {
    "robots": ("list the robots", "safeexplorer.commands.robots:add_robots"),
    "show": ("draw a robot: a picture or a few seconds of motion", "safeexplorer.commands.robots:add_show"),
    "methods": ("list the methods", "safeexplorer.commands.train:add_methods"),
    "train": ("train a policy on a robot", "safeexplorer.commands.train:add_train"),
    "resume": ("continue an interrupted run, bit for bit", "safeexplorer.commands.train:add_resume"),
    "evaluate": (
        "a run's policy alone, without its recovery",
        "safeexplorer.commands.evaluate:add_evaluate",
    ),
    "quickstart": (
        "PPO and SafeExplorer side by side in two minutes",
        "safeexplorer.commands.quickstart:add_quickstart",
    ),
    "verify": (
        "check the paper's theory on exact small processes",
        "safeexplorer.commands.verify:add_verify",
    ),
    "recovery": (
        "train, select, grade, replay and list recovery policies",
        "safeexplorer.commands.recovery:add_recovery_commands",
    ),
    "audit": (
        "how a recovery acts, and what an update would make of it",
        "safeexplorer.commands.audit:add_audit",
    ),
    "paper": ("list the paper's tables and figures", "safeexplorer.commands.paper:add_paper"),
    "reproduce": ("launch the runs of a table or figure", "safeexplorer.commands.paper:add_reproduce"),
    "render": (
        "a table or figure of the paper from the runs that exist",
        "safeexplorer.commands.paper:add_render",
    ),
    "collect": ("small result files from run folders", "safeexplorer.commands.paper:add_collect"),
    "report": ("one offline page that compares runs", "safeexplorer.commands.report:add_report"),
    "film": ("a run's policy, or one of its falls, as a film", "safeexplorer.commands.film:add_film"),
    "export": ("a run's policy as an ONNX file", "safeexplorer.commands.export:add_export"),
    "feasibility": (
        "do the constrained methods keep to their limit",
        "safeexplorer.commands.feasibility:add_feasibility",
    ),
    "bench": ("measure speed on this machine", "safeexplorer.commands.bench:add_bench"),
}


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line and exit code 2."""
        self.exit(2, f"{self.prog}: {message}\n")


def build_parser(chosen: str | None) -> Parser:
    parser = Parser(prog="safeexplorer", description="Safe exploration with recovery interventions.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (summary, where) in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == chosen:
            module, function = where.split(":")
            getattr(import_module(module), function)(command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """What a user can get wrong is a ValueError or an OSError: one line, exit code 2, no traceback."""
    argv = sys.argv[1:] if argv is None else list(argv)
    use_one_thread()
    parser = build_parser(next((word for word in argv if not word.startswith("-")), None))
    args = parser.parse_args(argv)
    try:
        return args.run(args)
    except BrokenPipeError:  # the reader, `head` for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError, FloatingPointError) as error:
        print(f"safeexplorer {args.command}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
