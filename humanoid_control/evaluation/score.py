"""The score of one robot on one clip: everything the source measures, for any number of ways to solve it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.evaluation.motion_quality import (
    DriftCheck,
    FrameQuality,
    JointUse,
    MotionQuality,
    drift_check,
    joint_use,
    motion_quality,
)
from humanoid_control.evaluation.self_collision import CollisionCount, count_collisions, self_penetration
from humanoid_control.evaluation.shoulder_singularity import ShoulderSingularity, nearness, shoulder_singularity
from humanoid_control.evaluation.tracking_error import (
    Extreme,
    Histogram,
    describe,
    error_histogram,
    link_errors,
    peak_frames,
    reached_points,
    trough_frames,
)
from humanoid_control.retargeting.retargeter import JointTrajectory
from humanoid_control.retargeting.scaling import Targets
from humanoid_control.robots.robot import Robot


@dataclass(frozen=True)
class LinkScore:
    """Error of one link over a clip: mean, standard deviation, smallest, largest [m], distribution, extremes."""

    mean: float
    std: float
    min: float
    max: float
    histogram: Histogram
    peaks: tuple[Extreme, ...]
    troughs: tuple[Extreme, ...]


@dataclass(frozen=True)
class Frames:
    """What every frame reports.

    Attributes:
        errors: link -> (T,) [m].
        penetration: (T,) deepest self-penetration [m], 0 where nothing touches.
        quality: limits, speed, acceleration, jerk.
        singularity: (T, 2) distance of the left and right shoulder from its singularity: 0 at it, 1 far from it, NaN
            where the robot has no such shoulder.
        reached: (T, 7, 3) the tracked points on the robot [m].
    """

    errors: dict[str, np.ndarray]
    penetration: np.ndarray
    quality: FrameQuality
    singularity: np.ndarray
    reached: np.ndarray


@dataclass(frozen=True)
class RunScore:
    """One robot, one clip, one way to solve it.

    Attributes:
        label: the way, for example "with avoidance".
        links: link -> its score; "mean" is the mean over the seven points in every frame.
        joints: range used by each imitation joint.
        collisions: counted as in Table 6.6. quality: limits, speed, acceleration, jerk. singularity: of the
            shoulders. drift: against solving anew.
        frames: all of it frame by frame.
    """

    label: str
    links: dict[str, LinkScore]
    joints: tuple[JointUse, ...]
    collisions: CollisionCount
    quality: MotionQuality
    singularity: ShoulderSingularity
    drift: DriftCheck
    frames: Frames


@dataclass(frozen=True)
class RobotScore:
    """One robot on one clip: the same targets solved in one or several ways.

    Attributes:
        robot: its name, and its title.
        targets: what it should do.
        mid_hip: (3,) where its chain of targets begins [m].
        runs: one a way.
    """

    robot: str
    title: str
    targets: Targets
    mid_hip: np.ndarray
    runs: tuple[RunScore, ...]

    @property
    def clip(self) -> str:
        """Name of the clip."""
        return self.targets.name

    @property
    def rate(self) -> float:
        """Frames a second [Hz]."""
        return self.targets.rate

    @property
    def n_frames(self) -> int:
        """Number of frames N."""
        return len(self.targets)


def score(
    robot: Robot,
    targets: Targets,
    runs: Sequence[tuple[str, JointTrajectory]],
    trough_rule: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> RobotScore:
    """Score joint trajectories that imitate the same targets.

    Errors are measured anew from the joint angles; what the solver says about itself is not used.

    Args:
        robot: with a fixed base.
        targets: of that robot.
        runs: label and trajectory of every way to solve them.
        trough_rule: see `trough_frames`.
        progress: called with (runs done, runs in all).
    """
    rows = []
    for k, (label, trajectory) in enumerate(runs):
        rows.append(_run(robot, targets, label, trajectory, trough_rule))
        if progress is not None:
            progress(k + 1, len(runs))
    mid_hip = robot.point_positions(robot.q("neutral"), ["mid_hip"])[0]
    return RobotScore(robot.name, robot.title, targets, mid_hip, tuple(rows))


def _run(robot: Robot, targets: Targets, label: str, trajectory: JointTrajectory, trough_rule: str) -> RunScore:
    joints = trajectory.positions
    reached = reached_points(robot, joints)
    errors = link_errors(reached, targets)
    links = {}
    for name, e in errors.items():
        links[name] = LinkScore(
            mean=float(e.mean()),
            std=float(e.std()),
            min=float(e.min()),
            max=float(e.max()),
            histogram=error_histogram(e),
            peaks=describe(robot, joints, targets.rate, e, peak_frames(e)),
            troughs=describe(robot, joints, targets.rate, e, trough_frames(e, trough_rule)),
        )
    distances = self_penetration(robot, joints)
    quality, frames = motion_quality(robot, trajectory)
    singular = nearness(robot, joints)
    return RunScore(
        label=label,
        links=links,
        joints=joint_use(robot, joints),
        collisions=count_collisions(distances),
        quality=quality,
        singularity=shoulder_singularity(singular),
        drift=drift_check(robot, targets, trajectory),
        frames=Frames(errors, distances.penetration(), frames, singular, reached),
    )
