"""Score of a robot on a clip: errors, collisions, limits and drift of one or more solutions (Dube 2012)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from humanoid_control.evaluation.limit_costs import LimitCosts, measure_limit_costs
from humanoid_control.evaluation.motion_quality import (
    DriftCheck,
    FrameQuality,
    JointUse,
    MotionQuality,
    drift_check,
    joint_use,
    measure_motion,
)
from humanoid_control.evaluation.self_collision import CollisionCount, count_collisions, self_penetration
from humanoid_control.evaluation.shoulder_singularity import (
    ShoulderSingularity,
    singularity_distance,
    summarize_singularity,
)
from humanoid_control.evaluation.tracking_error import (
    ErrorPeak,
    Histogram,
    describe_peaks,
    error_histogram,
    link_errors,
    peak_frames,
    reached_points,
    trough_frames,
)
from humanoid_control.mocap.body_points import BodyPoints
from humanoid_control.retargeting.retargeter import retarget_clip
from humanoid_control.retargeting.scaling import Targets, scale_to_robot
from humanoid_control.retargeting.settings import CONSTRAINED, CONSTRAINTS, RetargetSettings
from humanoid_control.retargeting.trajectory import JointTrajectory
from humanoid_control.robots.robot import Robot


@dataclass(frozen=True)
class LinkScore:
    """Error of a link over a clip [m]: statistics, distribution, extremes."""

    mean: float
    std: float
    min: float
    max: float
    histogram: Histogram
    peaks: tuple[ErrorPeak, ...]
    troughs: tuple[ErrorPeak, ...]


@dataclass(frozen=True)
class ScoredFrames:
    """Measures per frame.

    Attributes:
        errors: link -> (T,) [m].
        penetration: (T,) deepest self-penetration, else 0 [m].
        singularity: (T, 2) distance of left and right shoulder from singularity: 0 at it, 1 far away, NaN without such
            a shoulder.
        reached: (T, 7, 3) tracked points on the robot [m].
    """

    errors: dict[str, np.ndarray]
    penetration: np.ndarray
    quality: FrameQuality
    singularity: np.ndarray
    reached: np.ndarray


@dataclass(frozen=True)
class RunScore:
    """Score of one solution.

    Attributes:
        links: link -> score; "mean" averages the seven points per frame.
        collisions: as in Table 6.6.
    """

    label: str
    links: dict[str, LinkScore]
    joints: tuple[JointUse, ...]
    collisions: CollisionCount
    quality: MotionQuality
    singularity: ShoulderSingularity
    drift: DriftCheck
    frames: ScoredFrames


@dataclass(frozen=True)
class RobotScore:
    """Score of a robot on a clip with one or more solutions of the same targets.

    Attributes:
        mid_hip: (3,) start of the target chain [m].
        costs: cost of each limit for the first solution with all limits; None without one.
    """

    robot: str
    title: str
    targets: Targets
    mid_hip: np.ndarray
    runs: tuple[RunScore, ...]
    costs: LimitCosts | None = None

    @property
    def clip(self) -> str:
        """Name of the clip."""
        return self.targets.name

    @property
    def rate(self) -> float:
        """Frame rate [Hz]."""
        return self.targets.rate

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return len(self.targets)


def score_trajectories(
    robot: Robot,
    targets: Targets,
    runs: Sequence[tuple[str, JointTrajectory]],
    trough_rule: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> RobotScore:
    """Score joint trajectories for the same targets; errors are recomputed from joint angles.

    Args:
        robot: fixed base.
        runs: label and trajectory of each solution.
        progress: called with (runs done, all runs).
    """
    rows = []
    for k, (label, trajectory) in enumerate(runs):
        rows.append(_run(robot, targets, label, trajectory, trough_rule))
        if progress is not None:
            progress(k + 1, len(runs))
    mid_hip = robot.point_positions(robot.q("neutral"), ["mid_hip"])[0]
    return RobotScore(robot.name, robot.title, targets, mid_hip, tuple(rows))


def retarget_variants(
    methods: Sequence[str] = (CONSTRAINED,), accelerations: Sequence[float] = (RetargetSettings.acceleration,)
) -> list[tuple[str, RetargetSettings]]:
    """Return label and settings of each method, without and with collision avoidance.

    Args:
        accelerations: joint limits of method 'constrained', one variant each [rad/s^2].

    Raises:
        UnknownNameError: if a method is unknown.
    """
    names, limits = list(dict.fromkeys(methods)), list(dict.fromkeys(accelerations))
    out = []
    for name in names:
        constrained = name == CONSTRAINED
        for limit in limits if constrained else limits[:1]:
            first = f"{name}, " if len(names) > 1 else ""
            first += f"{limit:g} rad/s², " if constrained and len(limits) > 1 else ""
            avoiding = {"no avoidance": "none", "avoidance": CONSTRAINTS if constrained else "shift"}
            for label, avoidance in avoiding.items():
                settings = RetargetSettings(method=name, avoidance=avoidance, acceleration=limit)
                out.append((first + label, settings))
    return out


def score_clip(
    body: BodyPoints,
    robot: Robot,
    variants: Sequence[tuple[str, RetargetSettings]] | None = None,
    trough_rule: str = "auto",
    progress: Callable[[float], None] | None = None,
    speed: float = 1.0,
) -> RobotScore:
    """Solve a clip for a robot in several ways, and score them.

    Args:
        variants: label and settings; None: without and with avoidance.
        progress: called with the completed share, 0 to 1.
        speed: pace relative to the clip.
    """
    solved = retarget_variants() if variants is None else variants
    targets = scale_to_robot(body, robot).paced(speed)
    say = progress or (lambda share: None)
    runs = []
    for k, (label, settings) in enumerate(solved):

        def solving(done: int, total: int, k: int = k) -> None:
            say(0.5 * (k + done / total) / len(solved))

        runs.append((label, retarget_clip(targets, robot, settings, solving)))
    whole = next((s for _, s in solved if s == RetargetSettings(acceleration=s.acceleration)), None)
    costs = None if whole is None else measure_limit_costs(body, robot, speed, settings=whole)
    say(0.8)
    score = score_trajectories(robot, targets, runs, trough_rule, lambda done, total: say(0.8 + 0.2 * done / total))
    return replace(score, costs=costs)


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
            peaks=describe_peaks(robot, joints, targets.rate, e, peak_frames(e)),
            troughs=describe_peaks(robot, joints, targets.rate, e, trough_frames(e, trough_rule)),
        )
    distances = self_penetration(robot, joints)
    quality, frames = measure_motion(robot, trajectory)
    singular = singularity_distance(robot, joints)
    return RunScore(
        label=label,
        links=links,
        joints=joint_use(robot, joints),
        collisions=count_collisions(distances),
        quality=quality,
        singularity=summarize_singularity(singular),
        drift=drift_check(robot, targets, trajectory),
        frames=ScoredFrames(errors, distances.penetration(), frames, singular, reached),
    )
