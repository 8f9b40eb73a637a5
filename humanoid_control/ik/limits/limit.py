"""Limit: inequalities that the next velocity must keep; tasks say only what it should do."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.ik.free_velocities import Bounds, DofSelection
from humanoid_control.ik.settings import IkSettings
from humanoid_control.numerics.array_types import F1, F2
from humanoid_control.robots.robot import Robot


class IkState(NamedTuple):
    """State of a tick that limits are computed from.

    Attributes:
        robot, settings, dofs: of the solver.
        data: kinematics, Jacobians and frame placements at q.
        q: (nq,) where the robot is. v: (nv,) commanded at the last tick. dt: [s].
    """

    robot: Robot
    settings: IkSettings
    dofs: DofSelection
    data: pin.Data
    q: np.ndarray
    v: np.ndarray
    dt: float


class SoftRows(NamedTuple):
    """Rows A u >= b of the free velocities, scaled: a slack in row i costs the weight times scale_i^2.

    Attributes:
        A: (r, k). b: (r,). scale: (r,) by which a row was multiplied.
    """

    A: F2
    b: F1
    scale: F1


class Limit:
    """Inequalities on the next velocity v (nv,): lower <= v <= upper, and A v >= b - s with a slack s >= 0 that costs.

    A limit overrides what it needs: `tighten` for bounds, `max_rows` and `rows` for inequalities, `update` for what it
    measures once a tick. The order in a solver's list is that of precedence: a later limit cuts what an earlier one
    left, but never to nothing (the bounds collapse to the nearest point that it allows). A limit may remember things
    from tick to tick, so each solver needs its own.
    """

    def max_rows(self, robot: Robot) -> int:
        """The largest number of rows: arrays are allocated once."""
        return 0

    def reset(self) -> None:
        """Forget earlier ticks."""

    def update(self, state: IkState) -> None:
        """Measure what the tick needs."""

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        """Cut the bounds (nv,) of the velocity in place, [rad/s], of a floating base [m/s, rad/s]."""

    def rows(self, state: IkState, A: np.ndarray, b: np.ndarray, slack_weight: np.ndarray) -> int:
        """Write rows A v >= b.

        Args:
            A, b: (max_rows, nv) of zeros, (max_rows,).
            slack_weight: (max_rows,) cost of the square of each row's slack; those of the settings, may be changed.

        Returns:
            how many rows were written.
        """
        return 0

    def free_rows(self, state: IkState, bounds: Bounds, out: SoftRows) -> int:
        """Write the rows by the free velocities u, v = S u, between their bounds: how many were written."""
        weight = state.settings.slack_weight
        most = self.max_rows(state.robot)
        A, weights = np.zeros((most, state.robot.nv)), np.full(most, weight)
        count = self.rows(state, A, out.b[:most], weights)
        scale = np.sqrt(weights[:count] / weight)
        out.A[:count] = scale[:, None] * state.dofs.reduce(A[:count])
        out.b[:count] *= scale
        out.scale[:count] = scale
        return count


def clamp_bounds(lower: np.ndarray, upper: np.ndarray, low: np.ndarray | float, high: np.ndarray | float) -> None:
    """Cut bounds in place to low..high; where that leaves nothing, to the end of it that is nearest."""
    np.clip(lower, low, high, out=lower)
    np.clip(upper, low, high, out=upper)
