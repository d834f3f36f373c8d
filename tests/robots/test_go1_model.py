"""The Go1's model: what it is made of and how it stands."""

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from safeexplorer.robots import go1, make

MODEL = go1.ROBOT.build_model()
HOME = np.array([0.0, 0.9, -1.8] * 4)  # the menagerie's standing pose, made for servos five times as stiff
LEGS = ("FR", "FL", "RR", "RL")


def stand(pose, seconds=10):
    """A Go1 that holds `pose` on the floor from 0.32 m."""
    simulation = make("go1", 1, autoreset=False, max_episode_steps=10_000)
    simulation.reset(seed=0)
    simulation.now.qpos[0] = np.concatenate(([0, 0, 0.32, 1, 0, 0, 0], pose))
    simulation.now.qvel[:] = 0
    for _ in range(round(seconds / go1.DT)):
        *_, info = simulation.step(pose[None])
    return simulation, info


# -- the model ---------------------------------------------------------------------------------------------


def test_has_twelve_hinges_and_weighs_12_743_kg():
    assert (MODEL.nq, MODEL.nv, MODEL.nu, MODEL.nbody) == (19, 18, 12, 14)
    assert MODEL.jnt_type.tolist() == [mujoco.mjtJoint.mjJNT_FREE] + [mujoco.mjtJoint.mjJNT_HINGE] * 12
    assert MODEL.body_mass.sum() == pytest.approx(12.743448)
    assert MODEL.ngeom == 43  # 42 colliding shapes and the floor
    assert MODEL.opt.timestep == 0.002
    assert MODEL.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    assert MODEL.opt.impratio == 100


def test_joints_and_servos_follow_the_tables():
    names = [f"{leg}_{joint}" for leg in LEGS for joint in ("hip", "thigh", "calf")]
    assert [MODEL.joint(i).name for i in range(1, 13)] == names
    assert [MODEL.actuator(i).name for i in range(12)] == names
    ranges = [(-0.863, 0.863), (-0.686, 4.501), (-2.818, -0.888)] * 4
    np.testing.assert_allclose(MODEL.jnt_range[1:], ranges)
    np.testing.assert_array_equal(MODEL.jnt_range[1:], np.stack((go1.JOINT_LOW, go1.JOINT_HIGH), axis=1))
    np.testing.assert_allclose(MODEL.actuator_ctrlrange, ranges)
    np.testing.assert_allclose(MODEL.jnt_axis[1:], [(1, 0, 0), (0, 1, 0), (0, 1, 0)] * 4)
    np.testing.assert_allclose(MODEL.actuator_forcerange[:, 1], [23.7, 23.7, 35.55] * 4)
    np.testing.assert_allclose(MODEL.actuator_forcerange[:, 0], -MODEL.actuator_forcerange[:, 1])
    np.testing.assert_allclose(MODEL.actuator_gainprm[:, 0], 20)
    np.testing.assert_allclose(MODEL.actuator_biasprm[:, :3], [(0, -20, 0)] * 12)
    np.testing.assert_allclose(MODEL.dof_damping[6:], 1.0)
    np.testing.assert_allclose(MODEL.dof_frictionloss[6:], 0.2)
    np.testing.assert_allclose(MODEL.dof_armature[6:], 0.01)


