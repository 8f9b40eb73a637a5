"""From targets to a joint trajectory, frame by frame, with every limit kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ClipError
from humanoid_control.imitation.first_frame import fit_first_frame
from humanoid_control.imitation.scaling import POINTS, Targets
from humanoid_control.imitation.weighted_dls import dls_step, limit_gradient, limit_weights
from humanoid_control.robots import Robot


@dataclass(frozen=True)
class RetargetSettings:
    """How a trajectory is solved.

    Attributes:
        damping: lambda of the damped least squares [m].
        velocity_scale: share of the joint speed limits that may be used.
        iterations: solver steps a frame.
    """

    damping: float = 0.03
    velocity_scale: float = 1.0
    iterations: int = 2


@dataclass(frozen=True)
class JointTrajectory:
    """Joint angles over time.

    Attributes:
        joint_names: (n,) names.
        rate: [Hz].
        positions: (T, n) [rad]; velocities: (T, n) [rad/s], the difference to the next frame.
        errors: (T, 7) distance of each point to its target [m].
        saturated: (T,) share of joints at their speed limit.
    """

    joint_names: tuple[str, ...]
    rate: float
    positions: np.ndarray
    velocities: np.ndarray
    errors: np.ndarray
    saturated: np.ndarray


class Retargeter:
    """Solves one robot's posture for one frame of targets after another; the same object serves files and live input.

    Only the robot's imitation joints move; the others keep the neutral posture.
    """

    def __init__(self, robot: Robot, settings: RetargetSettings | None = None) -> None:
        self.robot, self.settings = robot, settings or RetargetSettings()
        self.joints = robot.postures["neutral"].copy()
        self._moving = robot.imitation_joints
        self._frames = [robot.point_frame(p) for p in POINTS]
        self._data = robot.model.createData()
        self._gradient: np.ndarray | None = None
        self.saturated = 0.0

    def points(self, moving: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The seven points (7, 3) and their Jacobian (21, m), at the given angles of the imitation joints (m,)."""
        r, joints = self.robot, self.joints.copy()
        joints[self._moving] = moving
        q = r.q(joints)
        pin.computeJointJacobians(r.model, self._data, q)
        pin.updateFramePlacements(r.model, self._data)
        p = np.array([self._data.oMf[f].translation for f in self._frames])
        world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        J = np.vstack([pin.getFrameJacobian(r.model, self._data, f, world)[:3] for f in self._frames])
        return p, J[:, r.iv + self._moving]

    def start(self, targets: np.ndarray, name: str = "clip") -> np.ndarray:
        """The posture (n,) for the first frame of targets (7, 3).

        Raises:
            ClipError: targets not finite, or no posture converges.
        """
        if not np.isfinite(targets).all():
            raise ClipError(f"{name}: the first frame has targets that are not numbers")
        r, m = self.robot, self._moving
        rest = r.postures["neutral"][m]
        self.joints[m] = fit_first_frame(self.points, targets, r.lower[m], r.upper[m], rest, name)
        self._gradient = None
        return self.joints.copy()

    def step(self, targets: np.ndarray, dt: float) -> np.ndarray:
        """The posture (n,) for the next frame: toward the targets (7, 3), within speed and range. NaN holds."""
        if not np.isfinite(targets).all():
            return self.joints.copy()
        r, m, s = self.robot, self._moving, self.settings
        before = self.joints[m].copy()
        reach = s.velocity_scale * r.velocity[m] * dt
        low = np.maximum(r.lower[m], before - reach)
        high = np.minimum(r.upper[m], before + reach)
        q = before
        for _ in range(s.iterations):
            p, J = self.points(q)
            gradient = limit_gradient(q, r.lower[m], r.upper[m])
            weights = limit_weights(gradient, self._gradient)
            self._gradient = gradient
            q = np.clip(q + dls_step(J, (targets - p).ravel(), weights, s.damping), low, high)
        self.joints[m] = q
        self.saturated = float(np.mean(np.abs(q - before) >= reach - 1e-9))
        return self.joints.copy()

    def errors(self, targets: np.ndarray) -> np.ndarray:
        """Distance (7,) of each point to its target [m], at the present posture."""
        return np.linalg.norm(self.points(self.joints[self._moving])[0] - targets, axis=1)


def retarget(
    targets: Targets,
    robot: Robot,
    settings: RetargetSettings | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> JointTrajectory:
    """The whole clip as a joint trajectory.

    Args:
        targets: for this robot.
        robot: with a fixed base.
        settings: of the solver.
        progress: called with (frames done, frames in all).

    Raises:
        ClipError: the first posture does not converge.
    """
    solver = Retargeter(robot, settings)
    T = len(targets)
    q, errors, saturated = np.empty((T, robot.n)), np.empty((T, len(POINTS))), np.zeros(T)
    for k in range(T):
        goal = targets.positions[k]
        q[k] = solver.start(goal, targets.name) if k == 0 else solver.step(goal, 1.0 / targets.rate)
        errors[k], saturated[k] = solver.errors(goal), solver.saturated
        if progress is not None:
            progress(k + 1, T)
    v = np.zeros_like(q)
    v[:-1] = np.diff(q, axis=0) * targets.rate
    return JointTrajectory(robot.joint_names, targets.rate, q, v, errors, saturated)
