"""Feet of a biped: sole frames, support rectangles and force sensors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.collision.ssv.model import PoseArray
from humanoid_control.compiled.array_types import F2, F3, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import RobotError
from humanoid_control.kinematics.forward_kinematics import joint_axis
from humanoid_control.robots.joint_groups import JointGroups
from humanoid_control.robots.robot import Robot

SIDES = ("l", "r")
LEFT, RIGHT = 0, 1
# [m] distance within which joint axes count as one ankle; cosine between an axis and its direction
ANKLE, ACROSS = 0.08, 0.7
HELD = 0.9  # share of the ankle effort available to balance
NARROWEST = 0.02  # [m] minimum size of a reduced sole
RISEN, EVEN = 0.2, 0.02  # share of a rise that straightens the legs; [m] rise treated as level


@dataclass(frozen=True)
class SensedSole:
    """Flat sole with its force sensor.

    Attributes:
        X_joint_sensor: sensor pose: middle of the rectangle, axes of the link.
    """

    name: str
    joint: int
    X_joint_sensor: pin.SE3


class Reaction(NamedTuple):
    """Ground reaction on both soles.

    Attributes:
        force: (3,) in the world [N].
        zmp: (2,) ZMP at the height of the loaded soles [m]; between the soles without load.
        yaw_torque: about the vertical through `zmp` [N m].
        friction: tangential over normal force.
    """

    force: np.ndarray
    zmp: np.ndarray
    yaw_torque: float
    friction: float


def reaction_of(soles: Sequence[pin.SE3], wrenches: np.ndarray) -> Reaction:
    """Sum the wrenches (2, 6) of `Feet.wrenches` under both soles."""
    # Force and torque of each sole in world axes, and the sole positions.
    felt = [(w.reshape(2, 3) @ X.rotation.T).tolist() for X, w in zip(soles, wrenches, strict=True)]
    places = [X.translation.tolist() for X in soles]
    # total force; felt[k] holds force and torque of foot k
    tx, ty, carried = (left + right for left, right in zip(felt[0][0], felt[1][0], strict=True))
    total = np.array([tx, ty, carried])
    if carried < 1.0:
        middle = 0.5 * (soles[0].translation + soles[1].translation)
        return Reaction(total, middle[:2].copy(), 0.0, 0.0)
    ground = sum(f[2] * p[2] for (f, _), p in zip(felt, places, strict=True)) / carried
    x = y = z = 0.0  # moment about the world origin, with the ground lifted to z = 0
    for ((fx, fy, fz), tau), (px, py, pz) in zip(felt, places, strict=True):
        x += py * fz - (pz - ground) * fy + tau[0]
        y += (pz - ground) * fx - px * fz + tau[1]
        z += px * fy - py * fx + tau[2]
    # zero-moment point: the horizontal moments vanish, zmp = (-M_y, M_x) / F_z
    zx, zy = -y / carried, x / carried
    return Reaction(total, np.array([zx, zy]), z - zx * ty + zy * tx, math.hypot(tx, ty) / carried)


class Feet:
    """Both feet of a robot; index 0 is left, 1 is right.

    The sole frame S is the point `l_foot_tcp` or `r_foot_tcp`: on the ground, x forward, z up. Force sensors
    measure in other frames, `<foot>_sole`. Several flat soles of a foot (Lola: foot and toe) count as one rectangle in
    S.

    Attributes:
        frames: (2,) ids of the sole frames.
        lower: (2, 2) lower corners of the support rectangles, in S [m].
        upper: (2, 2) upper corners [m]; limited to points at which toe joints and ankles hold the whole weight.
        middle: (2, 2) nominal ZMPs, in S [m].
        outlines: (2, 4, 2) corners of the full rectangles in S, counter-clockwise [m].
        width: lateral distance of the soles in the neutral posture [m].
    """

    def __init__(self, robot: Robot, inward: float = 0.0) -> None:
        """Find the feet of a robot.

        Args:
            inward: inward offset of the nominal ZMP [m].

        Raises:
            RobotError: if the base is fixed, or there are not two feet with soles.
        """
        missing = [f"{s}_foot_tcp" for s in SIDES if f"{s}_foot_tcp" not in robot.points]
        if missing or robot.base != "floating" or len(robot.feet) < 2:
            what = f"lacks the points {', '.join(missing)}" if missing else "does not have two soles under `feet`"
            what = "has a fixed base" if robot.base != "floating" else what
            raise RobotError(f"{robot.name} {what}: walking needs a floating base and two feet with soles")
        model = robot.model
        self.frames = tuple(robot.points[f"{s}_foot_tcp"] for s in SIDES)
        self.soles: tuple[list[SensedSole], list[SensedSole]] = ([], [])
        q = robot.q("neutral")
        pin.framesForwardKinematics(model, robot.data, q)
        X_sole = [robot.data.oMf[f].copy() for f in self.frames]
        weight = robot.mass * 9.81
        boxes: list[list[np.ndarray]] = [[], []]
        whole: list[list[np.ndarray]] = [[], []]
        for foot in robot.feet:
            frame = model.frames[model.getFrameId(foot.link, pin.FrameType.BODY)]
            side = self._side(robot, int(frame.parentJoint))
            if side is None:
                raise RobotError(f"{robot.name}: sole '{foot.name}' belongs to neither leg")
            corners = foot.corners()
            X = frame.placement * pin.SE3(np.eye(3), corners.mean(axis=0))
            self.soles[side].append(SensedSole(foot.name, int(frame.parentJoint), X))
            X_world_link = robot.data.oMi[frame.parentJoint] * frame.placement
            local = np.array([X_sole[side].actInv(X_world_link.act(c)) for c in corners])
            whole[side].append(local.copy())
            if frame.parentJoint != model.frames[self.frames[side]].parentJoint:
                tau = robot.effort[model.joints[frame.parentJoint].idx_v - robot.iv]
                local[:, 0] = np.minimum(local[:, 0], local[:, 0].min() + tau / weight)
            boxes[side].append(local)
        if not (boxes[0] and boxes[1]):
            raise RobotError(f"{robot.name}: a leg has no sole under `feet` in its robot file")
        self.lower = np.array([np.min([b[:, :2].min(axis=0) for b in boxes[s]], axis=0) for s in (0, 1)])
        self.upper = np.array([np.max([b[:, :2].max(axis=0) for b in boxes[s]], axis=0) for s in (0, 1)])
        for side in (0, 1):
            low, high = _held_by_ankle(robot, self.frames[side], X_sole[side])
            self.lower[side] = np.maximum(self.lower[side], np.minimum(low, self.upper[side] - NARROWEST))
            self.upper[side] = np.minimum(self.upper[side], np.maximum(high, self.lower[side] + NARROWEST))
        self.outlines = np.array([_rectangle(np.vstack(w)[:, :2]) for w in whole])
        self.middle = 0.5 * (self.lower + self.upper)
        self.middle[:, 1] = [-inward, inward]
        self.width = float(X_sole[0].translation[1] - X_sole[1].translation[1])
        self._names = [sole.name for side in self.soles for sole in side]
        self._sensors = Packed(self._sensor_arrays(model))
        self._poses: PoseArray | None = None

    def _sensor_arrays(self, model: pin.Model) -> SensorArrays:
        carriers = [model.frames[f] for f in self.frames]
        rows = [(side, sole.joint, sole.X_joint_sensor) for side in (0, 1) for sole in self.soles[side]]
        return SensorArrays(
            np.array([side for side, _, _ in rows], dtype=np.int64),
            np.array([joint for _, joint, _ in rows], dtype=np.int64),
            np.array([X.rotation for _, _, X in rows]),
            np.array([X.translation for _, _, X in rows]),
            np.array([f.parentJoint for f in carriers], dtype=np.int64),
            np.array([f.placement.rotation for f in carriers]),
            np.array([f.placement.translation for f in carriers]),
        )

    def _side(self, robot: Robot, joint: int) -> int | None:
        carriers = [robot.model.frames[f].parentJoint for f in self.frames]
        while joint:
            if joint in carriers:
                return carriers.index(joint)
            joint = robot.model.parents[joint]
        return None

    @property
    def sole_width(self) -> float:
        """Width of the broader sole [m]."""
        return float((self.upper - self.lower)[:, 1].max())

    def wrenches(self, data: pin.Data, measured: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return ground wrench on each foot (2, 6) about and in S: force [N], torque [N m].

        Args:
            measured: sole name -> (6,) wrench as in `Engine.foot_wrenches`.

        Raises:
            KeyError: if a sole has no measurement.
        """
        if self._poses is None or self._poses.data is not data:
            self._poses = PoseArray(data)
        out, felt = np.zeros((2, 6)), np.array([measured[name] for name in self._names], dtype=float)
        sum_sensor_wrenches(self._sensors.table, self._poses.rows(), felt, out)
        return out