@pytest.mark.parametrize(
    ("body", "mass", "moments", "frame"),
    [
        ("trunk", 5.204, (0.0716565, 0.0630105, 0.0168101), (-0.00342088, 0.705204, 0.000106698, 0.708996)),
        ("FR_hip", 0.68, (7.34064e-4, 4.68438e-4, 3.98719e-4), (0.507341, 0.514169, 0.495027, 0.482891)),
        ("FL_hip", 0.68, (7.34064e-4, 4.68438e-4, 3.98719e-4), (0.482891, 0.495027, 0.514169, 0.507341)),
        ("RR_hip", 0.68, (7.34064e-4, 4.68438e-4, 3.98719e-4), (0.495027, 0.482891, 0.507341, 0.514169)),
        ("RL_hip", 0.68, (7.34064e-4, 4.68438e-4, 3.98719e-4), (0.514169, 0.507341, 0.482891, 0.495027)),
        ("FR_thigh", 1.009, (4.78717e-3, 4.60903e-3, 7.09268e-4), (0.65243, -0.0272313, 0.0775126, 0.753383)),
        ("RL_thigh", 1.009, (4.78717e-3, 4.60903e-3, 7.09268e-4), (0.753383, 0.0775126, -0.0272313, 0.65243)),
        (
            "RR_calf",
            0.195862,
            (1.49767e-3, 1.48468e-3, 3.58427e-5),
            (0.691246, 0.00357467, 0.00511118, 0.722592),
        ),
    ],
)
def test_inertias_follow_the_table_of_principal_moments(body, mass, moments, frame):
    """Moments and axes as published, compared as full matrices: an independent check of every sign."""
    axes = Rotation.from_quat(np.roll(frame, -1)).as_matrix()
    expected = axes @ np.diag(moments) @ axes.T
    compiled = MODEL.body(body)
    axes = Rotation.from_quat(np.roll(compiled.iquat, -1)).as_matrix()
    np.testing.assert_allclose(axes @ np.diag(compiled.inertia) @ axes.T, expected, atol=2e-6 * max(moments))
    assert compiled.mass[0] == pytest.approx(mass)


def test_legs_are_where_the_table_puts_them():
    np.testing.assert_allclose(MODEL.body("RL_hip").pos, (-0.1881, 0.04675, 0))
    np.testing.assert_allclose(MODEL.body("FR_thigh").pos, (0, -0.08, 0))
    np.testing.assert_allclose(MODEL.body("FL_calf").pos, (0, 0, -0.213))
    np.testing.assert_allclose(MODEL.body("RR_hip").ipos, (0.0049166, 0.00762615, -8.865e-5))
    np.testing.assert_allclose(MODEL.site("FR").pos, (0, 0, -0.213))
    foot = MODEL.geom("FR")
    assert foot.size[0] == 0.023 and foot.priority[0] == 1 and foot.condim[0] == 6
    np.testing.assert_allclose(foot.friction, (0.8, 0.02, 0.01))


def test_the_drawn_robot_moves_like_the_simulated_one():
    dressed = go1.ROBOT.picture()
    assert dressed.ngeom > MODEL.ngeom
    plain, fancy = mujoco.MjData(MODEL), mujoco.MjData(dressed)
    for model, data in ((MODEL, plain), (dressed, fancy)):
        data.qpos[:] = np.concatenate(([0, 0, 0.32, 1, 0, 0, 0], go1.DEFAULT_POSE))
        data.ctrl[:] = go1.DEFAULT_POSE + 0.2
        mujoco.mj_step(model, data, 200)
    np.testing.assert_array_equal(plain.qpos, fancy.qpos)


# -- standing ----------------------------------------------------------------------------------------------


def test_holding_the_default_pose_it_stands():
    simulation, info = stand(go1.DEFAULT_POSE)
    assert simulation.now.qpos[0, 2] == pytest.approx(0.281, abs=0.001)
    assert info["distance"][0] < 0.05
    assert not info["cost"].any()
    # The touch sensors carry its weight: 12.743 kg * 9.81 m/s^2 = 125.01 N
    assert simulation.now.sensordata.sum() == pytest.approx(125.01, abs=0.1)


def test_holding_the_menageries_pose_it_sags():
    """This pins the servo: at kp = 20 the knees give way by 0.4 rad."""
    simulation, info = stand(HOME)
    assert simulation.now.qpos[0, 2] < 0.22
    assert info["cost"][0] == 1


def test_standing_from_task_starts_never_falls_and_pays():
    simulation = make("go1", 8)
    simulation.reset(seed=0)
    hold = np.tile(go1.DEFAULT_POSE, (8, 1))
    for _ in range(300):
        _, reward, terminated, _, info = simulation.step(hold)
        assert not terminated.any()
    assert info["distance"].max() < 0.15
    assert 3.5 < reward.mean() < 5.5
