"""Model files: those beside a robot's own file, and those of the installed Gymnasium."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from safeexplorer.files.extras import load

if TYPE_CHECKING:
    import mujoco


def read_model(path: Path | str, drawn: bool = False) -> mujoco.MjModel:
    """A model file, compiled; geoms and lights of class "visual" only if it is to be drawn."""
    spec = read_spec(path)
    for part in [] if drawn else [*spec.geoms, *spec.lights]:
        if part.classname.name == "visual":
            spec.delete(part)
    return spec.compile()


def gymnasium_model(filename: str) -> mujoco.MjModel:
    """Gymnasium's own model, bit for bit.

    MuJoCo deprecates `settotalmass` in the file and asks to scale the compiled masses instead: the same numbers.
    """
    spec = read_spec(files("gymnasium.envs") / "mujoco" / "assets" / filename)
    total_mass, spec.compiler.settotalmass = spec.compiler.settotalmass, -1
    model = spec.compile()
    if total_mass > 0:
        import mujoco

        mujoco.mj_setTotalmass(model, total_mass)
        mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def read_spec(path: Path | str) -> mujoco.MjSpec:
    return load("mujoco", "robots", "a simulated robot").MjSpec.from_file(str(path))
