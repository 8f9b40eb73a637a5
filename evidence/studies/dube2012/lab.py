"""Lab of the study: one clip and any robot or variant of it, solved as published; a motion past a singular shoulder."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from evidence.studies.dube2012.robot_variants import joints_named
from humanoid_control.evaluation.motion_quality import JointUse, joint_use
from humanoid_control.evaluation.self_collision import CollisionCount, count_collisions, self_penetration
from humanoid_control.evaluation.tracking_error import MEAN, link_errors, reached_points
from humanoid_control.mocap import BodyPoints
from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.retargeting import JointTrajectory, RetargetSettings, Targets, retarget_clip, scale_to_robot
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.robots.robot import Robot

ROBOTS = ("armar3", "hrp2", "suralp", "wabian2", "we4rii")
DUBE2012 = RetargetSettings(method="weighted_dls", avoidance="none", velocity_scale=math.inf)
"""As in Dube 2012: weighted damped least squares, no speed limits, no avoidance."""
FREE = RetargetSettings(
    method="constrained",
    avoidance="none",
    velocity_scale=math.inf,
    acceleration=math.inf,
    acceleration_scale=math.inf,
)
PUBLISHED, CONSTRAINED = "Dube 2012", "constrained"
SOLVERS = {
    PUBLISHED: (DUBE2012, replace(DUBE2012, avoidance="shift")),
    CONSTRAINED: (FREE, replace(FREE, avoidance="constraints")),
}
"""Settings without and with avoidance of self-collisions."""
STERNUM = ("sternum",)
GH = ("l_gh", "r_gh")
ELBOWS = ("l_elbow", "r_elbow")
WRISTS = ("l_wrist", "r_wrist")
ARMS = ELBOWS + WRISTS


class Trial:
    """One robot's solution of the clip, with the numbers that experiments need."""

    def __init__(self, robot: Robot, targets: Targets, trajectory: JointTrajectory) -> None:
        self.robot, self.targets, self.joints = robot, targets, trajectory.positions
        self.reached = reached_points(robot, self.joints)
        self.errors = link_errors(self.reached, targets)

    def error(self, *links: str, frames: np.ndarray | None = None) -> float:
        """Mean error [m] of some links, or of all seven; over all frames or a mask (T,) of them."""
        rows = np.stack([self.errors[k] for k in links or (MEAN,)])
        return float((rows if frames is None else rows[:, frames]).mean())

    def std(self) -> float:
        """Standard deviation of the mean error [m]."""
        return float(self.errors[MEAN].std())

    @cached_property
    def collisions(self) -> CollisionCount:
        """Collisions of the motion."""
        return count_collisions(self_penetration(self.robot, self.joints))

    @cached_property
    def use(self) -> dict[str, JointUse]:
        """Range used by each imitation joint."""
        return {u.joint: u for u in joint_use(self.robot, self.joints)}

    def limits(self, most: int = 3) -> str:
        """In words, which joints are at a limit most often."""
        rows = [(u.at_lower, j, "lower") for j, u in self.use.items()]
        rows += [(u.at_upper, j, "upper") for j, u in self.use.items()]
        rows = sorted((r for r in rows if r[0] >= 0.01 and np.ptp(self.angles(r[1])) > 0), reverse=True)[:most]
        told = ", ".join(f"{joint} {which} {100 * share:.0f} %" for share, joint, which in rows)
        return f"{self.robot.name} at a limit, frames: {told or 'none'}"

    def angles(self, *meanings: str) -> np.ndarray:
        """(T, k) angles of joints by name or meaning, both sides where no side is given [rad]."""
        joints = [joint for meaning in meanings for joint in joints_named(self.robot, meaning)]
        return self.joints[:, [self.robot.joint_index(joint) for joint in joints]]


class RetargetingLab:
    """Solutions of a clip for robots, made on demand and kept."""

    def __init__(self, body: BodyPoints) -> None:
        self.body = body
        self._robots: dict[str, Robot] = {}
        self._trials: dict[tuple[str, str, RetargetSettings], Trial] = {}

    def robot(self, name: str) -> Robot:
        """A robot of the catalogue, held fixed."""
        if name not in self._robots:
            self._robots[name] = load_robot(name, "fixed")
        return self._robots[name]

    def trial(
        self,
        name: str,
        variant: str = "",
        change: Callable[[Robot], Robot] | None = None,
        settings: RetargetSettings = DUBE2012,
    ) -> Trial:
        """The solution for a robot, or for a variant of it.

        Args:
            name: of the catalogue.
            variant: what is changed; the same words mean the same variant.
            change: makes it from the robot.
            settings: of the solver.
        """
        key = name, variant, settings
        if key not in self._trials:
            robot = change(self.robot(name)) if change else self.robot(name)
            targets = scale_to_robot(self.body, robot)
            self._trials[key] = Trial(robot, targets, retarget_clip(targets, robot, settings))
        return self._trials[key]

    def free(self, name: str, solver: str) -> Trial:
        """Solution without avoidance of self-collisions, by one of SOLVERS."""
        return self.trial(name, settings=SOLVERS[solver][0])

    def avoiding(self, name: str, solver: str) -> Trial:
        """Solution with avoidance: joints shifted afterwards as published, or distances kept as constraints."""
        return self.trial(name, settings=SOLVERS[solver][1])


# -------- motion past a singular shoulder

RATE = 50.0  # [Hz] of the recordings in Dube 2012
PIECE = 6.0  # [s] each: raise the arms, swing them forward and back, raise them further
ABDUCTION = (20.0, 90.0, 90.0, 130.0)  # [deg] at the ends of the pieces
SWING = 40.0  # [deg] forward, in the middle of the second piece
ELBOW = 60.0  # [deg] flexion


def singular_motion(robot: Robot) -> Targets:
    """Both arms rise sideways to 90 degrees, swing forward and back there, and rise on, at 12 degrees a second.

    The trunk stands still. With the arms straight out to the sides the axes of flexion and rotation line up, and the
    forward swing that follows is about the direction that is lost there (Dube 2012, section 3.1.1).

    Args:
        robot: whose segment lengths the targets have; with a fixed base.
    """
    n = round(PIECE * RATE)
    s = np.linspace(0.0, 1.0, n, endpoint=False)
    ease = minimum_jerk(s)
    abduction = np.radians(np.concatenate([a + (b - a) * ease for a, b in pairwise(ABDUCTION)]))
    swing = np.zeros(3 * n)
    swing[n : 2 * n] = np.radians(SWING) * (1 - np.cos(2 * np.pi * s)) / 2

    sternum, left, right = robot.point_positions(robot.q("zero"), ["sternum", "l_gh", "r_gh"])
    length = robot.segment_lengths()
    out = np.empty((3 * n, 7, 3))
    out[:, 0], out[:, 1], out[:, 2] = sternum, left, right
    for k, side in enumerate((1.0, -1.0)):
        upper = np.stack(
            [np.sin(abduction) * np.sin(swing), side * np.sin(abduction) * np.cos(swing), -np.cos(abduction)], axis=1
        )
        forward = np.stack([np.cos(swing), -side * np.sin(swing), np.zeros(3 * n)], axis=1)
        lower = np.cos(np.radians(ELBOW)) * upper + np.sin(np.radians(ELBOW)) * forward
        out[:, 3 + k] = out[:, 1 + k] + length["upper_arm"] * upper
        out[:, 5 + k] = out[:, 3 + k] + length["lower_arm"] * lower
    return Targets("arms through 90 degrees abduction", RATE, out, out, ())
