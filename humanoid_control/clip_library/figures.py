"""Small figures of retargeted clips: packed joint positions.

A figure shows up to 8 s around the largest error at 10 Hz: kinematic tree and sole corners.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.evaluation.ground_contact import edge_corners
from humanoid_control.retargeting import POINTS, JointTrajectory, WholeBodyTrajectory
from humanoid_control.robots import Robot
from humanoid_control.robots.robot import FLOATING

RATE, SECONDS = 10.0, 8.0  # rate [Hz], duration [s]
LEAST = 0.01  # [m] closer joints share a point
BODY = 12  # number of body points in the errors, as in `clip_quality`


def figure_of(robot: Robot, trajectory: JointTrajectory) -> dict[str, Any]:
    """Return the figure of a trajectory as plain values.

    Returns:
        lines: pairs of connected points. points: P. frames: F. rate [Hz]. start: time of the first frame [s]. places:
            base64 of little-endian int16 (F, P, 3) [mm], z up. contacts: a hexadecimal digit per frame with a bit per
            sole edge on the floor, or empty. soles: four pairs of point indices, or [].
    """
    q = trajectory.q() if isinstance(trajectory, WholeBodyTrajectory) else trajectory.positions
    frames = _shown_frames(trajectory)
    points, lines, soles = _drawn_points(robot)
    places = np.empty((len(frames), len(points), 3))
    for k, t in enumerate(frames):
        pin.framesForwardKinematics(robot.model, robot.data, np.ascontiguousarray(q[t], dtype=float))
        for p, (joint, at) in enumerate(points):
            places[k, p] = robot.data.oMi[joint].act(at)
    if isinstance(trajectory, WholeBodyTrajectory):  # relative to the start, because int16 covers 32 m
        places[..., :2] -= places[0, 0, :2].copy()
    step = frames[1] - frames[0] if len(frames) > 1 else 1
    packed = np.clip(np.round(1000 * places), -32767, 32767).astype("<i2")
    contacts = ""
    if isinstance(trajectory, WholeBodyTrajectory) and soles:
        contacts = "".join(f"{int(row @ [1, 2, 4, 8]):x}" for row in trajectory.contacts[frames].astype(int))
    return {
        "lines": lines,
        "points": len(points),
        "frames": len(frames),
        "rate": round(trajectory.rate / step, 4),
        "start": round(float(frames[0] / trajectory.rate), 3),
        "places": base64.b64encode(packed.tobytes()).decode(),
        "contacts": contacts,
        "soles": soles,
    }


def _shown_frames(trajectory: JointTrajectory) -> np.ndarray:
    """Return evenly spaced frames around the largest mean error."""
    T = len(trajectory.positions)
    step = max(round(trajectory.rate / RATE), 1)
    length = int(SECONDS * RATE)
    worst = int(np.argmax(trajectory.errors[:, :BODY].mean(axis=1)))
    last_start = max(T - 1 - step * (length - 1), 0)
    first = min(max(worst - step * length // 2, 0), last_start)
    return np.arange(first, T, step)[:length]


def _drawn_points(robot: Robot) -> tuple[list[tuple[int, np.ndarray]], list[list[int]], list[list[int]]]:
    """Return points as (pinocchio joint, position in its frame [m]), lines, and sole corners."""
    model, data = robot.model, robot.data
    pin.framesForwardKinematics(model, data, robot.q("neutral"))
    points: list[tuple[int, np.ndarray]] = []
    lines: list[list[int]] = []
    point_of: dict[int, int] = {}

    def add(joint: int, at: np.ndarray, parent: int | None) -> int:
        points.append((joint, np.asarray(at, dtype=float)))
        if parent is not None:
            lines.append([parent, len(points) - 1])
        return len(points) - 1

    first = 1 if robot.base == FLOATING else 0
    point_of[first] = add(first, np.zeros(3), None)
    if first:
        point_of[0] = point_of[1]
    for joint in range(first + 1, model.njoints):
        parent = point_of[int(model.parents[joint])]
        before = data.oMi[points[parent][0]].act(points[parent][1])
        near = np.linalg.norm(data.oMi[joint].translation - before) < LEAST
        point_of[joint] = parent if near else add(joint, np.zeros(3), parent)
    for name in ("l_wrist", "r_wrist", "sternum"):
        if name in POINTS and name in robot.points:
            frame = model.frames[robot.points[name]]
            parent = point_of[int(frame.parentJoint)]
            before = data.oMi[points[parent][0]].act(points[parent][1])
            if np.linalg.norm(data.oMf[robot.points[name]].translation - before) >= LEAST:
                add(int(frame.parentJoint), frame.placement.translation, parent)
    return points, lines, _add_soles(robot, point_of, add)


def _add_soles(robot: Robot, point_of: dict[int, int], add: Any) -> list[list[int]]:
    """Add sole corners [l_heel, l_toe, r_heel, r_toe], two points each, if possible."""
    if robot.base != FLOATING:
        return []
    try:
        corners = edge_corners(robot)
    except RobotError:
        return []
    edges: list[list[int]] = []
    for ends in corners:
        edge = []
        for frame, place in ends:
            f = robot.model.frames[frame]
            ankle = point_of[int(f.parentJoint)] if len(edges) % 2 == 0 else None  # heels are connected to the legs
            edge.append(add(int(f.parentJoint), f.placement.act(place), ankle))
        edges.append(edge)
    return edges
