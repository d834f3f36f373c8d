"""`safeexplorer completion SHELL`: a script that completes commands, options and their values."""

import argparse
from collections.abc import Iterator, Sequence

from safeexplorer.learning.methods import CONSTRAINED, METHODS
from safeexplorer.paper import ARTEFACTS, GROUPS
from safeexplorer.robots import ROBOTS

# Where the parser takes any text, what it usually is.
USUAL = {"robot": list(ROBOTS), "method": [*METHODS, *CONSTRAINED], "names": [*ARTEFACTS, *GROUPS]}
SCRIPT = """\
_safeexplorer() {{
  local word path="" current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path $word" in {commands}) path="$path $word" ;; esac
  done
  case "$path $before" in
{values}
    *) case "$path" in
{words}
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _safeexplorer safeexplorer"""
ZSH = "autoload -Uz compinit bashcompinit && compinit && bashcompinit\n"


def add_completion(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        'Print a script for the shell. For now: eval "$(safeexplorer completion bash)"; '
        "for good: write it to a file that ~/.bashrc or ~/.zshrc reads."
    )
    parser.add_argument("shell", choices=("bash", "zsh"))


def completion_command(args: argparse.Namespace) -> int:
    print((ZSH if args.shell == "zsh" else "") + script(args.whole))
    return 0


def script(parser: argparse.ArgumentParser) -> str:
    """From every command that the parser knows: what may follow it, and what may follow its options."""
    words, values = {}, {}
    for path, each in walk(parser):
        actions = each._actions
        words[path] = [word for a in actions for word in a.option_strings or choices(a)]
        values |= {f"{path} {word}": choices(a) for a in actions if choices(a) for word in a.option_strings}
    lines = {name: case(table) for name, table in (("words", words), ("values", values))}
    return SCRIPT.format(commands="|".join(f'"{path}"' for path in words if path), **lines)


def walk(parser: argparse.ArgumentParser, path: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """A parser and those of its subcommands, each with the words that lead there."""
    yield path, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from walk(inner, f"{path} {name}")


def choices(action: argparse.Action) -> Sequence[str]:
    """What an option or a positional may be."""
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    return USUAL.get(action.dest, [])


def case(table: dict[str, Sequence[str]]) -> str:
    return "\n".join(f'    "{path}") words="{" ".join(found)}" ;;' for path, found in table.items())
