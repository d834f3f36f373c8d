"""`safeexplorer export RUN`: the policy of a run as an ONNX file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from rich.console import Console

from safeexplorer import robots
from safeexplorer.acting.interventions import SafeRegion
from safeexplorer.export.onnx import export_onnx
from safeexplorer.runs.policies import load_policy
from safeexplorer.runs.settings import Settings, stored_settings
from safeexplorer.runs.world import make_intervention


def add_export(parser: argparse.ArgumentParser) -> None:
    """`export RUN`."""
    parser.description = (
        "Write the policy of a run's newest checkpoint as an ONNX file: observation [batch, n] -> action [batch, m], "
        "the mean within the action bounds. The file is compared with the policy before it is kept. "
        "Needs the extra: pip install safeexplorer[onnx]."
    )
    parser.add_argument("folder", type=Path, metavar="RUN", help="run folder")
    parser.add_argument("--out", type=Path, required=True, help="file to write (.onnx)")
    parser.add_argument(
        "--gate",
        action="store_true",
        help="add the input distance [batch] and the output recovery_should_act [batch], true outside the safe region "
        "that the run had reached",
    )
    parser.add_argument("--radius", type=float, metavar="R", help="a gate at this radius instead")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a line")
    parser.set_defaults(run=export_command)


def export_command(args: argparse.Namespace) -> int:
    """Export, and say what is in the file and how well it agrees."""
    if args.out.suffix.lower() != ".onnx":
        raise ValueError(f"--out must end in .onnx, got {str(args.out)!r}")
    settings = stored_settings(args.folder)
    params, update = load_policy(args.folder, settings)
    radius = args.radius if args.radius is not None or not args.gate else reached_radius(settings, update)
    world = robots.make(settings.robot, 1)
    space = world.single_action_space
    world.close()
    facts = {
        "robot": settings.robot,
        "method": settings.method,
        "seed": settings.seed,
        "steps": update * settings.batch_size,
        "commit": json.loads((args.folder / "run.json").read_text())["provenance"]["commit"] or "",
    }
    result = export_onnx(args.out, params, space, region=radius, metadata=facts)
    if args.json:
        print(json.dumps(result | facts | {"radius": radius}, indent=1))
        return 0
    gate = "no gate" if radius is None else f"gate at distance {radius:.6g}"
    Console().print(
        f"{args.out}: {settings.robot}, {settings.method}, seed {settings.seed}, {facts['steps']:,} steps; {gate}; "
        f"largest error {result['max_error']:.1e} of the action scale on {result['checked']} observations",
        highlight=False,
        soft_wrap=True,
    )
    return 0


def reached_radius(settings: Settings, update: int) -> float:
    """d of the last update that the policy learned from."""
    intervention = make_intervention(settings)
    if not isinstance(intervention, SafeRegion):
        raise ValueError(f"--gate: the run has no safe region ({settings.method}); give --radius R")
    return float(intervention.radius(settings.progress(update)))
