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
import scipy.sparse
import scipy.sparse.linalg

from humanoid_control.evaluation.ground_contact import corner_paths
from humanoid_control.mocap import BodyPoints
from humanoid_control.retargeting import WholeBodyTrajectory
from humanoid_control.retargeting.whole_body.scaling import WHOLE_BODY_POINTS
from humanoid_control.robots import Robot

PEER = "general_motion_retargeting"
GMR_ROBOTS = {"g1": "unitree_g1", "t1": "booster_t1", "n1": "fourier_n1", "pm01": "engineai_pm01"}
UP = np.array([0.0, 0.0, 1.0])
BENT, CUTOFF = np.radians(30.0), 6.0  # an elbow bent so far shows its axis up to this frequency [Hz]; less bent: less
UNBENT = np.radians(1.0)  # bend from which on the axis seen counts more than that of a least rotation from the T
LOWEST = 25.0  # percentile of the ankle's height below which the foot is flat
LATERAL = 0.2  # share of the pelvis in the lateral axis of a level foot
OPPOSITE = -0.999  # cosine below which a least rotation is not defined well enough


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
        out[f"{side}_foot"] = (toe, foot_frames(ankle, toe, across))
        shoulder, elbow, wrist = (p[f"{s}_{n}"] for n in ("shoulder", "elbow", "wrist"))
        y = elbow_axes(elbow - shoulder, wrist - elbow, trunk, sign, body.rate)
        for joint, place, bone in (("shoulder", shoulder, elbow - shoulder), ("elbow", elbow, wrist - elbow)):
            out[f"{side}_{joint}"] = (place, _frames(sign * bone, y, first="x"))
        out[f"{side}_wrist"] = (wrist, out[f"{side}_elbow"][1])
    turned = {n: (x, np.array([pin.Quaternion(R).coeffs()[[3, 0, 1, 2]] for R in Rs])) for n, (x, Rs) in out.items()}
    return [{n: [x[t], r[t]] for n, (x, r) in turned.items()} for t in range(body.n_frames)]


def foot_frames(ankle: np.ndarray, toe: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Rotations (T, 3, 3) of a foot, which pitches and turns but does not roll.

    Its sole is level at the median slope of the frames in which the ankle is lowest. The heading of a foot that points
    down is not defined by its points: the lateral axis then comes from the pelvis.

    Args:
        ankle, toe: (T, 3) in the world [m]. left: (T, 3) lateral axis of the pelvis.
    """
    f = _unit(toe - ankle)
    flat = ankle[:, 2] <= np.percentile(ankle[:, 2], LOWEST)
    slope = float(np.median(np.arcsin(np.clip(f[flat, 2], -1.0, 1.0))))
    x = np.cross(UP, f) + LATERAL * left
    x = _unit(x - np.sum(x * f, axis=1, keepdims=True) * f)
    z = np.cos(slope) * f - np.sin(slope) * np.cross(f, x)
    return np.stack([x, np.cross(z, x), z], axis=2)


def elbow_axes(upper: np.ndarray, fore: np.ndarray, trunk: np.ndarray, sign: float, rate: float) -> np.ndarray:
    """Axes (T, 3) of an elbow, square to the upper arm and continuous while the arm is straight.

    An elbow bends one way only: that gives the sign. The straighter the arm, the less the points show of the axis: its
    angle about the upper arm is smoothed (Whittaker 1923), each frame with the weight sin^2 of the bend, in a frame
    carried along with the upper arm. An arm that is never bent has the axis of the least rotation from the T.

    Args:
        upper, fore: (T, 3) from shoulder to elbow, from elbow to wrist [m].
        trunk: (T, 3, 3) its rotation. sign: 1.0 for the left arm, -1.0 for the right one. rate: of the frames [Hz].
    """
    upper, fore = _unit(upper), _unit(fore)
    seen = -sign * np.cross(upper, fore)  # its length is the sine of the bend; up in a T, where forearms bend forward
    carried, rest = _carried(upper), _least_turned(sign * trunk[:, :, 0], upper, trunk[:, :, 1])
    across = np.cross(upper, carried)
    seen_z, rest_z = (np.sum(v * carried, axis=1) + 1j * np.sum(v * across, axis=1) for v in (seen, rest))
    bend = np.abs(seen_z)
    weight, pull = bend**2 + UNBENT**2, bend * seen_z + UNBENT**2 * rest_z
    smooth = np.sin(BENT) ** 2 * (rate / (2 * np.pi * CUTOFF)) ** 4
    z = _whittaker(weight, pull, smooth)
    z /= np.maximum(np.abs(z), 1e-12)
    return z.real[:, None] * carried + z.imag[:, None] * across


def _whittaker(weight: np.ndarray, pull: np.ndarray, smooth: float) -> np.ndarray:
    """z (T,) of least sum |sqrt(w) z - pull / sqrt(w)|^2 + smooth sum |second differences of z|^2."""
    T = len(weight)
    if T < 3:
        return pull / weight
    D = scipy.sparse.diags([1.0, -2.0, 1.0], [0, 1, 2], shape=(T - 2, T))
    A = scipy.sparse.csc_matrix(scipy.sparse.diags(weight) + smooth * (D.T @ D))
    return np.asarray(scipy.sparse.linalg.spsolve(A, pull))


def _carried(along: np.ndarray) -> np.ndarray:
    """Unit vectors (T, 3) square to unit vectors (T, 3), each the one before turned as little as can be."""
    out = np.empty_like(along)
    last = np.eye(3)[np.argmin(np.abs(along[0]))]
    for t, x in enumerate(along):
        last = last if t == 0 else _least_turned(along[t - 1 : t], x[None], last[None])[0]
        last = last - (last @ x) * x
        last = out[t] = last / np.linalg.norm(last)
    return out


def _least_turned(a: np.ndarray, b: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v (T, 3) turned by the least rotation from unit vectors a to b; where they are opposite, as it is."""
    c = np.sum(a * b, axis=1, keepdims=True)
    s = a + b
    turned = v - np.sum(v * s, axis=1, keepdims=True) / np.maximum(1 + c, 1e-9) * s
    return np.where(c > OPPOSITE, turned + 2 * np.sum(v * a, axis=1, keepdims=True) * b, v)


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
