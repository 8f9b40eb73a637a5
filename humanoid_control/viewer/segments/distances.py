"""The distances of a robot's volumes in one posture: of each volume, and of the nearest pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.collision.pose_rows import PoseRows
from humanoid_control.collision.ssv_distance import SsvDistance
from humanoid_control.collision.ssv_model import SsvModel
from humanoid_control.robots import Robot
from humanoid_control.robots.ssv_model import ssv_distance
from humanoid_control.viewer.segments.pick import first_hit


@dataclass(frozen=True)
class Gap:
    """The nearest volumes of one pair of segments.

    Attributes:
        first, second: segments.
        volume_1, volume_2: 'segment.volume' of the nearest volumes.
        distance: signed [m].
        point_1, point_2: nearest points on their surfaces, world frame [m].
    """

    first: str
    second: str
    volume_1: str
    volume_2: str
    distance: float
    point_1: np.ndarray
    point_2: np.ndarray


@dataclass(frozen=True)
class Distances:
    """All pairs, nearest first, and for each volume of the model its distance [m] where it is the nearest of a pair.

    Attributes:
        gaps: of every pair.
        volumes: (N,) infinite where a volume is the nearest one of no pair.
        segments: (S,) to the nearest partner; infinite without one.
    """

    gaps: tuple[Gap, ...]
    volumes: np.ndarray
    segments: np.ndarray

    @property
    def largest(self) -> float:
        """Upper end of the colour bar: the largest distance of a segment to its nearest partner [m]."""
        known = self.segments[np.isfinite(self.segments)]
        return float(known.max()) if len(known) and known.max() > 0 else 1.0

    @property
    def smallest(self) -> Gap | None:
        """The nearest pair."""
        return self.gaps[0] if self.gaps else None


class Measure:
    """Measures a robot's volumes; forward kinematics of its own."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._data = robot.model.createData()
        self._poses = PoseRows(self._data)
        self._calculator: SsvDistance | None = None

    def __call__(self, model: SsvModel, joints: np.ndarray) -> Distances:
        """The distances of a model's pairs.

        Args:
            model: of this robot.
            joints: (n,) [rad].
        """
        calculator = self._placed(model, joints)
        volumes, segments = np.full(len(model.radii), np.inf), np.full(len(model.segments), np.inf)
        if not model.pairs:
            return Distances((), volumes, segments)
        near = calculator.nearest()
        rows = model.pair_rows[near.pair]
        for side in (0, 1):
            np.minimum.at(volumes, near.ssv[:, side], near.distance)
            np.minimum.at(segments, rows[:, side], near.distance)
        gaps = tuple(
            Gap(
                *model.names(int(near.pair[k])),
                model.ssv_name(int(near.ssv[k, 0])),
                model.ssv_name(int(near.ssv[k, 1])),
                float(near.distance[k]),
                near.point_0[k],
                near.point_1[k],
            )
            for k in np.argsort(near.distance, kind="stable")
        )
        return Distances(gaps, volumes, segments)

    def hit(self, model: SsvModel, joints: np.ndarray, origin: np.ndarray, direction: np.ndarray) -> int | None:
        """The volume that a ray enters first; arguments as of `first_hit`."""
        return first_hit(model, self._placed(model, joints).vertices, origin, direction)

    def _placed(self, model: SsvModel, joints: np.ndarray) -> SsvDistance:
        if self._calculator is None or self._calculator.model is not model:
            self._calculator = ssv_distance(self.robot, model)
        pin.forwardKinematics(self.robot.model, self._data, self.robot.q(joints))
        self._calculator.forget()
        self._calculator.place(self._poses.rows())
        return self._calculator
