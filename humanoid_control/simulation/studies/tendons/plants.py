"""Tendon lengths that our geometry has no part in: by MuJoCo and by pinocchio's placements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin

from humanoid_control.tendons.files.tendon_model import TendonModel
from humanoid_control.tendons.mappings.mapping import Array
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import Point

RATE, HOLD = 100.0, 40  # of the samples [Hz]; how many samples the muscles are excited alike


def muscle_walk(path: Path, geometry: TendonGeometry, steps: int, seed: int) -> tuple[Array, Array]:
    """MuJoCo's own simulation of a model whose muscles are excited at random.

    Returns:
        Joint values (steps + 1, D) in the order of the geometry, and MuJoCo's lengths since zero (steps + 1, M) [m].
    """
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(path))
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    joints = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, n) for n in geometry.joint_names]
    tendons = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_TENDON, n) for n in geometry.tendon_names]
    at = model.jnt_qposadr[joints]
    data.qpos[:] = 0.0
    mujoco.mj_forward(model, data)
    zero = data.ten_length[tendons].copy()
    data.qpos[at] = geometry.limits.mean(axis=1)
    repeats = max(1, round(1.0 / (RATE * model.opt.timestep)))
    q, lengths = np.empty((steps + 1, len(joints))), np.empty((steps + 1, len(tendons)))
    for k in range(steps + 1):
        if k % HOLD == 0:
            data.ctrl[:] = rng.uniform(0.0, 1.0, model.nu) ** 2
        if k:
            mujoco.mj_step(model, data, repeats)
        mujoco.mj_forward(model, data)  # after a step the lengths are still those before it
        q[k], lengths[k] = data.qpos[at], data.ten_length[tendons] - zero
    return q, lengths


def placed_lengths(robot: TendonModel, joints: Sequence[str], values: Array, held: Mapping[str, float]) -> Array:
    """Lengths since zero (T, M) [m] of straight tendons between points placed by pinocchio.

    Args:
        joints: (D,) names. values: (T, D) [rad or m]. held: where other joints stay; neutral where not named.
    """
    model, data = robot.model, robot.model.createData()
    at = [model.joints[model.getJointId(n)].idx_q for n in joints]
    q = pin.neutral(model)
    for name, value in held.items():
        q[model.joints[model.getJointId(name)].idx_q] = value
    carriers = [
        [model.getFrameId(p.link, pin.FrameType.BODY) for p in t.path if isinstance(p, Point)] for t in robot.tendons
    ]
    points = [[np.array(p.xyz) for p in t.path if isinstance(p, Point)] for t in robot.tendons]
    out = np.empty((len(values) + 1, len(points)))
    for row, value in zip(out, np.vstack([np.zeros(len(at)), values]), strict=True):
        q[at] = value
        pin.framesForwardKinematics(model, data, q)
        for m, (frames, xyz) in enumerate(zip(carriers, points, strict=True)):
            placed = np.array([data.oMf[f].act(x) for f, x in zip(frames, xyz, strict=True)])
            row[m] = np.linalg.norm(np.diff(placed, axis=0), axis=1).sum()
    return out[1:] - out[0]
