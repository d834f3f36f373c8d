"""`safeexplorer audit`."""

import argparse
from pathlib import Path

from safeexplorer import robots
from safeexplorer.audit.display import tables
from safeexplorer.audit.recordings import OPTIONAL, REQUIRED
from safeexplorer.audit.subjects import Trial, audit_file, audit_robot
from safeexplorer.commands.options import SEED, add, add_json, add_settings, chosen, emit, named_path
from safeexplorer.files.fields import option

OWN = "as the run has it, or as training would start"
EPILOG = f"""\
A recording is an .npz (numpy.savez) of arrays over T steps of E robots; without the E axis for one robot.
  required
{chr(10).join(f"    {name:<21} {text}" for name, text in REQUIRED.items())}
  optional
{chr(10).join(f"    {name:<21} {text}" for name, text in OPTIONAL.items())}
    policy/...            the policy's weights: actor/<i>/weight, actor/<i>/bias, log_std, critic/<i>/...
  other names for the intervention
    is_intervention       a flag, with action_intervention: the action of who took over
    intervene_flag        a flag, with intervene_action likewise
    intervene_action      without a flag: rows of NaN where nobody took over

  safeexplorer audit half_cheetah                              the shipped recovery, as training would start
  safeexplorer audit half_cheetah --recovery hold --radius 0.5
  safeexplorer audit half_cheetah --policy runs/mine           a trained policy, at its point of the curriculum
  safeexplorer audit rollouts.npz --policy runs/mine --json
"""


def add_audit(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    known = f"a robot to try out ({', '.join(robots.ROBOTS)}) or a recording, .npz"
    parser.add_argument("target", metavar="ROBOT|FILE", help=known)
    text = (
        "whose gradients: a run folder, or an .npz of weights (default: the recording's own; a robot starts with fresh "
        "ones, as training does)"
    )
    add(parser, "--policy", text, named_path, metavar="RUN|FILE")
    add_settings(parser, Trial, lambda f: OWN if f.default is None else f.default)
    add(parser, "--seed", "of everything random", SEED, 0)
    add_json(parser)


def audit_command(args: argparse.Namespace) -> int:
    """Measure, then say what it suggests."""
    options, path = chosen(args, Trial), Path(args.target)
    if args.target in robots.ROBOTS:
        result = audit_robot(args.target, Trial(**options), args.policy, args.seed)
    elif not path.exists():
        raise ValueError(f"{args.target!r} is no robot and no file; robots: {', '.join(robots.ROBOTS)}")
    elif options:
        raise ValueError(f"{option(next(iter(options)))} is for a robot; {path} was recorded already")
    else:
        result = audit_file(path, args.policy)
    return emit(args, result.as_dict(), *tables(result))
