"""Whole-body score of a robot on a clip; `score` covers the fixed pelvis and the comparison with Dube 2012."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.evaluation.clip_quality import ClipMeasures, ClipQuality
from humanoid_control.evaluation.ground_contact import corner_paths, slip_ways
from humanoid_control.evaluation.mesh_contact import MeshContacts, geometry_with_meshes, mesh_contacts
from humanoid_control.retargeting import LIVE, RetargetSettings, WholeBodyTask, WholeBodyTrajectory
from humanoid_control.retargeting.whole_body.contacts import EDGES
from humanoid_control.robots import Robot

MOVES = 1e-3  # [rad]
MOST_MESHES = 400  # frames with mesh checks, which take milliseconds each; 0.5 % are two frames


@dataclass(frozen=True)
class JointLoad:
    """Use of a joint in a motion.

    Attributes:
        speed_share: largest speed over its limit.
        torque: 99th percentile of the estimated torque [N m].
        effort: torque limit [N m]; NaN if unknown.
    """

    joint: str
    lowest: float
    highest: float
    lower: float
    upper: float
    speed_share: float
    torque: float
    effort: float


@dataclass(frozen=True)
class WholeBodyScore:
    """Score of a robot on a clip.

    Attributes:
        notes: messages about the floor, and about missing measures with reasons.
    """

    clip: str
    measures: ClipMeasures
    quality: ClipQuality
    mesh_step: int
    notes: tuple[str, ...]

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self.measures.robot

    @property
    def motion(self) -> WholeBodyTrajectory:
        """The whole-body motion.

        Raises:
            RobotError: if the motion is of an upper body.
        """
        if self.measures.whole is None:
            raise RobotError(f"{self.robot.name}: an upper-body motion has no whole-body score")
        return self.measures.whole

    def joints(self) -> list[JointLoad]:
        """Return the use of joints that move by more than MOVES, in robot order."""
        q, robot, dynamics = self.motion.positions, self.robot, self.measures.dynamics
        speed = np.abs(np.diff(q, axis=0)).max(axis=0, initial=0.0) * self.motion.rate / robot.velocity
        torque, effort = np.full(robot.n, np.nan), np.full(robot.n, np.nan)
        if dynamics is not None:
            known = np.isfinite(dynamics.effort)
            torque[known] = np.percentile(np.abs(dynamics.torque[:, known]), 99, axis=0)
            effort = dynamics.effort
        low, high = q.min(axis=0), q.max(axis=0)
        rows = zip(robot.joint_names, low, high, robot.lower, robot.upper, speed, torque, effort, strict=True)
        return [JointLoad(name, *map(float, row)) for name, *row in rows if row[1] > row[0] + MOVES]

    def most_loaded(self) -> JointLoad | None:
        """Return the joint closest to or farthest beyond its torque limit; None if unknown."""
        known = [j for j in self.joints() if np.isfinite(j.torque) and np.isfinite(j.effort)]
        return max(known, key=lambda j: j.torque / j.effort, default=None)

    def columns(self) -> dict[str, np.ndarray]:
        """Return measures (T,) per frame by name with unit; NaN where not measured."""
        t, m = self.motion, self.measures
        T = len(t.positions)
        paths = corner_paths(self.robot, m.q)
        out = {f"error_{name}_m": t.errors[:, k] for k, name in enumerate(t.point_names)}
        out |= {"lowest_corner_m": paths[..., 2].min(axis=(1, 2)), "slip_m": slip_ways(paths, t.contacts).max(axis=1)}
        out |= {"nearest_shapes_m": m.nearest}
        for name, contacts in (("contact", t.contacts), ("person", m.person)):
            if contacts is not None:
                out |= {f"{name}_{edge}": contacts[:, e].astype(float) for e, edge in enumerate(EDGES)}
        if m.dynamics is not None:
            d = m.dynamics
            at = {
                "com_outside_m": d.outside,
                "missing_force_share": np.linalg.norm(d.missing[:, :3], axis=1) / d.weight,
            }
            if np.isfinite(d.effort).any():
                at["torque_share"] = np.nanmax(d.effort_share, axis=1)
            for name, values in at.items():
                out[name] = np.full(T, np.nan)
                out[name][d.frames] = values
        return out


def score_whole_body(
    task: WholeBodyTask,
    settings: RetargetSettings | None = None,
    progress: Callable[[float], None] = lambda share: None,
    method: str = LIVE,
) -> WholeBodyScore:
    """Retarget a clip, and score the motion.

    Args:
        progress: called with the completed share, 0 to 1.
        method: one of WHOLE_BODY_METHODS.

    Raises:
        ClipError: if the first posture does not converge.
        UnknownNameError: if the method is unknown.
    """
    motion = task.solve(settings, lambda k, total: progress(0.4 * k / total), method)
    trajectory, person = motion.trajectory, motion.targets.contacts
    return score_motion(
        task.targets.name, task.robot, trajectory, person, task.notes, lambda share: progress(0.4 + 0.6 * share)
    )


def score_motion(
    clip: str,
    robot: Robot,
    trajectory: WholeBodyTrajectory,
    person: np.ndarray | None = None,
    notes: tuple[str, ...] = (),
    progress: Callable[[float], None] = lambda share: None,
) -> WholeBodyScore:
    """Score any motion.

    Args:
        robot: floating base with soles.
        person: (T, 4) contacts of the person.
    """
    step = -(-len(trajectory.positions) // MOST_MESHES)
    joints = trajectory.positions[::step]
    meshes: MeshContacts | None = None
    try:
        if (tag := geometry_with_meshes(robot)) is None:
            notes = (*notes, f"{robot.name}: it has no meshes, only its shapes")
        else:
            meshes = mesh_contacts(robot, joints, lambda k: progress(0.5 * k / len(joints)), tag)
    except RobotError as e:
        notes = (*notes, f"its meshes were not checked: {e}")
    measures = ClipMeasures(robot, trajectory, person, meshes)
    quality = measures.quality()
    if measures.dynamics is None:
        notes = (*notes, f"{robot.name}: no balance and torques: its links have no masses, or the clip has no frames")
    elif not np.isfinite(measures.dynamics.effort).any():
        notes = (*notes, f"{robot.name}: its file states no torque limits")
    progress(1.0)
    return WholeBodyScore(clip, measures, quality, step, notes)