class SensorArrays(NamedTuple):
    """Force sensors of both feet as kernel arrays.

    Attributes:
        R: (S, 3, 3) rotation in the joint.
        p: (S, 3) position in the joint [m].
        foot_joint: (2,) joint of the sole frame.
        foot_R: (2, 3, 3) rotation of S in its joint.
        foot_p: (2, 3) position of S in its joint [m].
    """

    side: I1
    joint: I1
    R: F3
    p: F2
    foot_joint: I1
    foot_R: F3
    foot_p: F2


@kernel(allocates=True)
def sum_sensor_wrenches(table: Table[SensorArrays], poses: np.ndarray, felt: np.ndarray, out: np.ndarray) -> None:
    """Add sensor wrenches to the wrenches (2, 6) of both feet, in their sole frames."""
    s = unpack(table, SensorArrays)
    for k in range(s.side.shape[0]):
        foot = s.side[k]
        R, p = carried_pose(poses[s.joint[k]], s.R[k], s.p[k])
        R_foot, p_foot = carried_pose(poses[s.foot_joint[foot]], s.foot_R[foot], s.foot_p[foot])
        f, tau, arm = np.zeros(3), np.zeros(3), p - p_foot  # in the world
        # rotate the measured wrench into the world
        for i in range(3):
            for j in range(3):
                f[i] += R[i, j] * felt[k, j]
                tau[i] += R[i, j] * felt[k, 3 + j]
        # shift the torque from the sensor to the origin of S: tau += arm x f
        tau[0] += arm[1] * f[2] - arm[2] * f[1]
        tau[1] += arm[2] * f[0] - arm[0] * f[2]
        tau[2] += arm[0] * f[1] - arm[1] * f[0]
        # express the wrench in S: R_foot^T f
        for i in range(3):
            for j in range(3):
                out[foot, i] += R_foot[j, i] * f[j]
                out[foot, 3 + i] += R_foot[j, i] * tau[j]


