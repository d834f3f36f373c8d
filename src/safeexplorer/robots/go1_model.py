"""The Unitree Go1 as a MuJoCo model built from tables: 12 hinges, 12.743 kg, primitives only. SI units.

Front is +x, left is +y. `sx` is +1 for front legs and -1 for rear ones, `sy` +1 for left legs and -1 for right ones.
"""

from __future__ import annotations

import mujoco
import numpy as np

from safeexplorer.robots.go1_look import add_scene, dress

LEGS = {"FR": (1, -1), "FL": (1, 1), "RR": (-1, -1), "RL": (-1, 1)}  # name -> (sx, sy)
JOINTS = {  # name -> (axis, range in rad, torque limit in N m)
    "hip": ((1, 0, 0), (-0.863, 0.863), 23.7),
    "thigh": ((0, 1, 0), (-0.686, 4.501), 23.7),
    "calf": ((0, 1, 0), (-2.818, -0.888), 35.55),
}
KP = 20.0  # N m / rad, of the position servos
DAMPING = 1.0  # N m s / rad, of every joint
FRICTION_LOSS = 0.2  # N m
ARMATURE = 0.01  # kg m^2
FOOT = (0.0, 0.0, -0.213)  # in the calf's frame
FOOT_RADIUS = 0.023

BOX, SPHERE = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_SPHERE
CAPSULE, CYLINDER = mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_CYLINDER


def inertial(link: str, sx: int, sy: int) -> tuple[float, tuple, tuple]:
    """(mass, centre of mass, inertia about it as xx yy zz xy xz yz), in the link's frame."""
    return {
        "trunk": (
            5.204,
            (0.0223, 0.002, -0.0005),
            (1.681283e-2, 6.300955e-2, 7.165473e-2, -2.296758e-4, -2.945531e-4, -4.187327e-5),
        ),
        "hip": (
            0.68,
            (-0.0049166 * sx, -0.00762615 * sy, -8.865e-5),
            (
                3.993798e-4,
                7.334193e-4,
                4.684219e-4,
                -1.458973e-5 * sx * sy,
                1.246087e-6 * sx,
                1.575185e-6 * sy,
            ),
        ),
        "thigh": (
            1.009,
            (-0.00304722, -0.019315 * sy, -0.0305004),
            (4.598798e-3, 4.689223e-3, 8.174477e-4, 6.137374e-5 * sy, -2.275296e-4, 6.108080e-4 * sy),
        ),
        "calf": (
            0.195862,
            (0.00429862, 0.000976676, -0.146197),
            (1.484489e-3, 1.497636e-3, 3.606819e-5, -6.186249e-7, -1.772004e-5, -3.566275e-6),
        ),
    }[link]


def collision_shapes(link: str, sx: int, sy: int) -> list[tuple]:
    """(type, size, position) or (type, radius, end, end) of every colliding primitive but the foot."""
    return {
        "trunk": [
            (BOX, (0.125, 0.04, 0.057), (0, 0, 0)),
            (CYLINDER, 0.058, (-0.125, 0.04, 0), (0.125, 0.04, 0)),
            (CYLINDER, 0.058, (-0.125, -0.04, 0), (0.125, -0.04, 0)),
            (BOX, (0.005, 0.06, 0.05), (0.25, 0, 0)),
            (CAPSULE, 0.009, (0.25, 0.06, -0.045), (0.25, 0.06, 0.025)),
            (CAPSULE, 0.009, (0.25, -0.06, -0.045), (0.25, -0.06, 0.025)),
            (CAPSULE, 0.01, (0.25, -0.06, -0.05), (0.25, 0.06, -0.05)),
            (CAPSULE, 0.021, (0.255, -0.052, 0.0355), (0.255, 0.052, 0.0355)),
        ],
        "hip": [
            (CYLINDER, 0.046, (0, 0.025 * sy, 0), (0, 0.065 * sy, 0)),
            (CYLINDER, 0.031, (0, 0.045 * sy, 0), (0, 0.085 * sy, 0)),
            *([(CYLINDER, 0.046, (0, -0.02, 0), (0, 0.02, 0))] if sx < 0 else []),
        ],
        "thigh": [
            (CAPSULE, 0.015, (-0.02, 0, 0), (-0.02, 0, -0.16)),
            (CAPSULE, 0.015, (0, 0, 0), (-0.02, 0, -0.10)),
            (CAPSULE, 0.015, (-0.02, 0, -0.16), (0, 0, -0.20)),
        ],
        "calf": [
            (CAPSULE, 0.01, (0, 0, 0), (0.02, 0, -0.13)),
            (CAPSULE, 0.01, (0.02, 0, -0.13), (0, 0, -0.20)),
        ],
    }[link]


