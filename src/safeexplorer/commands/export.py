"""`safeexplorer export RUN`: the policy of a run as an ONNX file."""

import argparse

from safeexplorer.adapters.spaces import flat_action_space
from safeexplorer.commands.options import add, add_json, add_run, between, emit, named_path
from safeexplorer.export.onnx import LARGEST_RADIUS, export_onnx
from safeexplorer.runs.facts import read_facts
from safeexplorer.runs.policies import open_policy, run_spaces


def add_export(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write the policy of a run's newest checkpoint as an ONNX file: observation [batch, n] -> action [batch, m], "
        "the mean within the action bounds. The file is compared with the policy before it is kept. "
        "Needs the extra: pip install safeexplorer[onnx]."
    )
    add_run(parser)
    parser.add_argument("--out", type=named_path, required=True, help="file to write (.onnx)")
    text = (
        "add the input distance [batch] and the output recovery_should_act [batch], true outside the safe region that "
        "the run had reached"
    )
    parser.add_argument("--gate", action="store_true", help=text)
    add(parser, "--radius", "a gate at this radius instead", between(float, 0, LARGEST_RADIUS), metavar="R")
    add_json(parser)


def export_command(args: argparse.Namespace) -> int:
    """Export, and say what is in the file and how well it agrees."""
    if args.out.suffix.lower() != ".onnx":
        raise ValueError(f"--out must end in .onnx, got {str(args.out)!r}")
    policy = open_policy(args.folder)
    radius = args.radius
    if args.gate and radius is None:
        radius = policy.radius
        if radius is None:
            raise ValueError(
                f"--gate: the run has no safe region ({policy.settings.method}); give --radius R"
            )
    _, space = run_spaces(args.folder)
    commit = (read_facts(args.folder).get("provenance") or {}).get("commit")
    facts = policy.facts | {"commit": commit or ""}
    result = export_onnx(args.out, policy.params, flat_action_space(space), region=radius, metadata=facts)
    gate = "no gate" if radius is None else f"gate at distance {radius:.6g}"
    text = (
        f"{args.out}: {facts['robot']}, {facts['method']}, seed {facts['seed']}, {facts['steps']:,} steps; {gate}; "
        f"largest error {result['max_error']:.1e} of the action scale on {result['checked']} observations"
    )
    return emit(args, result | facts | {"radius": radius}, text)
