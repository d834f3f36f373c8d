"""What commands have in common: options made from settings, and output for programs or for people."""

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import Field, fields
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console, RenderableType

from safeexplorer.files.console import PlainConsole, stderr_console
from safeexplorer.files.fields import kind_of, option


def named_path(text: str) -> Path:
    """A path of the command line; an empty one would be the working directory."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty; allowed: the name of a file or folder")
    return Path(text)


def between(kind: type, low: float, high: float) -> Callable[[str], Any]:
    """A number of the command line, within bounds that include both ends."""

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            kinds = {int: "a whole number", float: "a number"}
            raise argparse.ArgumentTypeError(f"is {text!r}; allowed: {kinds[kind]} from {low:g} to {high:g}")
        return value

    return read


SEED = between(int, 0, 2**63 - 1)
STEPS = between(int, 1, 10**12)
THREADS = between(int, 1, 256)


def add(
    parser: argparse.ArgumentParser, name: str, help: str, kind: Any = str, default: Any = None, **how: Any
) -> None:
    """An argument; its help says its default."""
    if default is not None:
        help += f" (default: {default:g})" if isinstance(default, float) else f" (default: {default})"
    parser.add_argument(name, help=help, type=kind, default=default, **how)


def add_settings(
    parser: argparse.ArgumentParser,
    record: type,
    describe_default: Callable[[Field], Any],
    leave_out: Sequence[str] = (),
) -> None:
    """An option for each setting of `record`, but for those that are no options; unsaid, it is absent."""
    for f in fields(record):
        if f.name in leave_out:
            continue
        kind = kind_of(f)
        how: dict[str, Any] = {"type": kind, "metavar": kind.__name__.upper()}
        if kind is bool:
            how = {"action": argparse.BooleanOptionalAction}
        elif kind is tuple:
            how = {"type": int, "nargs": "+", "metavar": "WIDTH"}
        elif f.metadata["choices"]:
            how = {"choices": f.metadata["choices"]}
        text = f"{f.metadata['help']} (default: {describe_default(f)})"
        parser.add_argument(option(f.name), default=argparse.SUPPRESS, help=text, **how)


def chosen(args: argparse.Namespace, record: type) -> dict[str, Any]:
    """The settings of `record` that the command line gave."""
    values = {f.name: getattr(args, f.name) for f in fields(record) if hasattr(args, f.name)}
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}


def add_run(parser: argparse.ArgumentParser, help: str = "run folder") -> None:
    """The folder of a run."""
    parser.add_argument("folder", type=named_path, metavar="RUN", help=help)


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`, which `emit` reads."""
    parser.add_argument("--json", action="store_true", help="print JSON instead of text for people")


def add_command(parser: argparse.ArgumentParser, home: ModuleType, name: str) -> None:
    """The arguments and the function of a command, which its module calls `add_<name>` and `<name>_command`."""
    getattr(home, f"add_{name}", add_json)(parser)
    parser.set_defaults(run=getattr(home, f"{name}_command", None))


def add_subcommands(
    parser: argparse.ArgumentParser, home: str, summaries: dict[str, str], metavar: str = "COMMAND"
) -> None:
    """Commands under a command, all of the module `home`."""
    commands = parser.add_subparsers(dest="what", required=True, metavar=metavar)
    for name, summary in summaries.items():
        add_command(commands.add_parser(name, help=summary), sys.modules[home], name)


def emit(args: argparse.Namespace, values: Any, *shown: RenderableType) -> int:
    """The result of a command: JSON for programs, or tables and sentences for people. The exit code 0."""
    if args.json:
        print(json.dumps(values, indent=1, allow_nan=False))
    else:
        say(*shown)
    return 0


def say(*shown: RenderableType, to: Console | None = None) -> None:
    """Tables; and sentences as they are, unbroken."""
    for each in shown:
        (to or PlainConsole()).print(each, soft_wrap=isinstance(each, str))


def tell(*shown: RenderableType) -> None:
    """What a command says beside its result, for people."""
    say(*shown, to=stderr_console())
