"""The command `safeexplorer`."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from safeexplorer import __version__
from safeexplorer.commands.options import add_command
from safeexplorer.files.console import lead_closed_streams_nowhere, notice, visible
from safeexplorer.files.interruption import ENDING, Stopped, interrupting
from safeexplorer.files.threads import use_one_thread
from safeexplorer.files.trouble import exit_code
from safeexplorer.robots import register_file

# command -> (summary, module of `commands`), whose function `add_<command>` adds arguments to the command's parser, and
# whose `<command>_command` takes the parsed ones and returns the exit code. Only the chosen module is imported.
COMMANDS = {
    "robots": ("list the robots", "robots"),
    "show": ("draw a robot: a picture or a few seconds of motion", "robots"),
    "methods": ("list the methods", "train"),
    "train": ("train a policy on a robot", "train"),
    "resume": ("continue an interrupted run, bit for bit", "train"),
    "evaluate": ("a run's policy alone, without its recovery", "evaluate"),
    "quickstart": ("PPO and SafeExplorer side by side in two minutes", "quickstart"),
    "verify": ("check the paper's theory on exact small processes", "verify"),
    "recovery": ("train, select, grade, replay and list recovery policies", "recovery"),
    "audit": ("how a recovery acts, and what an update would make of it", "audit"),
    "paper": ("list the paper's tables and figures", "paper"),
    "reproduce": ("launch the runs of a table or figure", "paper"),
    "render": ("a table or figure of the paper from the runs that exist", "paper"),
    "collect": ("small result files from run folders", "paper"),
    "report": ("one offline page that compares runs", "report"),
    "film": ("a run's policy, or one of its falls, as a film", "film"),
    "export": ("a run's policy as an ONNX file", "export"),
    "feasibility": ("do the constrained methods keep to their limit", "feasibility"),
    "bench": ("measure speed on this machine", "bench"),
    "completion": ("what a shell needs to complete these commands", "completion"),
}

ROBOT_FILE = "with any command: a Python file that registers robots of your own"


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line and exit code 2."""
        self.exit(2, visible(f"{self.prog}: {one_line(message)}\n"))


def one_line(words: object) -> str:
    return " ".join(str(words).split())


def build_parser(chosen: str | None) -> Parser:
    parser = Parser(prog="safeexplorer", description="Safe exploration with recovery interventions.")
    parser.add_argument("--version", action="version", version=f"safeexplorer {__version__}")
    parser.add_argument("--robot-file", metavar="FILE", help=ROBOT_FILE)
    parser.set_defaults(whole=parser)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (summary, module) in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if chosen in (name, "completion"):
            add_command(command, import_module(f"safeexplorer.commands.{module}"), name)
    return parser


def register_robots(argv: Sequence[str]) -> list[str]:
    """Register the robots of every `--robot-file FILE`, wherever it stands; the other words are left."""
    parser = Parser(prog="safeexplorer", add_help=False, allow_abbrev=False)
    parser.add_argument("--robot-file", action="append", default=[], type=Path)
    found, words = parser.parse_known_args(argv)
    for path in found.robot_file:
        try:
            register_file(path.resolve())
        except (ValueError, OSError) as error:
            parser.error(str(error))
    return words


def main(argv: Sequence[str] | None = None) -> int:
    """What a user can get wrong is a ValueError or an OSError: one line, exit code 2, no traceback. Stopped: 130."""
    lead_closed_streams_nowhere()
    try:
        with interrupting(*ENDING):  # what is being written is taken away, as after Ctrl-C
            return run(argv)
    except KeyboardInterrupt:
        notice("safeexplorer: stopped by a signal")
        return 130


def run(argv: Sequence[str] | None) -> int:
    use_one_thread()
    argv = register_robots(sys.argv[1:] if argv is None else argv)
    parser = build_parser(next((word for word in argv if not word.startswith("-")), None))
    args = parser.parse_args(argv)
    try:
        return args.run(args)
    except Stopped as stopped:
        notice(str(stopped))
        return 130
    except BrokenPipeError:  # the reader, `head` for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError, FloatingPointError) as error:
        notice(f"safeexplorer {args.command}: {one_line(error)}")
        return exit_code(error)
    except MemoryError as error:
        notice(f"safeexplorer {args.command}: more memory than there is: {one_line(error)}")
        return exit_code(error)


if __name__ == "__main__":
    sys.exit(main())
