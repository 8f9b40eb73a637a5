"""Retargeting of a whole body, beside GMR where it is installed: the same person, frames and robot.

GMR (general_motion_retargeting) takes poses of a person's segments as SMPL-X defines them. They are made of the same
points that are ours, so both follow the same motion; its own configuration and robot model are used as they come, its
angles are put into our model of the robot by the names of the joints. The feet of both are judged by pinocchio's
kinematics of that model, in the contacts of the person.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.benchmarks import Row, row_of
from humanoid_control.errors import ConfigError
from humanoid_control.evaluation import measure_ground_contact
from humanoid_control.evaluation.ground_contact import corner_paths
from humanoid_control.mocap import BodyPoints, load_body_points
from humanoid_control.retargeting import WholeBodyRetargeter, WholeBodyScaler
from humanoid_control.retargeting.contacts import level
from humanoid_control.robots import Robot, load_robot
from humanoid_control.terminal import progress

COLUMNS = ["name", "unit", "median", "p99", "n"]
TITLE = "bench whole_body, a frame of root, arms and legs"
PEER = "general_motion_retargeting"
GMR_ROBOTS = {"g1": "unitree_g1", "t1": "booster_t1", "n1": "fourier_n1", "pm01": "engineai_pm01"}
UP = np.array([0.0, 0.0, 1.0])


def measure(robot: str = "lola,hrp2,suralp,wabian2", motion: str = "dance", quiet: bool = True) -> list[Row]:
    """Rows for each robot: time of a frame by the live method, beside GMR's; slip, penetration, skating of both.

    Args:
        robot: names or paths, separated by commas. motion: a clip that shows legs. quiet: no bar.

    Raises:
        ConfigError: no robot.
    """
    names = [n.strip() for n in robot.split(",") if n.strip()]
    if not names:
        raise ConfigError("--robot names no robot")
    body, out = load_body_points(motion), []
    with progress("whole bodies", len(names), quiet=quiet) as show:
        for k, name in enumerate(names):
            out += _rows(name, load_robot(name, "floating"), body)
            show(k + 1)
    return out


def _rows(name: str, robot: Robot, body: BodyPoints) -> list[Row]:
    scaler = WholeBodyScaler(body, robot)
    targets = scaler.targets(body)
    solver = WholeBodyRetargeter.following(targets, robot)
    frames, dt = solver.inputs(targets), 1.0 / targets.rate
    solver.start(frames, float(targets.heading[0]))
    q, contacts, took = [], [], []
    for k in range(len(targets)):
        begin = time.perf_counter()
        if k:
            solver.step(frames, k, dt)
        took.append(1e6 * (time.perf_counter() - begin))
        q.append(np.concatenate([pin.SE3ToXYZQUAT(solver.root), solver.joints]))
        contacts.append(solver.contacts.copy())
    ours = np.array(q)
    rows = [row_of(f"{name}_ours_live", "us", took[2:])]
    rows += _feet(f"{name}_ours", robot, ours, np.array(contacts), targets.rate)
    whole = time.perf_counter()
    solver.solve(targets)
    rows.append(row_of(f"{name}_ours_whole_clip", "us", [1e6 * (time.perf_counter() - whole) / len(targets)]))
    if name in GMR_ROBOTS and importlib.util.find_spec(PEER) is not None:
        theirs, times = _gmr(name, robot, level(body, scaler.floor))
        rows.append(row_of(f"{name}_gmr", "us", times[2:]))
        rows.append(row_of(f"{name}_gmr_over_ours", "", np.array(times[2:]) / np.array(took[2:])))
        floor = float(np.median(corner_paths(robot, theirs)[..., 2].min(axis=(1, 2))))  # it has none of its own
        rows += _feet(f"{name}_gmr", robot, theirs, targets.contacts, targets.rate, floor)
    return rows


def _feet(name: str, robot: Robot, q: np.ndarray, contacts: np.ndarray, rate: float, floor: float = 0.0) -> list[Row]:
    """Slip of each contact, penetration of each frame, skating; `floor` is its height [m]."""
    q = q.copy()
    q[:, 2] -= floor
    contact = measure_ground_contact(robot, q, contacts, rate)
    return [
        row_of(f"{name}_slip", "mm", 1e3 * contact.slip),
        row_of(f"{name}_penetration", "mm", 1e3 * contact.penetration),
        row_of(f"{name}_skating", "mm/s", [1e3 * contact.skating]),
    ]


# -------- GMR


def _gmr(name: str, robot: Robot, body: BodyPoints) -> tuple[np.ndarray, list[float]]:
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


def notes(rows: list[Row]) -> list[str]:
    """What the rows mean."""
    out = [
        "ours_live: a frame by `WholeBodyRetargeter.step`, as a node calls it, collisions and limits included; "
        "ours_whole_clip: the same in one call. slip: the longest way of a corner in each contact, ours in those of "
        "the robot; penetration: of each frame; skating: mean speed of corners below 5 mm.",
    ]
    if any("_gmr" in r["name"] for r in rows):
        out.append(
            "gmr: `GeneralMotionRetargeting.retarget`, its smplx configuration, solver and damping as they come, no "
            "collisions; slip in the person's contacts, the floor where its soles mostly are."
        )
    else:
        out.append(f"GMR is not installed ({PEER}), or none of these robots is its: {', '.join(GMR_ROBOTS)}.")
    return out
