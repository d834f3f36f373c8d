"""Golden values of short runs of every kind of method and of every rendered table: what a change of shape must keep.

    python tests/golden/record.py FILE            records them, before the change
    python tests/golden/record.py FILE --check    compares, and names what differs

Bytes hold on one machine with one set of versions.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
SMALL = "--num-envs 2 --rollout-steps 128 --epochs 2 --minibatches 4 --steps 1536 --eval-every 3 --eval-episodes 1"
REGION = "--max-radius 0.6 --initial-radius 0.2"
RUNS = {
    "half_cheetah-ppo": f"half_cheetah --method ppo {SMALL}",
    "half_cheetah-safeexplorer": f"half_cheetah --method safeexplorer {REGION} {SMALL}",
    "half_cheetah-soft_decomposed": f"half_cheetah --method soft_decomposed {REGION} {SMALL}",
    "half_cheetah-truncated_is": f"half_cheetah --method truncated_is {REGION} {SMALL}",
    "half_cheetah-ppo_lagrangian": f"half_cheetah --method ppo_lagrangian {SMALL}",
    "half_cheetah-cpo": f"half_cheetah --method cpo {SMALL}",
    "half_cheetah-safeexplorer_auto": f"half_cheetah --method safeexplorer_auto --initial-radius 0.2 {SMALL}",
    "half_cheetah-rerolls": f"half_cheetah --method analytic --analytic-samples 3 --action-noise 0.1 {REGION} {SMALL}",
    "ant-safeexplorer": f"ant --method safeexplorer --initial-radius 0.15 {SMALL}",
    "go1-safeexplorer": f"go1 --method safeexplorer {SMALL}",
}
CLASS_RUN = """
import sys
import numpy as np
from safeexplorer import SafeExplorer, SafeRegion
agent = SafeExplorer(
    "InvertedPendulum-v5", recovery=lambda o: -2.0 * o[:, 1:2] - 0.5 * o[:, 3:4], num_envs=2, seed=3,
    region=SafeRegion(distance=lambda o: np.abs(o[:, 1]), radius=0.05), rollout_steps=128, epochs=2, minibatches=4,
)
agent.learn(total_timesteps=1536, folder=sys.argv[1])
"""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest_run(folder: Path) -> dict[str, str]:
    """Of the parameters and of the two tables of a run."""
    arrays = np.load(sorted((folder / "checkpoints").iterdir())[-1] / "arrays.npz")
    names = sorted(name for name in arrays.files if name.startswith("learner/"))
    parameters = b"".join(arrays[name].tobytes() for name in names)
    return {"parameters": digest(parameters)} | {
        name: digest((folder / name).read_bytes())
        for name in ("metrics.csv", "episodes.csv", "evaluations.csv")
    }


def command(*words: str, **options) -> str:
    program = [str(Path(sys.executable).parent / "safeexplorer"), *words]
    return subprocess.run(program, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def measure() -> dict[str, dict[str, str]]:
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, words in RUNS.items():
            folder = Path(scratch) / name
            command("train", *words.split(), "--out", str(folder), stderr=subprocess.DEVNULL)
            found[name] = digest_run(folder)
        folder = Path(scratch) / "class"
        subprocess.run([sys.executable, "-W", "ignore", "-c", CLASS_RUN, str(folder)], cwd=ROOT, check=True)
        found["class"] = digest_run(folder)
        listed = json.loads(command("paper", "--json", "--runs", "results"))
        found["paper"] = {"listing": digest(json.dumps(listed, sort_keys=True).encode())}
        for artefact in listed["artefacts"]:
            for kind in ("md", "csv", "json", "latex"):
                words = [
                    "render",
                    artefact["name"],
                    "--runs",
                    "results",
                    "--format",
                    kind,
                    "--figures",
                    scratch,
                ]
                try:
                    text = command(*words, stderr=subprocess.DEVNULL)
                except subprocess.CalledProcessError:
                    continue
                found.setdefault(f"render {artefact['name']}", {})[kind] = digest(text.encode())
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    args = parser.parse_args()
    path, found = args.file, measure()
    if not args.check:
        path.write_text(json.dumps(found, indent=1))
        return 0
    wanted = json.loads(path.read_text())
    wrong = [
        f"{run}: {k}" for run in wanted for k in wanted[run] if found.get(run, {}).get(k) != wanted[run][k]
    ]
    print("\n".join(wrong) or f"all {sum(map(len, wanted.values()))} golden values hold")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
