"""What the Go1 and its world look like: shapes in group 2 that never collide and weigh nothing."""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

BOX, SPHERE, ELLIPSOID = (
    mujoco.mjtGeom.mjGEOM_BOX,
    mujoco.mjtGeom.mjGEOM_SPHERE,
    mujoco.mjtGeom.mjGEOM_ELLIPSOID,
)
CAPSULE, CYLINDER = mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_CYLINDER

MATERIALS = {  # name -> (colour, specular, shininess)
    "shell": ((0.83, 0.85, 0.87, 1), 0.6, 0.7),
    "frame": ((0.15, 0.16, 0.18, 1), 0.4, 0.5),
    "motor": ((0.27, 0.29, 0.32, 1), 0.5, 0.6),
    "glass": ((0.04, 0.05, 0.07, 1), 0.9, 0.9),
    "accent": ((0.95, 0.45, 0.12, 1), 0.5, 0.5),
    "rubber": ((0.08, 0.08, 0.09, 1), 0.1, 0.1),
}


def add_scene(spec: mujoco.MjSpec) -> None:
    """Sky, checkered floor, daylight and the materials."""
    spec.stat.center, spec.stat.extent = (0, 0, 0.2), 0.8  # what shadows and clipping planes are scaled by
    spec.visual.headlight.ambient, spec.visual.headlight.diffuse = (0.35,) * 3, (0.25,) * 3
    spec.visual.headlight.specular = (0.1,) * 3
    spec.visual.quality.shadowsize, spec.visual.quality.offsamples = 4096, 8
    spec.visual.rgba.haze = (0.78, 0.84, 0.90, 1)
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=(0.45, 0.62, 0.82),
        rgb2=(0.88, 0.92, 0.96),
        width=256,
        height=1536,
    )
    spec.add_texture(
        name="tiles",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        mark=mujoco.mjtMark.mjMARK_EDGE,
        rgb1=(0.62, 0.66, 0.70),
        rgb2=(0.55, 0.59, 0.64),
        markrgb=(0.75, 0.78, 0.81),
        width=512,
        height=512,
    )
    floor = spec.add_material(name="floor", texrepeat=(4, 4), texuniform=True)
    floor.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "tiles"
    for name, (colour, specular, shininess) in MATERIALS.items():
        spec.add_material(name=name, rgba=colour, specular=specular, shininess=shininess)
    spec.worldbody.add_geom(
        name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=(0, 0, 0.05), material="floor"
    )
    spec.worldbody.add_light(
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        dir=(0.25, 0.3, -1),
        diffuse=(0.4, 0.4, 0.4),
        castshadow=False,
    )


def add_sun(trunk) -> None:
    """A lamp that follows the robot from high up, so that its shadow stays crisp wherever it walks."""
    trunk.add_light(
        mode=mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM,
        type=mujoco.mjtLightType.mjLIGHT_SPOT,
        pos=(-1.25, -1.5, 5),
        dir=(0.25, 0.3, -1),
        cutoff=75,
        exponent=1,
        diffuse=(0.42, 0.41, 0.38),
        specular=(0.3, 0.3, 0.3),
    )


def shapes(link: str, sx: int, sy: int) -> list[tuple]:
    """(material, type, size, position) or (material, type, radius, end, end) of every visible shape of a link."""
    return {
        "trunk": [
            ("frame", BOX, (0.17, 0.05, 0.045), (0, 0, 0)),
            ("shell", CAPSULE, 0.047, (-0.14, 0.045, 0.004), (0.15, 0.045, 0.004)),
            ("shell", CAPSULE, 0.047, (-0.14, -0.045, 0.004), (0.15, -0.045, 0.004)),
            ("shell", BOX, (0.145, 0.045, 0.008), (0.005, 0, 0.044)),
            ("frame", BOX, (0.09, 0.028, 0.006), (-0.02, 0, 0.052)),
            ("accent", BOX, (0.012, 0.028, 0.0065), (0.085, 0, 0.052)),
            ("frame", CAPSULE, 0.036, (0.17, 0, 0.002), (0.22, 0, 0.006)),
            ("shell", ELLIPSOID, (0.05, 0.068, 0.05), (0.235, 0, 0.004)),
            ("glass", ELLIPSOID, (0.04, 0.056, 0.037), (0.254, 0, 0.0)),
            ("shell", SPHERE, 0.008, (0.2865, 0.026, 0.006)),
            ("shell", SPHERE, 0.008, (0.2865, -0.026, 0.006)),
            ("motor", CYLINDER, 0.043, (0.145, 0.047, 0), (0.175, 0.047, 0)),
            ("motor", CYLINDER, 0.043, (0.145, -0.047, 0), (0.175, -0.047, 0)),
            ("motor", CYLINDER, 0.043, (-0.175, 0.047, 0), (-0.145, 0.047, 0)),
            ("motor", CYLINDER, 0.043, (-0.175, -0.047, 0), (-0.145, -0.047, 0)),
        ],
        "hip": [
            ("frame", CYLINDER, 0.036, (-0.03 * sx, 0, 0), (0.03 * sx, 0, 0)),
            ("motor", CYLINDER, 0.044, (0, 0.022 * sy, 0), (0, 0.062 * sy, 0)),
            ("frame", CYLINDER, 0.030, (0, 0.062 * sy, 0), (0, 0.070 * sy, 0)),
        ],
        "thigh": [
            ("motor", CYLINDER, 0.043, (0, -0.010 * sy, 0), (0, 0.022 * sy, 0)),
            ("accent", CYLINDER, 0.016, (0, 0.018 * sy, 0), (0, 0.0245 * sy, 0)),
            ("shell", CAPSULE, 0.025, (-0.006, 0, -0.025), (-0.014, 0, -0.10)),
            ("shell", CAPSULE, 0.020, (-0.014, 0, -0.10), (-0.004, 0, -0.19)),
            ("frame", CYLINDER, 0.021, (0, -0.018, -0.213), (0, 0.018, -0.213)),
        ],
        "calf": [
            ("frame", CAPSULE, 0.014, (0.002, 0, -0.005), (0.016, 0, -0.10)),
            ("frame", CAPSULE, 0.011, (0.016, 0, -0.10), (0.003, 0, -0.195)),
            ("rubber", SPHERE, 0.023, (0, 0, -0.213)),
        ],
    }[link]


def dress(spec: mujoco.MjSpec, legs: Mapping[str, tuple[int, int]]) -> None:
    """Put the visible shapes on every link; legs as name -> (sx, sy)."""
    _add_shapes(spec.body("trunk"), "trunk", 0, 0)
    add_sun(spec.body("trunk"))
    for leg, (sx, sy) in legs.items():
        for link in ("hip", "thigh", "calf"):
            _add_shapes(spec.body(f"{leg}_{link}"), link, sx, sy)


def _add_shapes(body, link: str, sx: int, sy: int) -> None:
    for material, kind, size, *where in shapes(link, sx, sy):
        place = {"pos": where[0]} if len(where) == 1 else {"fromto": np.concatenate(where)}
        extent = size if np.ndim(size) else (size, 0, 0)
        body.add_geom(type=kind, size=extent, material=material, contype=0, conaffinity=0, group=2, **place)
