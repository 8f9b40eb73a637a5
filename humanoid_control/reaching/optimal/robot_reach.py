"""Reaches on a robot: hand postures, joint motions and self-contact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.ik import PointTask
from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.position import ConstrainedGoals, StopSettings
from humanoid_control.reaching.optimal.arm import SIDES, Arm, arm_joints
from humanoid_control.reaching.optimal.reach import Reach
from humanoid_control.robots import Robot

MET = 1e-3  # [m] tolerance of a hand position
TRIES = 12  # initial postures of inverse kinematics


@dataclass(frozen=True)
class ReachTouch:
    """Contact of two robot parts during a reach.

    Attributes:
        names: of the parts.
        begin: first contact [s].
        end: last contact [s].
        depth: maximum overlap [m].
    """

    names: tuple[str, str]
    begin: float
    end: float
    depth: float


def hand_posture(robot: Robot, side: str, position: np.ndarray, posture: np.ndarray) -> np.ndarray:
    """Return joint angles (n,) within limits with the hand at a position, other joints unchanged.

    Args:
        robot: fixed base.
        side: 'left' or 'right'.
        position: (3,) in the world [m].
        posture: (n,) initial guess.

    Raises:
        ConfigError: if the hand cannot reach it.
    """
    position = np.asarray(position, dtype=float)
    if position.shape != (3,) or not np.isfinite(position).all():
        raise ConfigError("a hand position is three numbers, x, y and z in metres")
    point, joints = arm_joints(robot, SIDES[side])
    free = {robot.joint_names[j] for j in joints}
    task = PointTask(robot, point)
    task.set_target(position)
    dofs = DofSelection(robot, held=[name for name in robot.joint_names if name not in free])
    solver = ConstrainedGoals(robot, stop=StopSettings(iterations=200, converged=1e-7), dofs=dofs)
    rng = np.random.default_rng(0)
    low, high = robot.range_within(np.pi)
    best, nearest = posture, np.inf
    for k in range(TRIES):
        begin = posture.copy()
        if k:
            begin[joints] = rng.uniform(low[joints], high[joints])
        found = solver.solve(robot.q(begin), [task])
        if found.residual < nearest:
            best, nearest = robot.joints(found.q).copy(), found.residual
        if nearest < 1e-6:
            break
    if nearest > MET:
        raise ConfigError(
            f"the {side} hand of {robot.name} cannot reach {position[0]:g},{position[1]:g},{position[2]:g} m: the "
            f"closest distance is {100 * nearest:.1f} cm"
        )
    return best


def joint_motion(robot: Robot, reach: Reach, posture: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and velocities (T, n) of all joints at a rate [Hz]; other joints keep a posture (n,).

    The last sample is the end of the reach.
    """
    t = np.arange(0.0, reach.seconds + 0.5 / rate, 1.0 / rate).clip(max=reach.seconds)
    q, v = np.tile(posture, (len(t), 1)), np.zeros((len(t), robot.n))
    joints = [robot.joint_index(name) for name in reach.arm.joint_names]
    q[:, joints], v[:, joints] = reach.at(t)[:2]
    return q, v


def touches(robot: Robot, positions: np.ndarray, rate: float) -> list[ReachTouch]:
    """Return overlapping collision shapes in a motion (T, n), in order, except those in the neutral posture."""
    monitor = robot.collision_monitor()
    found: dict[int, list[tuple[float, float]]] = {}
    resting = {int(pair) for pair in monitor.update(robot.q(), 0.0).pair}
    for k, joints in enumerate(positions):
        near = monitor.update(robot.q(joints), 0.0)
        for pair, distance in zip(near.pair.tolist(), near.distance.tolist(), strict=True):
            if pair not in resting:
                found.setdefault(pair, []).append((k / rate, -distance))
    return [
        ReachTouch(monitor.name(pair), seen[0][0], seen[-1][0], max(depth for _, depth in seen))
        for pair, seen in sorted(found.items(), key=lambda item: item[1][0][0])
    ]


def arm_angles(robot: Robot, arm: Arm, joints: np.ndarray) -> np.ndarray:
    """Return the angles (N,) of an arm from joints (n,)."""
    return np.array([joints[robot.joint_index(name)] for name in arm.joint_names])
