"""A frame turned to an orientation, in the world or relative to another frame (appendix C).

Also here:

* A frame brought to a pose, in the world or relative to another frame.
* An axis of a link aimed at a point: looking, pointing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.ik.tasks.points import WORLD_AXES, FramePoint, PointTask, skew
from humanoid_control.ik.tasks.task import Task
from humanoid_control.numerics.rotation import rotation_error
from humanoid_control.robots.robot import Robot

# -------- A frame turned to an orientation, in the world or relative to another frame (appendix C)


class OrientationTask(Task):
    """Turn a frame to an orientation, by the geometric Jacobian: no angles, hence none of their singularities.

    Attributes:
        target: (3, 3) rotation matrix that is wanted, in the axes of `relative_to`, or of the world.
        velocity: (3,) angular velocity that is wanted, in the same axes [rad/s].
    """

    def __init__(
        self, name: str, frame: int, relative_to: int | None = None, weight: float = 1.0, gain: float = 30.0
    ) -> None:
        super().__init__(name, weight, gain)
        self.frame, self.relative_to = frame, relative_to
        self.target, self.velocity = np.eye(3), np.zeros(3)

    def value(self, data: pin.Data) -> np.ndarray:
        """The orientation that is reached, (3, 3)."""
        A = data.oMf[self.frame].rotation
        return A if self.relative_to is None else data.oMf[self.relative_to].rotation.T @ A

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return rotation_error(self.value(data), self.target)

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        support, frames = robot.ancestor_mask, robot.model.frames
        share = support[frames[self.frame].parentJoint]
        v = self.velocity + self.gain * self.error(robot, data, q)
        if self.relative_to is None:
            return data.J[3:] * share, v
        share = share - support[frames[self.relative_to].parentJoint]
        return data.oMf[self.relative_to].rotation.T @ (data.J[3:] * share), v

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        model = robot.model
        alpha = pin.getFrameClassicalAcceleration(model, data, self.frame, WORLD_AXES).angular
        if self.relative_to is None:
            return alpha
        omega = pin.getFrameVelocity(model, data, self.frame, WORLD_AXES).angular
        alpha_0 = pin.getFrameClassicalAcceleration(model, data, self.relative_to, WORLD_AXES).angular
        omega_0 = pin.getFrameVelocity(model, data, self.relative_to, WORLD_AXES).angular
        return data.oMf[self.relative_to].rotation.T @ (alpha - alpha_0 - np.cross(omega_0, omega - omega_0))


# -------- A frame brought to a pose, in the world or relative to another frame


class FrameTask(Task):
    """Bring a frame to a pose in the world: three rows of position [m], three of orientation [rad] (C.9-C.12).

    Attributes:
        X_target: the pose. target_velocity, target_turn: (3,) its velocity [m/s] and angular velocity [rad/s].
    """

    def __init__(
        self, name: str, frame: int, weight: float = 1.0, gain: float = 30.0, orientation_weight: float = 0.3
    ) -> None:
        super().__init__(name, weight, gain)
        self.frame, self.orientation_weight = frame, float(orientation_weight)
        self.X_target = pin.SE3.Identity()
        self.target_velocity, self.target_turn = np.zeros(3), np.zeros(3)

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        X = data.oMf[self.frame]
        turn = rotation_error(X.rotation, self.X_target.rotation)
        return np.concatenate([self.X_target.translation - X.translation, self.orientation_weight * turn])

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        J = np.array(pin.getFrameJacobian(robot.model, data, self.frame, WORLD_AXES))
        J[3:] *= self.orientation_weight
        v = self.gain * self.error(robot, data, q)
        v[:3] += self.target_velocity
        v[3:] += self.orientation_weight * self.target_turn
        return J, v

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        a = pin.getFrameClassicalAcceleration(robot.model, data, self.frame, WORLD_AXES)
        return np.concatenate([a.linear, self.orientation_weight * a.angular])


class RelativeFrameTask(Task):
    """Bring a frame to a pose relative to another frame of the same robot, such as one hand to the other.

    Attributes:
        place: the three rows of position, in the other frame's axes. turn: the three of orientation.
    """

    def __init__(
        self,
        name: str,
        robot: Robot,
        frame: int,
        relative_to: int,
        weight: float = 1.0,
        gain: float = 30.0,
        orientation_weight: float = 0.3,
    ) -> None:
        super().__init__(name, weight, gain)
        origin = FramePoint(robot, relative_to)
        self.place = PointTask(name, FramePoint(robot, frame), origin, relative_to, weight, gain)
        self.turn = OrientationTask(name, frame, relative_to, weight, gain)
        self.orientation_weight = float(orientation_weight)

    @property
    def X_target(self) -> pin.SE3:
        """The pose that is wanted, in the other frame."""
        return pin.SE3(self.turn.target, self.place.target)

    @X_target.setter
    def X_target(self, X: pin.SE3) -> None:
        self.turn.target, self.place.target = np.array(X.rotation), np.array(X.translation)

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        turn = self.orientation_weight * self.turn.error(robot, data, q)
        return np.concatenate([self.place.error(robot, data, q), turn])

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.place.gain = self.turn.gain = self.gain
        (J, v), (J_turn, v_turn) = self.place.rows(robot, data, q), self.turn.rows(robot, data, q)
        w = self.orientation_weight
        return np.vstack([J, w * J_turn]), np.concatenate([v, w * v_turn])

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        turn = self.orientation_weight * self.turn.drift(robot, data, q, v)
        return np.concatenate([self.place.drift(robot, data, q, v), turn])


# -------- An axis of a link aimed at a point: looking, pointing

STRAIGHT = 1e-9  # [rad] nearer than this to straight ahead, or straight behind, the series replaces the quotient


class GazeTask(Task):
    """Aim an axis of a frame at a point: two rows, the sight line's angle across the axis [rad].

    The rows are the components of the angle in two directions square to the axis. They are smooth everywhere but
    straight behind, where every direction is as good as another.

    Attributes:
        target: (3,) point to look at, in the world [m]. velocity: (3,) how fast it moves [m/s].
    """

    def __init__(
        self,
        name: str,
        robot: Robot,
        frame: int,
        axis: Sequence[float] = (1.0, 0.0, 0.0),
        weight: float = 1.0,
        gain: float = 30.0,
    ) -> None:
        """Make the task.

        Args:
            name: for reports.
            robot: whose.
            frame: which looks.
            axis: (3,) direction in that frame, of any length.
            weight, gain: as of every task.

        Raises:
            ConfigError: the axis has no direction.
        """
        super().__init__(name, weight, gain)
        length = float(np.linalg.norm(axis))
        if not length > 0:
            raise ConfigError(f"task '{name}': the axis must have a direction, got {list(axis)}")
        self.axis = np.array(axis, dtype=float) / length
        self.eye, self.frame = FramePoint(robot, frame), frame
        self.across = np.linalg.svd(self.axis[None])[2][1:]  # (2, 3) two directions square to the axis
        self.target, self.velocity = np.array([1e3, 0.0, 0.0]), np.zeros(3)

    def angle(self, data: pin.Data) -> float:
        """Angle between the axis and the sight line [rad]."""
        u = self._sight(data)[0]
        return float(np.arctan2(np.linalg.norm(self.across @ u), self.axis @ u))

    def _sight(self, data: pin.Data) -> tuple[np.ndarray, float]:
        """Direction to the target in the frame's axes, and the distance."""
        X = data.oMf[self.frame]
        d = X.rotation.T @ (self.target - X.translation)
        length = max(float(np.linalg.norm(d)), 1e-12)
        return d / length, length

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        u = self._sight(data)[0]
        side, c = self.across @ u, float(self.axis @ u)
        s = float(np.linalg.norm(side))
        if s < STRAIGHT:
            return side if c > 0 else np.array([np.pi, 0.0])
        return side * (np.arctan2(s, c) / s)

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X, (u, length) = data.oMf[self.frame], self._sight(data)
        side, c = self.across @ u, float(self.axis @ u)
        s = max(float(np.linalg.norm(side)), STRAIGHT)
        # e = k(c) B u, with k = angle / sine: de = (k B + k' B u a^T) du.
        k = np.arctan2(s, c) / s if s > STRAIGHT or c < 0 else 1.0
        dk = (k * c - 1) / s**2 if s > 1e-4 else -1.0 / 3.0
        D = k * self.across + dk * np.outer(side, self.axis)
        # u turns against the frame, and moves across the line of sight as the eye and the target move.
        J_turn = data.J[3:] * robot.ancestor_mask[robot.model.frames[self.frame].parentJoint]
        square = (np.eye(3) - np.outer(u, u)) / length
        A_T = X.rotation.T
        J_u = skew(u) @ A_T @ J_turn - square @ A_T @ self.eye.jacobian(robot, data)
        return -D @ J_u, self.gain * self.error(robot, data, q) + D @ square @ A_T @ self.velocity
