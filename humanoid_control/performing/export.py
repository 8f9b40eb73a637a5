"""Export of feasible motions."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.files import whole_file
from humanoid_control.performing.dynamic_motion import DynamicMotion
from humanoid_control.retargeting import WholeBodyMotion
from humanoid_control.retargeting.interchange import qpos, tree_order
from humanoid_control.retargeting.whole_body.scaling import WholeBodyTargets
from humanoid_control.robots import Robot

DYNAMIC, MUJOCO = "dynamic", "mujoco"
WITH_FORCES = (DYNAMIC, MUJOCO)  # formats that keep forces and torques


def mujoco_arrays(motion: DynamicMotion, robot: Robot) -> dict[str, Any]:
    """Return MuJoCo arrays: qpos (T, 7 + n), qvel, qacc, qfrc_actuator (T, 6 + n), contact_force (T, 8, 3).

    Root velocity and acceleration: linear in the world, angular in the root frame. Forces: on sole corners, in the
    world.
    """
    names = tree_order(robot)
    columns = [robot.index[name] for name in names]
    R = np.array([pin.Quaternion(x).toRotationMatrix() for x in motion.q[:, 3:7]])
    slide, turn = motion.v[:, :3], motion.v[:, 3:6]
    linear = motion.a[:, :3] + np.cross(turn, slide)
    qvel = np.hstack([np.einsum("tij,tj->ti", R, slide), turn, motion.v[:, 6:][:, columns]])
    qacc = np.hstack([np.einsum("tij,tj->ti", R, linear), motion.a[:, 3:6], motion.a[:, 6:][:, columns]])
    return {
        "qpos": qpos(motion.trajectory(), robot),
        "qvel": qvel,
        "qacc": qacc,
        "qfrc_actuator": np.hstack([np.zeros((len(motion), 6)), motion.torque[:, columns]]),
        "contact_force": motion.forces,
        "timestep": 1.0 / motion.rate,
        "joint_names": np.array(names),
    }


def write_with_forces(path: Path, motion: DynamicMotion, robot: Robot, layout: str) -> None:
    """Write a motion in a format of WITH_FORCES.

    Raises:
        ConfigError: if it cannot be written.
    """
    if layout == DYNAMIC:
        motion.write(path)
        return
    with whole_file(path) as part:
        np.savez_compressed(part, **mujoco_arrays(motion, robot))


def as_whole_body(motion: DynamicMotion, targets: WholeBodyTargets) -> WholeBodyMotion:
    """Return motion and targets as a retargeted motion.

    Args:
        targets: targets of the source clip, at its frames.
    """
    frames = np.clip(np.round(motion.clock * targets.rate).astype(int), 0, len(targets.positions) - 1)
    T = len(targets.positions)

    def at(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: at(one) for name, one in value.items()}
        return value[frames] if isinstance(value, np.ndarray) and len(value) == T else value

    changed = {f.name: at(getattr(targets, f.name)) for f in fields(targets)}
    return WholeBodyMotion(motion.trajectory(), replace(targets, **(changed | {"rate": motion.rate})))
