"""Tasks of frames: orientation, pose, relative pose, gaze.

Orientation errors are rotation vectors (Schwienbacher 2014, appendix C).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.ik.tasks.points import WORLD_AXES, FramePoint, PointTask
from humanoid_control.ik.tasks.task import Task, TaskGoal, frame_of, name_of, prepared
from humanoid_control.numerics.rotation import rotation_defect, rotation_error
from humanoid_control.robots.robot import Robot, joint_columns

NO_ROTATION = 1e-3  # largest deviation of R R^T from 1; allows single precision and printed matrices


def _check_rotation(name: str, R: np.ndarray) -> None:
    """Reject a scaled, skewed or mirrored target (3, 3); NaN passes, and the solver stops the robot."""
    if (off := rotation_defect(R)) > NO_ROTATION:
        raise ConfigError(
            f"task '{name}': the matrix of the target is not a rotation, off by {off:.2g}: its columns must be "
            "orthonormal and right-handed"
        )


class OrientationTask(Task):
    """Orientation of a frame, by the geometric Jacobian."""

    def __init__(
        self,
        robot: Robot,
        frame: str | int,
        relative_to: str | int | None = None,
        *,
        weight: float = 1.0,
        gain: float = 30.0,
        name: str | None = None,
    ) -> None:
        """Select the frame; other arguments as in `Task`.

        Args:
            frame: point or link, by name or frame id (`frame_of`).
            relative_to: point or link; default: the world.
        """
        super().__init__(name_of(robot, frame) if name is None else name, weight, gain)
        self.robot, self.frame = robot, frame_of(robot, frame)
        self.relative_to = None if relative_to is None else frame_of(robot, relative_to)
        self._R, self._velocity = np.zeros((3, 3)), np.zeros(3)
        self._target: np.ndarray | None = None

    def goal(self) -> TaskGoal:
        return self._goal(R=self.target, turn=self._velocity)

    @property
    def target(self) -> np.ndarray:
        """Desired rotation matrix (3, 3), in the axes of `relative_to` or of the world."""
        return self._known(self._target)

    @target.setter
    def target(self, value: np.ndarray) -> None:
        R = self._array("target", value, (3, 3))
        _check_rotation(self.name, R)
        self._R[...] = R
        self._target = self._R

    @property
    def velocity(self) -> np.ndarray:
        """Desired angular velocity (3,) [rad/s], in the axes of the target."""
        return self._velocity

    @velocity.setter
    def velocity(self, value: np.ndarray | None) -> None:
        self._put_velocity(self._velocity, value)

    def set_target(self, R: np.ndarray, velocity: np.ndarray | None = None) -> None:
        """Set the desired rotation matrix (3, 3) and angular velocity (3,) [rad/s], default zero."""
        self.target, self.velocity = R, velocity

    def set_target_from(self, q: np.ndarray) -> None:
        self.set_target(self.value(prepared(self.robot, q)))

    def value(self, data: pin.Data) -> np.ndarray:
        """Return the actual orientation (3, 3)."""
        A = data.oMf[self.frame].rotation
        return A if self.relative_to is None else data.oMf[self.relative_to].rotation.T @ A

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return rotation_error(self.value(data), self.target)

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        support, frames = robot.ancestor_mask, robot.model.frames
        share = support[frames[self.frame].parentJoint]
        v = self.velocity + self.gain * self.error(robot, data, q)
        if self.relative_to is None:
            return joint_columns(data)[3:] * share, v
        share = share - support[frames[self.relative_to].parentJoint]
        return data.oMf[self.relative_to].rotation.T @ (joint_columns(data)[3:] * share), v

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        model = robot.model
        alpha = pin.getFrameClassicalAcceleration(model, data, self.frame, WORLD_AXES).angular
        if self.relative_to is None:
            return alpha
        omega = pin.getFrameVelocity(model, data, self.frame, WORLD_AXES).angular
        alpha_0 = pin.getFrameClassicalAcceleration(model, data, self.relative_to, WORLD_AXES).angular
        omega_0 = pin.getFrameVelocity(model, data, self.relative_to, WORLD_AXES).angular
        return data.oMf[self.relative_to].rotation.T @ (alpha - alpha_0 - np.cross(omega_0, omega - omega_0))


class FrameTask(Task):
    """Pose of a frame in the world: three rows of position [m], three of orientation [rad]."""

    def __init__(
        self,
        robot: Robot,
        frame: str | int,
        *,
        weight: float = 1.0,
        gain: float = 30.0,
        orientation_weight: float = 0.3,
        name: str | None = None,
    ) -> None:
        """Select the frame; other arguments as in `Task`.

        Args:
            frame: point or link, by name or frame id (`frame_of`).
            orientation_weight: relative to position rows [m/rad].
        """
        super().__init__(name_of(robot, frame) if name is None else name, weight, gain)
        self.robot, self.frame, self.orientation_weight = robot, frame_of(robot, frame), orientation_weight
        self._X, self._X_target = pin.SE3.Identity(), None  # type: pin.SE3, pin.SE3 | None
        self._velocity, self._turn = np.zeros(3), np.zeros(3)

    def goal(self) -> TaskGoal:
        X = self.X_target
        return self._goal(X.translation, self._velocity, X.rotation.T, self._turn)

    @property
    def orientation_weight(self) -> float:
        """Weight of orientation rows relative to position rows [m/rad]."""
        return float(self._numbers[2])

    @orientation_weight.setter
    def orientation_weight(self, value: float) -> None:
        self._numbers[2] = value

    @property
    def X_target(self) -> pin.SE3:
        """Desired pose in the world."""
        return self._known(self._X_target)

    @X_target.setter
    def X_target(self, X: pin.SE3) -> None:
        R = X.rotation
        _check_rotation(self.name, R.T)  # its rows are contiguous in memory
        self._X.rotation, self._X.translation = R, X.translation
        self._X_target = self._X

    @property
    def target_velocity(self) -> np.ndarray:
        """Velocity of the target (3,) [m/s]."""
        return self._velocity

    @target_velocity.setter
    def target_velocity(self, value: np.ndarray | None) -> None:
        self._put_velocity(self._velocity, value)

    @property
    def target_turn(self) -> np.ndarray:
        """Angular velocity of the target (3,) [rad/s]."""
        return self._turn

    @target_turn.setter
    def target_turn(self, value: np.ndarray | None) -> None:
        self._put_velocity(self._turn, value)

    def set_target(self, X: pin.SE3, velocity: np.ndarray | None = None, turn: np.ndarray | None = None) -> None:
        """Set the desired pose, its velocity (3,) [m/s] and its angular velocity (3,) [rad/s], default zero."""
        self.X_target, self.target_velocity, self.target_turn = X, velocity, turn

    def set_target_from(self, q: np.ndarray) -> None:
        self.set_target(prepared(self.robot, q).oMf[self.frame])

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        X = data.oMf[self.frame]
        turn = rotation_error(X.rotation, self.X_target.rotation)
        return np.concatenate([self.X_target.translation - X.translation, self.orientation_weight * turn])

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        J = np.array(pin.getFrameJacobian(robot.model, data, self.frame, WORLD_AXES)).reshape(6, -1)
        J[3:] *= self.orientation_weight
        v = self.gain * self.error(robot, data, q)
        v[:3] += self.target_velocity
        v[3:] += self.orientation_weight * self.target_turn
        return J, v

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        a = pin.getFrameClassicalAcceleration(robot.model, data, self.frame, WORLD_AXES)
        return np.concatenate([a.linear, self.orientation_weight * a.angular])


class RelativeFrameTask(Task):
    """Pose of a frame relative to another frame of the robot, such as one hand to the other."""

    def __init__(
        self,
        robot: Robot,
        frame: str | int,
        relative_to: str | int,
        *,
        weight: float = 1.0,
        gain: float = 30.0,
        orientation_weight: float = 0.3,
        name: str | None = None,
    ) -> None:
        """Select both frames; arguments as in FrameTask."""
        super().__init__(name_of(robot, frame) if name is None else name, weight, gain)
        more = {"weight": weight, "gain": gain}
        self.place = PointTask(robot, frame, relative_to, relative_to, name=self.name, **more)
        self.turn = OrientationTask(robot, frame, relative_to, name=self.name, **more)
        self.orientation_weight = float(orientation_weight)

    def set_target(self, X: pin.SE3) -> None:
        """Set the desired pose in the other frame, at rest."""
        self.turn.set_target(X.rotation)
        self.place.set_target(X.translation)

    def set_target_from(self, q: np.ndarray) -> None:
        self.turn.set_target_from(q)
        self.place.set_target_from(q)

    @property
    def X_target(self) -> pin.SE3:
        """Desired pose in the other frame."""
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


STRAIGHT = 1e-9  # [rad] below this angle to straight ahead or straight behind, the series replaces the quotient


class GazeTask(Task):
    """Aim of a frame axis at a point: two rows, the angle across the axis [rad]; not smooth straight behind."""

    def __init__(
        self,
        robot: Robot,
        frame: str | int,
        axis: Sequence[float] = (1.0, 0.0, 0.0),
        *,
        weight: float = 1.0,
        gain: float = 30.0,
        name: str | None = None,
    ) -> None:
        """Select the frame and its axis; other arguments as in `Task`.

        Args:
            frame: point or link, by name or frame id (`frame_of`).
            axis: direction in the frame (3,), of any length.

        Raises:
            ConfigError: if the axis has no direction.
        """
        super().__init__(name_of(robot, frame) if name is None else name, weight, gain)
        length = float(np.linalg.norm(axis))
        if not length > 0:
            raise ConfigError(f"task '{self.name}': the axis must have a direction, got {list(axis)}")
        self.axis = np.array(axis, dtype=float) / length
        self.robot, self.eye = robot, FramePoint(robot, frame)
        self.frame = self.eye.frame
        self.across = np.linalg.svd(self.axis[None])[2][1:]  # (2, 3) two directions orthogonal to the axis
        self._target: np.ndarray | None = None
        self.velocity = np.zeros(3)

    @property
    def target(self) -> np.ndarray:
        """Gaze target (3,) in the world [m]."""
        return self._known(self._target)

    @target.setter
    def target(self, value: np.ndarray) -> None:
        self._target = value

    def set_target(self, point: np.ndarray | Sequence[float], velocity: np.ndarray | None = None) -> None:
        """Set the gaze target (3,) in the world [m] and its velocity (3,) [m/s], default zero."""
        self._target, self.velocity = self._array("point", point, (3,)), np.zeros(3)
        self._put_velocity(self.velocity, velocity)

    def set_target_from(self, q: np.ndarray) -> None:
        """Set the target to the point one metre along the axis at q (nq,)."""
        self.set_target(prepared(self.robot, q).oMf[self.frame].act(self.axis))

    def angle(self, data: pin.Data) -> float:
        """Return the angle between axis and sight line [rad]."""
        u = self._sight(data)[0]
        return float(np.arctan2(np.linalg.norm(self.across @ u), self.axis @ u))

    def _sight(self, data: pin.Data) -> tuple[np.ndarray, float]:
        """Return the direction to the target in the frame's axes, and the distance [m]."""
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
        # u turns against the frame, and moves across the sight line with the eye and the target.
        J_turn = joint_columns(data)[3:] * robot.ancestor_mask[robot.model.frames[self.frame].parentJoint]
        square = (np.eye(3) - np.outer(u, u)) / length
        A_T = X.rotation.T
        J_u = pin.skew(u) @ A_T @ J_turn - square @ A_T @ self.eye.jacobian(robot, data)
        return -D @ J_u, self.gain * self.error(robot, data, q) + D @ square @ A_T @ self.velocity
