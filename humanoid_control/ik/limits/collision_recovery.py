"""Recovery from collisions of a robot with itself, in stages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.ik.tasks.joints import PostureTask
from humanoid_control.ik.tasks.task import TaskGoal
from humanoid_control.robots.robot import Robot

DISTANCE_PROGRESS = 1e-3  # [m] and
HOMING_PROGRESS = 0.05  # [rad] progress that resets the time-out of a recovery stage
NEAR_HOME = 0.1  # [rad] distance below which homing slows down
GRADIENT, HOMING, HOMING_THROUGH_PAIRS, HOMING_FREE = range(4)


class RecoveryState(NamedTuple):
    """State of a recovery between ticks.

    Attributes:
        home: goal of homing.
        stage: present stage (1,).
        best: distance of the deepest pair at the last progress (1,) [m].
        left: distance from home at the last progress (1,) [rad].
        waited: time since the last progress (1,) [s].
    """

    home: TaskGoal
    stage: I1
    best: F1
    left: F1
    waited: F1


class CollisionRecovery:
    """Recovery from a collision in stages; the tick updates it.

    Without progress, all joints move slowly and straight to the neutral posture. Blocking pairs are ignored stage by
    stage, each after a time-out.

    Attributes:
        packed: the RecoveryState.
    """

    def __init__(self, robot: Robot) -> None:
        """Begin without a collision."""
        home = PostureTask(robot, weight=1.0).goal()
        self.packed = Packed(RecoveryState(home, np.zeros(1, dtype=np.int64), *(np.empty(1) for _ in range(3))))
        self.reset()

    @property
    def stage(self) -> int:
        """Present stage.

        GRADIENT: along gradients, with the tasks. HOMING: to the neutral posture, ignoring pairs in penetration.
        HOMING_THROUGH_PAIRS: also pairs of links in penetration elsewhere. HOMING_FREE: all pairs.
        """
        return int(self.packed.record.stage[0])

    @property
    def is_homing(self) -> bool:
        """True while the robot moves to the neutral posture instead of following its tasks."""
        return self.stage != GRADIENT

    def reset(self) -> None:
        """Discard the history."""
        reset_recovery(self.packed.table)


@kernel
def reset_recovery(table: Table[RecoveryState]) -> None:
    """Discard the history: any depth and any distance from home will count as progress."""
    own = unpack(table, RecoveryState)
    own.stage[0], own.best[0], own.left[0], own.waited[0] = GRADIENT, -np.inf, np.inf, 0.0


@kernel
def update_recovery(table: Table[RecoveryState], closest: float, q: np.ndarray, timeout: float, dt: float) -> None:
    """Update the stage in a tick with penetration.

    Args:
        closest: signed distance of the deepest pair, below 0 [m].
        timeout: time without progress before the next stage [s].
    """
    own, from_home = unpack(table, RecoveryState), distance_from_home(table, q)
    own.waited[0] += dt
    # Along gradients the depth must decrease; a homing robot may first have to go deeper.
    if own.stage[0] == GRADIENT:
        progress = closest > own.best[0] + DISTANCE_PROGRESS
    else:
        progress = from_home < own.left[0] - HOMING_PROGRESS
    if progress:
        own.best[0], own.left[0], own.waited[0] = closest, from_home, 0.0
    elif own.waited[0] > timeout:
        own.stage[0], own.left[0], own.waited[0] = min(own.stage[0] + 1, HOMING_FREE), from_home, 0.0


@kernel
def distance_from_home(table: Table[RecoveryState], q: np.ndarray) -> float:
    """Return the largest angle of a joint from the neutral posture [rad]."""
    home, farthest = unpack(table, RecoveryState).home.target, 0.0
    for i in range(home.shape[0]):
        farthest = max(farthest, abs(home[i] - q[q.shape[0] - home.shape[0] + i]))
    return farthest


@kernel
def homing_gain(table: Table[RecoveryState], q: np.ndarray, speed: float) -> float:
    """Return the gain [1/s] of the posture at which the farthest joint moves at `speed` [rad/s]."""
    return speed / max(distance_from_home(table, q), NEAR_HOME)
