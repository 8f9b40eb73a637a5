"""Scaling of a person to a robot: seven points with the person's segment directions and the robot's lengths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.mocap import BodyPoints, torso_axes
from humanoid_control.robots import Robot

Frames = TypeVar("Frames", bound="MotionTargets")
Record = TypeVar("Record", bound=Any)

POINTS = ("sternum", "l_gh", "r_gh", "l_elbow", "r_elbow", "l_wrist", "r_wrist")
UPRIGHT_SHARE = 0.2
UNIT_VECTORS = ("forearms", "directions")  # fields


@dataclass(frozen=True)
class MotionTargets:
    """Targets of a motion, frame by frame.

    Attributes:
        positions: (T, P, 3) of the robot's points [m].
    """

    name: str
    rate: float
    positions: np.ndarray

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def duration(self) -> float:
        """Length of the clip [s]."""
        return (len(self.positions) - 1) / self.rate

    def paced(self: Frames, speed: float) -> Frames:
        """Return the motion at another pace (1: the current one) and the same rate, linearly interpolated.

        Flags are those of the frame before; unit vectors keep their length.
        """
        if speed == 1:
            return self
        at = np.arange(0.0, len(self) - 1 + 1e-9, speed)
        k = np.minimum(at.astype(int), len(self) - 2)

        def between(name: str, frames: np.ndarray) -> np.ndarray:
            if frames.dtype == bool:
                return frames[k]
            share = (at - k).reshape(-1, *[1] * (frames.ndim - 1))
            out = (1 - share) * frames[k] + share * frames[k + 1]
            return out / np.linalg.norm(out, axis=-1, keepdims=True) if name in UNIT_VECTORS else out

        return over_frames(self, between)


def over_frames(record: Record, change: Callable[[str, np.ndarray], np.ndarray]) -> Record:
    """Return a record with changed arrays of one row per frame of `positions`, also in mappings.

    Args:
        record: targets or a trajectory.
        change: from the field name and the array to the new array.
    """
    T = len(record.positions)

    def changed(name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: changed(name, one) for key, one in value.items()}
        return change(name, value) if isinstance(value, np.ndarray) and len(value) == T else value

    return replace(record, **{f.name: changed(f.name, getattr(record, f.name)) for f in fields(record)})


@dataclass(frozen=True)
class Targets(MotionTargets):
    """Target positions of the robot's seven points, in the order of POINTS, in the robot world.

    Attributes:
        body: (T, P, 3) the person's points with the robot's mid-hip and heading, for display [m].
        forearms: (T, 2, 3) unit vectors, left and right, from ulnar to radial side of the wrist, normal to the forearm;
            None: not shown.
    """

    body: np.ndarray
    body_names: tuple[str, ...]
    forearms: np.ndarray | None = None


def scale_to_robot(body: BodyPoints, robot: Robot, calibrate: bool = True) -> Targets:
    """Return robot targets from a person's body points (Dube 2012, section 4.5).

    Each target is the previous point of the chain mid-hip, sternum, shoulder, elbow, wrist, plus the robot's segment
    length times the person's unit vector. Path and heading of the person are ignored.

    Args:
        robot: fixed base.
        calibrate: rotate spine and clavicles so that the upright person maps to the zero posture; otherwise a low
            sternum marker makes the robot shrug. False follows Dube 2012.

    Raises:
        ClipError: if a segment has length zero.
        RobotError: if the robot lacks imitation points.
    """
    return Scaler(body, robot, calibrate).targets(body)


class Scaler:
    """Scaling from one person to one robot, calibrated once.

    Attributes:
        origin: (3,) mid-hip of the robot, to which the person's is moved [m].
    """

    def __init__(self, body: BodyPoints, robot: Robot, calibrate: bool = True) -> None:
        """Calibrate by frames that include an upright stance; arguments and errors as `scale_to_robot`."""
        robot.require_imitation_points()
        self._length = robot.segment_lengths()
        self.origin = robot.point_positions(robot.q("neutral"), ["mid_hip"])[0]
        self._turns: Turns | None = None
        if calibrate:
            at = dict(zip(body.names, np.moveaxis(body.in_pelvis(), 1, 0), strict=True))
            u_spine, u_clavicle = _trunk_directions(at, body.name)
            self._turns = _upright_turns(robot, u_spine, u_clavicle, at["l_shoulder"] - at["r_shoulder"])

    def targets(self, body: BodyPoints) -> Targets:
        """Return the targets of these frames.

        Raises:
            ClipError: if a segment has length zero.
        """
        p = body.in_pelvis()
        at = {name: p[:, k] for k, name in enumerate(body.names)}
        positions, u_lower = self.place(at, body.name)
        return Targets(body.name, body.rate, positions, p + self.origin, body.names, _forearms(at, u_lower))

    def place(self, at: Mapping[str, np.ndarray], clip: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return seven points (T, 7, 3) and forearm directions, from body points (T, 3) in the pelvis frame.

        Raises:
            ClipError: if a segment has length zero.
        """
        length = self._length
        u_spine, u_clavicle = _trunk_directions(at, clip)
        u_upper = {s: _unit(at[f"{s}_elbow"] - at[f"{s}_shoulder"], f"{s} upper arm", clip) for s in "lr"}
        u_lower = {s: _unit(at[f"{s}_wrist"] - at[f"{s}_elbow"], f"{s} lower arm", clip) for s in "lr"}
        if self._turns is not None:
            u_spine, u_clavicle = _turned(self._turns, u_spine, u_clavicle, at["l_shoulder"] - at["r_shoulder"])
        out = np.empty((len(u_spine), len(POINTS), 3))
        out[:, 0] = self.origin + length["spine"] * u_spine
        for k, s in enumerate("lr"):
            out[:, 1 + k] = out[:, 0] + length["clavicle"] * u_clavicle[s]
            out[:, 3 + k] = out[:, 1 + k] + length["upper_arm"] * u_upper[s]
            out[:, 5 + k] = out[:, 3 + k] + length["lower_arm"] * u_lower[s]
        return out, u_lower