@kernel(allocates=True)
def carried_pose(joint: np.ndarray, R: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the world pose, (3, 3) and (3,), of a frame at R, p in a joint.

    Args:
        joint: (12,) pose as in PoseArray: rotation by columns, position.
    """
    turned, place = np.zeros((3, 3)), joint[9:].copy()
    # joint[3 j + i] is R_joint[i, j]: rotations are stored column by column
    for i in range(3):
        for j in range(3):
            place[i] += joint[3 * j + i] * p[j]
            for c in range(3):
                turned[i, c] += joint[3 * j + i] * R[j, c]
    return turned, place


class LegReach:
    """CoM height at which the legs keep a bend at the end of a step."""

    def __init__(self, robot: Robot, feet: Feet, crouch: float, share: float = 0.96) -> None:
        """Measure the legs.

        Args:
            crouch: minimum lowering of the CoM [m].
            share: usable share of the stretched leg.
        """
        q = robot.q("neutral")
        center = robot.center_of_mass(q)
        ground = float(min(robot.frame_positions(q, feet.frames)[:, 2]))
        leg = JointGroups.of(robot).l_leg
        ends = [robot.model.getJointId(robot.joint_names[leg[0]]), robot.model.frames[feet.frames[0]].parentJoint]
        hip, ankle = (robot.data.oMi[k].translation.copy() for k in ends)
        robot.frame_positions(robot.q("zero"), feet.frames)
        stretched = np.linalg.norm(np.subtract(*(robot.data.oMi[k].translation for k in ends)))
        self.length, self.above = share * float(stretched), float(hip[2] - ankle[2])
        self.neutral, self.crouch = float(center[2] - ground), crouch

    def height(self, step: float, rise: float = 0.0, raised: float = 0.0) -> float:
        """Return the CoM height above the soles [m].

        A rear foot lifts off about 0.6 steps behind its hip, when a fifth of a rise is done or of a descent is left.

        Args:
            rise: rise or fall of a step [m].
            raised: requested extra height [m].
        """
        # Pythagoras with the stretched leg as hypotenuse: hip height above the ankle at lift-off
        legs = float(np.sqrt(max(self.length**2 - (0.6 * step) ** 2, (0.5 * self.length) ** 2)))
        own = max(self.crouch, self.above - legs)
        return self.neutral - max(own - raised, self.above - legs) - RISEN * max(rise - EVEN, 0.0)


def _held_by_ankle(robot: Robot, frame: int, X_sole: pin.SE3) -> tuple[np.ndarray, np.ndarray]:
    """Return corners (2,) in S within which the ankle holds the whole weight; infinite if unlimited."""
    model, low, high = robot.model, np.full(2, -np.inf), np.full(2, np.inf)
    joint = int(model.frames[frame].parentJoint)
    ankle = robot.data.oMi[joint].translation
    while joint > 1 and np.linalg.norm(robot.data.oMi[joint].translation - ankle) < ANKLE:
        k = model.joints[joint].idx_v
        axis = X_sole.rotation.T @ robot.data.oMi[joint].rotation @ joint_axis(model, joint)[0]
        place = X_sole.actInv(robot.data.oMi[joint].translation)
        arm = HELD * float(robot.effort[k - robot.iv]) / (robot.mass * 9.81)
        along = 0 if abs(axis[1]) > abs(axis[0]) else 1  # a torque about y shifts the zero-moment point along x
        if abs(axis[1 - along]) > ACROSS:
            low[along] = max(low[along], float(place[along]) - arm)
            high[along] = min(high[along], float(place[along]) + arm)
        joint = int(model.parents[joint])
    return low, high


def _rectangle(points: np.ndarray) -> np.ndarray:
    (x0, y0), (x1, y1) = points.min(axis=0), points.max(axis=0)
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
