"""GMR, a whole-body retargeter of others, on the same person, frames and robot: where it is installed.

GMR (general_motion_retargeting) takes poses of a person's segments as SMPL-X defines them. They are made of the same
points that are ours, so both follow the same motion; its own configuration and robot model are used as they come, its
angles are put into our model of the robot by the names of the joints.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.evaluation.ground_contact import corner_paths
from humanoid_control.mocap import BodyPoints
from humanoid_control.retargeting import WholeBodyTrajectory
from humanoid_control.retargeting.whole_body.scaling import WHOLE_BODY_POINTS
from humanoid_control.robots import Robot

PEER = "general_motion_retargeting"
GMR_ROBOTS = {"g1": "unitree_g1", "t1": "booster_t1", "n1": "fourier_n1", "pm01": "engineai_pm01"}
UP = np.array([0.0, 0.0, 1.0])


def gmr_installed() -> bool:
    """True where GMR can be imported."""
    return importlib.util.find_spec(PEER) is not None


def gmr_trajectory(
    name: str, robot: Robot, body: BodyPoints, contacts: np.ndarray
) -> tuple[WholeBodyTrajectory, float]:
    """A clip moved by GMR, on the floor where its soles mostly are: it has none of its own.

    Args:
        name: of the robot, of GMR_ROBOTS. robot: our model of it.
        body: the person, on a level floor.
        contacts: (T, 4) of the person: it has none of its own either.

    Returns:
        The trajectory, without errors (NaN): its targets are scaled in another way; frames a second.
    """
    q, took = gmr_frames(name, robot, body)
    q[:, 2] -= gmr_floor(robot, q)
    joints = q[:, robot.iq :]
    v = np.zeros_like(joints)
    v[:-1] = np.diff(joints, axis=0) * body.rate
    nothing, T = np.full((len(q), len(WHOLE_BODY_POINTS)), np.nan), len(q)
    fast = np.mean(np.abs(v) >= robot.velocity, axis=1)
    trajectory = WholeBodyTrajectory(
        robot.joint_names,
        body.rate,
        joints,
        v,
        nothing,
        fast,
        np.full(T, np.nan),
        np.zeros(T, dtype=int),
        q[:, :3],
        q[:, 3:7],
        contacts,
    )
    return trajectory, 1e6 / float(np.median(took))


def gmr_floor(robot: Robot, q: np.ndarray) -> float:
    """Height of the floor under configurations (T, nq): the median of the lowest corner of the soles [m]."""
    return float(np.median(corner_paths(robot, q)[..., 2].min(axis=(1, 2))))


def gmr_frames(name: str, robot: Robot, body: BodyPoints) -> tuple[np.ndarray, list[float]]:
    """Configurations (T, nq) of our model that GMR finds, and the time of each frame [us]."""
    gmr = importlib.import_module(f"{PEER}.motion_retarget")
    solver = gmr.GeneralMotionRetargeting("smplx", GMR_ROBOTS[name], actual_human_height=stature(body))
    model = solver.model
    joints = {model.joint(j).name: int(model.jnt_qposadr[j]) for j in range(model.njnt) if model.jnt_type[j] == 3}
    known = [(k, joints[n]) for k, n in enumerate(robot.joint_names) if n in joints]
    q, took = np.tile(robot.q("neutral"), (body.n_frames, 1)), []
    for t, person in enumerate(smplx_frames(body)):
        begin = time.perf_counter()
        found = solver.retarget(person)
        took.append(1e6 * (time.perf_counter() - begin))
        q[t, :3], q[t, 3:7] = found[:3], found[[4, 5, 6, 3]]
        for k, address in known:
            q[t, 7 + k] = found[address]
    return q, took


def stature(body: BodyPoints) -> float:
    """Height of a person by the length of the legs, of which it is 1 / 0.491 above the ankles (Winter 2009) [m]."""
    leg = [
        np.median(np.linalg.norm(body.point(f"{s}_hip") - body.point(f"{s}_knee"), axis=1))
        + np.median(np.linalg.norm(body.point(f"{s}_knee") - body.point(f"{s}_ankle"), axis=1))
        for s in "lr"
    ]
    return float(np.mean(leg) / 0.491)


def smplx_frames(body: BodyPoints) -> list[dict[str, Any]]:
    """Poses of segments, frame by frame: name -> [position (3,) [m], quaternion (4,) w first].

    At rest, in a T, all have the axes x to the left, y up, z forward, as the joints of SMPL-X.
    """
    p = {name: body.point(name) for name in body.names}
    middle = 0.5 * (p["l_hip"] + p["r_hip"])
    left, up = _unit(p["l_hip"] - p["r_hip"]), p["sternum"] - middle if "sternum" in p else None
    if up is None:
        up = 0.5 * (p["l_shoulder"] + p["r_shoulder"]) - middle
    chest = 0.5 * (p["l_shoulder"] + p["r_shoulder"])
    pelvis = _frames(left, up, first="x")
    trunk = _frames(_unit(p["l_shoulder"] - p["r_shoulder"]), up, first="y")
    out = {"pelvis": (middle, pelvis), "spine3": (0.5 * (middle + chest), trunk)}
    for s, side, sign in (("l", "left", 1.0), ("r", "right", -1.0)):
        hip, knee, ankle, toe = (p[f"{s}_{n}"] for n in ("hip", "knee", "ankle", "toe"))
        across = pelvis[:, :, 0]
        out[f"{side}_hip"] = (hip, _frames(across, hip - knee, first="y"))
        out[f"{side}_knee"] = (knee, _frames(across, knee - ankle, first="y"))
        out[f"{side}_foot"] = (toe, _frames(np.cross(UP, toe - ankle), np.tile(UP, (len(toe), 1))))
        shoulder, elbow, wrist = (p[f"{s}_{n}"] for n in ("shoulder", "elbow", "wrist"))
        bend = np.cross(elbow - shoulder, wrist - elbow)  # the axis of the elbow: up, in a T with palms forward
        y = np.where(np.linalg.norm(bend, axis=1, keepdims=True) > 1e-3, bend, trunk[:, :, 1])
        y *= np.where(np.sum(y * trunk[:, :, 1], axis=1, keepdims=True) < 0, -1.0, 1.0)
        for joint, place, bone in (("shoulder", shoulder, elbow - shoulder), ("elbow", elbow, wrist - elbow)):
            out[f"{side}_{joint}"] = (place, _frames(sign * bone, y, first="x"))
        out[f"{side}_wrist"] = (wrist, out[f"{side}_elbow"][1])
    turned = {n: (x, np.array([pin.Quaternion(R).coeffs()[[3, 0, 1, 2]] for R in Rs])) for n, (x, Rs) in out.items()}
    return [{n: [x[t], r[t]] for n, (x, r) in turned.items()} for t in range(body.n_frames)]


def _frames(x: np.ndarray, y: np.ndarray, first: str = "y") -> np.ndarray:
    """Rotations (T, 3, 3) with columns x, y, z = x cross y; the first axis is kept, the other made square to it."""
    x, y = _unit(x), _unit(y)
    if first == "x":
        y = _unit(y - np.sum(x * y, axis=1, keepdims=True) * x)
    else:
        x = _unit(x - np.sum(x * y, axis=1, keepdims=True) * y)
    return np.stack([x, y, np.cross(x, y)], axis=2)


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-12)
