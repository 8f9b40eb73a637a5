"""Feasible motions in the formats of others: forces and torques agree with MuJoCo's own inverse dynamics."""

from dataclasses import fields

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.mocap import load_body_points
from humanoid_control.performing import as_whole_body, make_feasible, write_with_forces
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.retargeting import INTERCHANGE, WholeBodyTask
from humanoid_control.robots import load_robot
from humanoid_control.simulation.drives.position_control import default_gains
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.walking.gait import GRAVITY


@pytest.fixture(scope="module")
def made():
    robot = load_robot("hrp2", "floating")
    task = WholeBodyTask.of(load_body_points("dance").cropped(350), robot)
    retargeted = task.solve(method="clip")
    return robot, make_feasible(retargeted.trajectory, robot), retargeted.targets


def test_mujocos_inverse_dynamics_gives_the_exported_torques(made, tmp_path):
    mujoco = pytest.importorskip("mujoco")
    from humanoid_control.simulation.worlds.mujoco_world import mjcf_text

    robot, m, _ = made
    write_with_forces(tmp_path / "m.npz", m, robot, "mujoco")
    with np.load(tmp_path / "m.npz", allow_pickle=False) as file:
        arrays = dict(file)
    model = mujoco.MjModel.from_xml_string(mjcf_text(robot, WorldSettings(gravity=GRAVITY), default_gains(robot)))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    data, soles = mujoco.MjData(model), RigidSoles.of(robot)
    names = [str(n) for n in arrays["joint_names"]]
    q_at = [int(model.joint(n).qposadr[0]) for n in names]
    v_at = [int(model.joint(n).dofadr[0]) for n in names]
    found, told, base = [], [], []
    for k in range(0, len(m), 23):
        data.qpos[:7], data.qvel[:6], data.qacc[:6] = (
            arrays["qpos"][k, :7],
            arrays["qvel"][k, :6],
            arrays["qacc"][k, :6],
        )
        data.qpos[q_at], data.qvel[v_at] = arrays["qpos"][k, 7:], arrays["qvel"][k, 6:]
        data.qacc[v_at] = arrays["qacc"][k, 6:]
        mujoco.mj_inverse(model, data)
        left = data.qfrc_inverse.copy()
        pin.forwardKinematics(robot.model, robot.data, m.q[k])
        for i in range(8):
            joint = soles.joints[i // 4]
            place = robot.data.oMi[joint].act(soles.X_joint_sole[i // 4].act(soles.corners[i // 4, i % 4]))
            J = np.zeros((3, model.nv))
            mujoco.mj_jac(model, data, J, None, place, model.body(robot.model.names[joint]).id)
            left -= J.T @ arrays["contact_force"][k, i]
        found.append(left[v_at])
        told.append(arrays["qfrc_actuator"][k, 6:])
        base.append(left[:6] - arrays["qfrc_actuator"][k, :6])
    rms = np.sqrt(np.mean(np.square(told)))
    assert np.sqrt(np.mean(np.square(np.array(found) - told))) < 0.02 * rms
    assert np.abs(base).max() < 1.0 and float(arrays["timestep"]) == 1 / m.rate


def test_every_layout_is_written_and_shows_the_same_frames(made, tmp_path):
    robot, m, targets = made
    whole = as_whole_body(m, targets)
    assert len(whole.targets.positions) == len(whole.trajectory.positions) == len(m)
    assert whole.targets.rate == m.rate
    for name, layout in INTERCHANGE.items():
        if name == "keyframes":
            continue
        layout.write(tmp_path / f"{name}{layout.suffix}", whole.trajectory, robot)
        assert (tmp_path / f"{name}{layout.suffix}").stat().st_size > 1000
    with np.load(tmp_path / "protomotions.npz") as file:
        assert (file["foot_contacts"].astype(bool) == m.stands).all() and float(file["fps"]) == m.rate
    same = {f.name for f in fields(targets)} - {"name", "notes", "rate"}
    assert {"positions", "soles", "contacts"} <= same


def test_forces_carry_the_mass_and_its_momentum(made):
    robot, m, _ = made
    total = m.forces.sum(axis=1) + m.missing[:, :3]
    wanted = robot.mass * (m.center_acceleration + [0.0, 0.0, GRAVITY])
    assert np.abs(total - wanted).max() < 1.0
    soles = RigidSoles.of(robot)
    R, p = soles.poses(robot, m.q)
    corners = (np.einsum("tfij,fkj->tfki", R, soles.corners) + p[:, :, None]).reshape(len(m), 8, 3)
    center = np.array([pin.centerOfMass(robot.model, robot.data, q).copy() for q in m.q])
    moment = np.cross(corners - center[:, None], m.forces).sum(axis=1) + m.missing[:, 3:]
    assert np.abs(moment - m.momentum_rate).max() < 1.0
