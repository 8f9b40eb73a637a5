"""Task: rows of J v = v_desired, with error and drift."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.array_types import F1
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots.robot import Robot

PROBE = 1e-4  # [s] step along a velocity of the finite difference of Jacobians


class TaskGoal(NamedTuple):
    """Memory of a task that compiled rows read.

    Attributes:
        numbers: weight, gain [1/s], weight of orientation rows (3,).
    """

    numbers: F1
    target: F1
    velocity: F1
    R: F1
    turn: F1


class Task(ABC):
    """Desired motion of m quantities; solvers minimise the sum of weight^2 |J v - v_desired|^2.

    Targets come from `set_target` or `set_target_from`; a task without a target raises ConfigError. Setters copy;
    getters return the task's own memory, and changes in place take effect.

    A task of your own overrides `rows` and `error`; nothing else is required. Pass it to `WholeBodyIk.step` like any
    other.

    Attributes:
        weight: in units that make rows comparable (1 / (m/s), 1 / (rad/s)).
        gain: decay rate of an error [1/s].
        level: priority, 0 first, for solvers with strict priorities.
        acceleration: desired acceleration besides feedback (m,), for second-order solvers; None: zero.
    """

    level: int = 0
    acceleration: np.ndarray | None = None

    def __init__(self, name: str, weight: float, gain: float) -> None:
        for what, value in (("weight", weight), ("gain", gain)):
            if isinstance(value, str) or np.ndim(value):
                raise ConfigError(f"task '{name}': {what} must be a number, got {value!r:.60}")
            if not value >= 0:
                raise ConfigError(f"task '{name}': {what} must not be negative, got {value:g}")
        self.name, self._numbers = name, np.array([weight, gain, 1.0])

    @property
    def weight(self) -> float:
        """Weight of all rows."""
        return float(self._numbers[0])

    @weight.setter
    def weight(self, value: float) -> None:
        self._numbers[0] = value

    @property
    def gain(self) -> float:
        """Decay rate of an error [1/s]."""
        return float(self._numbers[1])

    @gain.setter
    def gain(self, value: float) -> None:
        self._numbers[1] = value

    @abstractmethod
    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the Jacobian (m, nv) and desired velocity (m,) at q, with `data` computed at q."""

    @abstractmethod
    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        """Return desired minus actual value (m,) [m] or [rad]."""

    def set_target_from(self, q: np.ndarray) -> None:
        """Set the target to the value at the configuration q (nq,), at rest."""
        raise ConfigError(f"task '{self.name}' cannot take its target from a configuration")

    def goal(self) -> TaskGoal:
        """Return the memory for compiled rows."""
        raise NotImplementedError(f"{type(self).__name__} cannot be combined with other rows")

    def _goal(
        self,
        target: np.ndarray | None = None,
        velocity: np.ndarray | None = None,
        R: np.ndarray | None = None,
        turn: np.ndarray | None = None,
    ) -> TaskGoal:
        parts = ((target, 0), (velocity, 0), (R, 9), (turn, 3))
        return TaskGoal(self._numbers, *(np.zeros(n) if x is None else x.reshape(-1) for x, n in parts))

    def _known(self, target: Any) -> Any:
        """Return a target that has been set."""
        if target is None:
            raise ConfigError(f"task '{self.name}': its target was never set; use set_target or set_target_from")
        return target

    def _array(self, what: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
        out = np.array(value, dtype=float)
        if out.size != math.prod(shape):
            raise ConfigError(f"task '{self.name}': {what} must have the shape {shape}, got {out.shape}")
        return out.reshape(shape)

    def _put(self, memory: np.ndarray, what: str, value: Any) -> None:
        new = np.asarray(value, dtype=float)
        memory[...] = new if new.shape == memory.shape else self._array(what, new, memory.shape)

    def _put_velocity(self, memory: np.ndarray, value: Any) -> None:
        """Copy a velocity; None means zero."""
        if value is None:
            memory[...] = 0.0
        else:
            self._put(memory, "velocity", value)

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the acceleration dJ/dt v (m,) for zero joint acceleration (Schwienbacher 2014, eq. 4.18).

        Default: central differences of the Jacobian. `data` must contain velocities (`prepare_second_order`).
        """
        there = robot.model.createData()
        Jv = []
        for sign in (1.0, -1.0):
            at = pin.integrate(robot.model, q, sign * PROBE * v)
            prepare(robot, there, at)
            Jv.append(self.rows(robot, there, at)[0] @ v)
        return (Jv[0] - Jv[1]) / (2 * PROBE)


class VectorTask(Task):
    """Task with a vector value x = f(q), so its error is a difference."""

    def __init__(self, robot: Robot, size: int, name: str, weight: float, gain: float) -> None:
        """Create a task with `size` rows."""
        super().__init__(name, weight, gain)
        self.robot, self._velocity, self._value = known_robot(robot), np.zeros(size), np.zeros(size)
        self._target: np.ndarray | None = None

    def goal(self) -> TaskGoal:
        return self._goal(self.target, self._velocity)

    @property
    def target(self) -> np.ndarray:
        """Desired value (m,)."""
        return self._known(self._target)

    @target.setter
    def target(self, value: np.ndarray) -> None:
        self._put(self._value, "target", value)
        self._target = self._value

    @property
    def velocity(self) -> np.ndarray:
        """Desired rate of the value (m,)."""
        return self._velocity

    @velocity.setter
    def velocity(self, value: np.ndarray | None) -> None:
        self._put_velocity(self._velocity, value)

    def set_target(self, target: np.ndarray | Sequence[float] | float, velocity: np.ndarray | None = None) -> None:
        """Set the desired value (m,) and its rate (m,), default zero.

        Raises:
            ConfigError: if the size is not the number of rows.
        """
        self.target, self.velocity = np.asarray(target, dtype=float), velocity

    def set_target_from(self, q: np.ndarray) -> None:
        self.set_target(self.value(self.robot, prepared(self.robot, q), q))

    @abstractmethod
    def value(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        """Return f(q) (m,)."""

    @abstractmethod
    def jacobian(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        """Return df / dv (m, nv)."""

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return self.target - self.value(robot, data, q)

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.jacobian(robot, data, q), self.velocity + self.gain * self.error(robot, data, q)


def prepare(robot: Robot, data: pin.Data, q: np.ndarray) -> None:
    """Compute Jacobians and frame placements at q in `data`."""
    pin.computeJointJacobians(robot.model, data, q)
    pin.updateFramePlacements(robot.model, data)


class TickData:
    """Data of `prepare` at the start of the last tick, computed at once or on access."""

    def __init__(self, robot: Robot) -> None:
        self._robot, self._data = robot, robot.model.createData()
        self._pending_q: np.ndarray | None = None  # q of a pending computation

    def at(self, q: np.ndarray) -> pin.Data:
        """Compute and return the data of a tick that starts at q (nq,)."""
        self._pending_q = None
        prepare(self._robot, self._data, q)
        return self._data

    def later(self, q: np.ndarray) -> None:
        """Register q (nq,) as the start of a tick, computed on access; q must not change afterwards."""
        self._pending_q = q

    @property
    def waits(self) -> bool:
        """True while the data of the last tick is not computed."""
        return self._pending_q is not None

    def get(self) -> pin.Data:
        """Return the data of the last tick."""
        return self._data if self._pending_q is None else self.at(self._pending_q)


def prepared(robot: Robot, q: np.ndarray) -> pin.Data:
    """Return new data, prepared at q."""
    data = robot.model.createData()
    prepare(robot, data, q)
    return data


def known_robot(robot: Robot) -> Robot:
    """Return the robot.

    Raises:
        ConfigError: if it is something else, such as a task's name.
    """
    if not isinstance(robot, Robot):
        raise ConfigError(f"a task is created from a robot, such as load_robot('lola'), got {robot!r:.60}")
    return robot


def frame_of(robot: Robot, what: str | int) -> int:
    """Return the frame id of a point or link.

    Raises:
        UnknownNameError: if the robot has no such point or link.
        ConfigError: if `what` is neither a name nor an id.
    """
    known_robot(robot)
    if isinstance(what, str):
        if what in robot.points:
            return robot.points[what]
        if robot.model.existFrame(what, pin.FrameType.BODY):
            return int(robot.model.getFrameId(what, pin.FrameType.BODY))
        links = [f.name for f in robot.model.frames if f.type == pin.FrameType.BODY]
        raise UnknownNameError("point or link", what, {*robot.points, *links}, hint=f"(robot {robot.name})")
    if isinstance(what, bool) or not isinstance(what, int | np.integer):
        raise ConfigError(f"{robot.name}: a point or link is given by its name or a frame's id, got {what!r:.60}")
    if not 0 <= what < len(robot.model.frames):
        raise ConfigError(f"{robot.name}: no frame {what}, the model has {len(robot.model.frames)}")
    return int(what)


def name_of(robot: Robot, what: str | int) -> str:
    """Return the name of a point, link or frame, for reports."""
    return what if isinstance(what, str) else str(robot.model.frames[frame_of(robot, what)].name)


def prepare_second_order(robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> None:
    """Compute `prepare` and all accelerations at v (nv,) with zero joint acceleration."""
    pin.forwardKinematics(robot.model, data, q, v, np.zeros(robot.nv))
    prepare(robot, data, q)