def build(dressed: bool = False) -> mujoco.MjModel:
    """nq 19, nv 18, nu 12, one touch sensor per foot; legs in the order FR, FL, RR, RL, each hip, thigh, calf.

    Undressed it has only the shapes that collide: a tenth faster, and every number is the same.
    """
    spec = mujoco.MjSpec()
    spec.modelname = "go1"
    spec.compiler.degree = False
    spec.option.timestep = 0.002
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = 100
    add_scene(spec)
    trunk = _add_link(spec.worldbody, "trunk", "trunk", (0, 0, 0.445), 0, 0)
    trunk.add_freejoint(name="root")
    for leg, (sx, sy) in LEGS.items():
        hip = _add_link(trunk, leg, "hip", (0.1881 * sx, 0.04675 * sy, 0), sx, sy)
        thigh = _add_link(hip, leg, "thigh", (0, 0.08 * sy, 0), sx, sy)
        calf = _add_link(thigh, leg, "calf", (0, 0, -0.213), sx, sy)
        _add_foot(spec, calf, leg)
        for joint in JOINTS:
            _add_servo(spec, leg, joint)
    if dressed:
        dress(spec, LEGS)
    return spec.compile()


def _add_link(parent, leg: str, link: str, position: tuple, sx: int, sy: int):
    body = parent.add_body(name=leg if link == "trunk" else f"{leg}_{link}", pos=position)
    body.explicitinertial = True
    body.mass, body.ipos, body.fullinertia = inertial(link, sx, sy)
    for shape, size, *where in collision_shapes(link, sx, sy):
        place = {"pos": where[0]} if len(where) == 1 else {"fromto": np.concatenate(where)}
        extent = np.resize(size, 3) if np.ndim(size) else (size, 0, 0)
        body.add_geom(
            type=shape, size=extent, group=3, condim=1, friction=(0.6, 0.005, 0.0001), margin=0.001, **place
        )
    if link in JOINTS:
        axis, span, _ = JOINTS[link]
        body.add_joint(
            name=f"{leg}_{link}",
            type=mujoco.mjtJoint.mjJNT_HINGE,
            axis=axis,
            range=span,
            limited=True,
            damping=[DAMPING, 0, 0],
            frictionloss=FRICTION_LOSS,
            armature=ARMATURE,
        )
    return body


def _add_foot(spec: mujoco.MjSpec, calf, leg: str) -> None:
    """A soft rubber ball that decides the contact on its own (priority 1), with a touch sensor around it."""
    calf.add_geom(
        name=leg,
        type=SPHERE,
        size=(FOOT_RADIUS, 0, 0),
        pos=FOOT,
        group=3,
        condim=6,
        priority=1,
        friction=(0.8, 0.02, 0.01),
        solimp=(0.015, 1, 0.031, 0.5, 2),
        margin=0.001,
    )
    calf.add_site(name=leg, type=SPHERE, size=(FOOT_RADIUS, 0, 0), pos=FOOT, group=5)
    spec.add_sensor(
        name=f"{leg}_touch",
        type=mujoco.mjtSensor.mjSENS_TOUCH,
        objtype=mujoco.mjtObj.mjOBJ_SITE,
        objname=leg,
    )


def _add_servo(spec: mujoco.MjSpec, leg: str, joint: str) -> None:
    """torque = clip(kp (target - q)), target within the joint's range."""
    _, span, torque = JOINTS[joint]
    servo = spec.add_actuator(
        name=f"{leg}_{joint}",
        trntype=mujoco.mjtTrn.mjTRN_JOINT,
        target=f"{leg}_{joint}",
        ctrllimited=True,
        ctrlrange=span,
        forcelimited=True,
        forcerange=(-torque, torque),
    )
    servo.set_to_position(kp=KP, kv=0)
