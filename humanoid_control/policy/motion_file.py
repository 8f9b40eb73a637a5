"""Motion files of trackers: arrays, tables, or clips to be retargeted.

Arrays as in GMR and TWIST2. A table row: root place and quaternion x y z w, then all joints in URDF order, as LAFAN1
retargeted by Unitree and rl_sar. Its rate is in the name (`walk_60hz.csv`), or 30 Hz.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.documents import load_arrays
from humanoid_control.errors import PolicyError, shown
from humanoid_control.mocap.formats.pickled import load_pickle
from humanoid_control.policy.reference import Motion
from humanoid_control.robots import Robot

MOST_BYTES = 100_000_000
ROOT, TABLE_RATE = 7, 30.0  # columns of the root; [Hz]
FIELDS = (
    ("fps", "root_pos", "root_rot", "dof_pos"),  # GMR, TWIST2
    ("rate", "root_position", "root_quaternion", "positions"),  # of `humanoid retarget --whole-body -o x.npz`
)


def load_motion(path: Path, robot: Robot, joints: tuple[str, ...], anchor: str = "") -> Motion:
    """Load a motion for a tracker.

    Args:
        path: .pkl, .npz, table, or clip of a person.
        joints: joint names of the tracker, in order.
        anchor: link with tracked rotation; empty: none.

    Raises:
        PolicyError: if unreadable or of another robot.
        ClipError: if a clip or pickle cannot be read.
    """
    motion = _load(path, robot, joints)
    return motion._replace(R_anchor=_anchor_rotations(motion, robot, joints, anchor)) if anchor else motion


def _anchor_rotations(motion: Motion, robot: Robot, joints: tuple[str, ...], anchor: str) -> np.ndarray:
    """Return rotations (T, 3, 3) of a link."""
    index, q = [robot.index[j] for j in joints], robot.joints(robot.q()).copy()
    frame, out = robot.model.getFrameId(anchor, pin.FrameType.BODY), np.empty((len(motion.joints), 3, 3))
    for k, row in enumerate(motion.joints):
        q[index] = row
        R = pin.Quaternion(motion.quaternion[k] / np.linalg.norm(motion.quaternion[k])).toRotationMatrix()
        X = pin.SE3(R, motion.position[k])
        pin.forwardKinematics(robot.model, robot.data, robot.q(q, X))
        out[k] = pin.updateFramePlacement(robot.model, robot.data, frame).rotation
    return out


def _load(path: Path, robot: Robot, joints: tuple[str, ...]) -> Motion:
    if path.suffix == ".csv" and (table := _table(path)) is not None:
        return _of_table(path, table, robot, joints)
    if path.suffix not in (".pkl", ".npz"):
        return _retargeted(path, robot, joints)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise PolicyError(f"{path}: larger than {MOST_BYTES // 10**6} MB: not a motion")
        values = load_arrays(path) if path.suffix == ".npz" else load_pickle(path.read_bytes(), str(path))
    except (OSError, ValueError) as e:
        raise PolicyError(f"{shown(path, 300)}: cannot be read: {getattr(e, 'strerror', None) or shown(e)}") from None
    if isinstance(values, Mapping):
        for names in FIELDS:
            if set(names) <= set(values):
                return _motion(path, values, names, robot, joints)
    if path.suffix == ".npz":  # a clip of a person
        return _retargeted(path, robot, joints)
    raise PolicyError(f"{path}: contains no robot motion: {', '.join(FIELDS[0])} are needed")


def _table(path: Path) -> np.ndarray | None:
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        rows = np.loadtxt(path, delimiter=",", ndmin=2, comments=None)
    except (OSError, ValueError):
        return None
    return rows if len(rows) >= 2 else None


def _of_table(path: Path, rows: np.ndarray, robot: Robot, joints: tuple[str, ...]) -> Motion:
    """Convert a numeric table."""
    if rows.shape[1] != ROOT + robot.n:
        raise PolicyError(
            f"{path}: {rows.shape[1]} columns of numbers: a motion of {robot.name} has {ROOT + robot.n}, position and "
            f"quaternion x y z w of the root, then its {robot.n} joints"
        )
    stated = re.search(r"(\d+) ?hz", path.stem, re.IGNORECASE)
    values = {
        "fps": float(stated.group(1)) if stated else TABLE_RATE,
        "root_pos": rows[:, :3],
        "root_rot": rows[:, 3:ROOT],
        "dof_pos": rows[:, ROOT:],
        "joint_names": list(robot.joint_names),
    }
    return _motion(path, values, FIELDS[0], robot, joints)


def _motion(
    path: Path, values: Mapping[str, Any], names: tuple[str, ...], robot: Robot, joints: tuple[str, ...]
) -> Motion:
    try:
        rate, position, quaternion, q = (np.asarray(values[n], dtype=float) for n in names)
        order = [str(n) for n in np.asarray(values.get("joint_names", joints)).ravel()]
    except (TypeError, ValueError):
        raise PolicyError(f"{path}: {', '.join(names)} must be numbers") from None
    count = len(q)
    shapes = position.shape == (count, 3) and quaternion.shape == (count, 4) and q.ndim == 2 and rate.size == 1
    if not shapes or count < 2 or not all(np.isfinite(a).all() for a in (rate, position, quaternion, q)):
        raise PolicyError(f"{path}: {', '.join(names)} must be a rate and finite arrays with the same number of frames")
    if not 1.0 <= float(rate.ravel()[0]) <= 1000.0 or (np.linalg.norm(quaternion, axis=1) < 0.5).any():
        raise PolicyError(f"{path}: a rate of 1 to 1000 Hz and unit quaternions are needed")
    missing = [j for j in joints if j not in order]
    if missing or q.shape[1] != len(order):
        what = f"no joint '{missing[0]}'" if missing else f"{q.shape[1]} joints for {len(order)} names"
        raise PolicyError(f"{path}: it has {what}: it belongs to another robot than {robot.name}")
    return Motion(float(rate.ravel()[0]), position, quaternion, q[:, [order.index(j) for j in joints]])


def _retargeted(path: Path, robot: Robot, joints: tuple[str, ...]) -> Motion:
    from humanoid_control.mocap import load_body_points  # slow to import, and seldom needed
    from humanoid_control.retargeting import retarget_whole_body

    t = retarget_whole_body(load_body_points(str(path)), robot)
    trajectory = getattr(t, "trajectory", t)
    order = [trajectory.joint_names.index(j) for j in joints if j in trajectory.joint_names]
    if len(order) != len(joints):
        raise PolicyError(f"{path}: {robot.name} lacks joints of the tracker")
    return Motion(trajectory.rate, trajectory.root_position, trajectory.root_quaternion, trajectory.positions[:, order])