def _trunk_directions(at: Mapping[str, np.ndarray], clip: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    u_spine = _unit(at["sternum"], "spine", clip)
    return u_spine, {s: _unit(at[f"{s}_shoulder"] - at["sternum"], f"{s} clavicle", clip) for s in "lr"}


def _forearms(at: dict[str, np.ndarray], u_lower: dict[str, np.ndarray]) -> np.ndarray | None:
    """Return forearm rotations (T, 2, 3), see Targets; None if a wrist has markers on one side only."""
    if not {"l_radius", "l_ulna", "r_radius", "r_ulna"} <= set(at):
        return None
    across = np.stack([at[f"{s}_radius"] - at[f"{s}_ulna"] for s in "lr"], axis=1)
    along = np.stack([u_lower[s] for s in "lr"], axis=1)
    across -= np.sum(across * along, axis=2, keepdims=True) * along
    length = np.linalg.norm(across, axis=2, keepdims=True)
    return across / length if (length > 0.005).all() else None


def _unit(v: np.ndarray, what: str, clip: str) -> np.ndarray:
    n = np.linalg.norm(v, axis=1, keepdims=True)
    short = np.flatnonzero(n[:, 0] < 0.02)
    if len(short):
        raise ClipError(f"{clip}: the {what} has no length in frame {short[0]}: two of its markers coincide")
    return v / n


Turns = tuple[np.ndarray, dict[str, np.ndarray]]
"""Rotation of the spine in the pelvis frame, and of both clavicles in the torso frame."""


def _upright_turns(
    robot: Robot, u_spine: np.ndarray, u_clavicle: dict[str, np.ndarray], shoulder_line: np.ndarray
) -> Turns:
    """Return the rotations of spine and clavicles that map the upright person to the zero posture."""
    points = ["mid_hip", "sternum", "l_gh", "r_gh"]
    hip, sternum, left, right = robot.point_positions(robot.q("zero"), points)
    rest_spine = (sternum - hip) / np.linalg.norm(sternum - hip)
    rest_torso = torso_axes(rest_spine[None], (left - right)[None])[0]
    rest_left = rest_torso.T @ ((left - sternum) / np.linalg.norm(left - sternum))

    upright = u_spine[:, 2] >= np.quantile(u_spine[:, 2], 1 - UPRIGHT_SHARE)
    mean_spine = np.median(u_spine[upright], axis=0) * [1, 0, 1]
    R_torso = torso_axes(u_spine, shoulder_line)
    local = {s: np.einsum("tji,tj->ti", R_torso, u_clavicle[s]) for s in "lr"}
    mirror = np.array([1.0, -1.0, 1.0])
    mean_left = np.median(local["l"][upright], axis=0) + mirror * np.median(local["r"][upright], axis=0)
    R_left = rotation_between(mean_left, rest_left)
    R = {"l": R_left, "r": np.diag(mirror) @ R_left @ np.diag(mirror)}
    return rotation_between(mean_spine, rest_spine), R


def _turned(
    turns: Turns, u_spine: np.ndarray, u_clavicle: dict[str, np.ndarray], shoulder_line: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    R_spine, R = turns
    R_torso = torso_axes(u_spine, shoulder_line)
    local = {s: np.einsum("tji,tj->ti", R_torso, u_clavicle[s]) for s in "lr"}
    turned = {s: np.einsum("ij,tjk,kl,tl->ti", R_spine, R_torso, R[s], local[s]) for s in "lr"}
    return u_spine @ R_spine.T, turned


def rotation_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the smallest rotation from direction a to b (Rodrigues)."""
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    w, c = np.cross(a, b), float(a @ b)
    W = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    return np.eye(3) + W + W @ W / (1 + c)
