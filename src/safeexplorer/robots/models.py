"""Model files of the installed Gymnasium."""

from __future__ import annotations

from importlib.resources import files

import mujoco


def load_gymnasium_model(filename: str) -> mujoco.MjModel:
    """The compiled stock model, bit for bit.

    MuJoCo deprecates `settotalmass` in the file and asks to scale the compiled masses instead: the same numbers.
    """
    spec = mujoco.MjSpec.from_file(str(files("gymnasium.envs.mujoco") / "assets" / filename))
    total_mass, spec.compiler.settotalmass = spec.compiler.settotalmass, -1
    model = spec.compile()
    if total_mass > 0:
        mujoco.mj_setTotalmass(model, total_mass)
        mujoco.mj_setConst(model, mujoco.MjData(model))
    return model
