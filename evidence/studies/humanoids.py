"""Humanoids of others, each with the same clips: does its model load, is it understood, and does it move well?

Every robot whose model is on this machine retargets every clip with its whole body, or with its upper body where it has
no legs. Slip, penetration and floating are measured by pinocchio's forward kinematics, contacts of meshes by coal.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evidence.studies.report import KeptOutcomes, Progress, StudyReport, as_markdown, silent
from humanoid_control.errors import ConfigError, HumanoidError
from humanoid_control.evaluation import measure_ground_contact
from humanoid_control.evaluation.mesh_contact import mesh_contacts
from humanoid_control.mocap import BodyPoints, load_body_points
from humanoid_control.paths import test_data
from humanoid_control.retargeting import JointTrajectory, WholeBodyTask, retarget_clip, shows_legs
from humanoid_control.retargeting.scaling import scale_to_robot
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.catalogue import urdf_path
from humanoid_control.robots.humanoids import Humanoid, found_humanoids, humanoids
from humanoid_control.terminal import ReportTable, machine
from humanoid_control.warm_up import compile_first

WALK = "mocap/cmu_bvh/07_01.bvh"  # of the recordings of $HUMANOID_TEST_DATA: walking over level ground
MESHES_EVERY = 10  # frames from one in which meshes are measured to the next
ROUNDING = 1e-6  # [rad, rad/s] beyond a limit that is none
UPPER, WHOLE, REFUSED = "upper body", "whole body", "rejected"
CAUGHT = (HumanoidError, ArithmeticError, ValueError, IndexError, KeyError, RuntimeError)
COLUMNS = ("robot", "model", "joints", "kg", "soles", "points")
CLIP_COLUMNS = (
    "robot",
    "moved",
    "error cm",
    "slip mm",
    "max slip mm",
    "penetration mm",
    "floating mm",
    "skating mm/s",
    "shapes touch %",
    "meshes touch %",
    "limits",
    "frames/s",
)
HEAD = (
    "Humanoids of other manufacturers are used by name: `--robot NAME`. The models are not part of this package; "
    "`humanoid robots list` prints how to get them. A model is found in a folder of `HUMANOID_MODELS`, in the "
    "caches of robot_descriptions and mujoco-menagerie, or in an installed package. `config/robots/NAME.yaml` "
    "holds points, soles and joints, drafted by `humanoid robots map --bare`. The first use fits shapes around the "
    "meshes of the robot, which takes half a minute or more, and stores them in `~/.humanoid/robots`. `humanoid "
    "study humanoids -o docs/humanoids.md` writes this page."
)
CLIP_KEYS = (
    "error_cm",
    "slip_mm",
    "slip_max_mm",
    "penetration_mm",
    "floating_mm",
    "skating_mm_s",
    "shapes_touch_percent",
    "meshes_touch_percent",
)
NOTE = (
    "Soles: rectangles that stand on the ground. Points: how many of the 8 imitation points exist. Error: mean "
    "distance of "
    "trunk and arms to their targets. Slip: median and largest of all contacts of heels and toes. Shapes, meshes: "
    f"share of the frames with self-contact (meshes in every {MESHES_EVERY}th frame). Limits: of "
    "joint range and speed."
)


def run_study(
    robot: Sequence[str] = (),
    clips: Sequence[str] = (),
    resume: Path | None = None,
    workers: int | None = None,
    show: Progress = silent,
) -> StudyReport:
    """Retarget clips to humanoids.

    Args:
        robot: names or paths; default: all humanoids of others whose models are on this machine.
        clips: built in or files; default: the dance, and a walk where recordings are there.
        resume: file that keeps outcomes. workers: processes; None: one a core.

    Raises:
        ConfigError: no model is on this machine; `resume` holds something else.
        UnknownNameError, RobotError: no such robot, or its model is not here.
    """
    names = list(robot) or found_humanoids()
    if not names:
        raise ConfigError(
            "no humanoid model of another manufacturer is on this machine: `humanoid robots list` explains how to "
            "get them"
        )
    walk = test_data(WALK)
    clips = list(clips) or ["dance", *([str(walk)] if walk is not None else [])]
    for name in names:
        urdf_path(name)
    for clip in clips:
        load_body_points(clip)
    jobs = [(name, clip) for name in names for clip in clips]
    kept = KeptOutcomes(resume, "humanoids")
    outcomes = list(kept.all(jobs, _try, workers, lambda share: show(share, "humanoids")))
    by_clip = {clip: [o for o, job in zip(outcomes, jobs, strict=True) if job[1] == clip] for clip in clips}
    first = by_clip[clips[0]]
    parts: list[ReportTable | str] = [ReportTable("models", list(COLUMNS), [_robot_row(o) for o in first])]
    for clip in clips:
        rows = [_clip_row(o) for o in by_clip[clip]]
        parts.append(ReportTable(f"{Path(clip).stem}, retargeted", list(CLIP_COLUMNS), rows))
    failed = [o for o in outcomes if o["moved"] == REFUSED]
    parts += [f"{o['robot']}, {Path(o['clip']).stem}: {o['why']}" for o in failed]
    whole = [o for o in first if o["moved"] == WHOLE]
    parts.append(f"{len(whole)} of {len(first)} move their whole body, {len(failed)} of {len(outcomes)} runs rejected.")
    parts.append(NOTE)
    data = {"study": "humanoids", "clips": clips, "rows": outcomes, "machine": machine()}
    return StudyReport(
        data, parts, pictures=lambda: {"humanoids.md": as_markdown("Humanoids of other manufacturers", HEAD, parts)}
    )


# -------- One robot, one clip


def _try(job: tuple[str, str]) -> dict[str, Any]:
    """Load a robot and retarget a clip to it; what goes wrong is an outcome, not an error."""
    name, clip = job
    out: dict[str, Any] = {"robot": name, "clip": clip, "moved": REFUSED, "why": ""}
    humanoid: Humanoid | None = humanoids().get(name)
    found = humanoid.find() if humanoid is not None else Path(name)
    out["model"] = found.name if found is not None else "not here"
    try:
        robot = load_robot(name, "floating")
        out |= describe(robot)
        body = load_body_points(clip)
        whole = robot.has_feet and shows_legs(body)
        out |= _whole_body(robot, body) if whole else _upper_body(name, body)
    except CAUGHT as e:
        out["why"] = f"{e.__class__.__name__}: {e}"
    return out


def describe(robot: Robot) -> dict[str, Any]:
    """Findings about a robot without moving it: joints, mass, soles, points."""
    points = [p for p in robot.points if not p.endswith("_tcp")]
    return {"joints": robot.n, "kg": round(robot.mass, 1), "soles": len(robot.feet), "points": len(points)}


def _whole_body(robot: Robot, body: BodyPoints) -> dict[str, Any]:
    compile_first()
    task = WholeBodyTask.of(body, robot)
    began = time.perf_counter()
    trajectory = task.solve().trajectory
    seconds = time.perf_counter() - began
    contact = measure_ground_contact(robot, trajectory.q(), trajectory.contacts, trajectory.rate)
    return {"moved": WHOLE, **contact.row(), **_moved(robot, trajectory, seconds)}


def _upper_body(name: str, body: BodyPoints) -> dict[str, Any]:
    robot = load_robot(name, "fixed")
    compile_first()
    targets = scale_to_robot(body, robot)
    began = time.perf_counter()
    trajectory = retarget_clip(targets, robot)
    return {"moved": UPPER, **_moved(robot, trajectory, time.perf_counter() - began)}


def _moved(robot: Robot, trajectory: JointTrajectory, seconds: float) -> dict[str, Any]:
    q, v = trajectory.positions, np.diff(trajectory.positions, axis=0) * trajectory.rate
    over = max(float(np.max(q - robot.upper)), float(np.max(robot.lower - q)))
    fast = float(np.max(np.abs(v) - robot.velocity))
    try:
        meshes: float | None = 100 * mesh_contacts(robot, q[::MESHES_EVERY]).share
    except CAUGHT:
        meshes = None  # mesh files that are not there
    return {
        "frames": len(q),
        "error_cm": round(100 * float(trajectory.errors[:, :7].mean()), 2),
        "shapes_touch_percent": round(100 * float(np.mean(trajectory.clearance < 0)), 2),
        "meshes_touch_percent": None if meshes is None else round(meshes, 2),
        "beyond_range_rad": round(max(over, 0.0), 6),
        "beyond_speed_rad_s": round(max(fast, 0.0), 6),
        "frames_per_second": round(len(q) / seconds),
    }


# -------- Rows


def _robot_row(o: Mapping[str, Any]) -> list[Any]:
    return [o["robot"], o["model"], *(o.get(k, "-") for k in ("joints", "kg", "soles", "points"))]


def _clip_row(o: Mapping[str, Any]) -> list[Any]:
    values = ["-" if o.get(k) is None else o[k] for k in CLIP_KEYS]
    if o["moved"] == REFUSED:
        return [o["robot"], REFUSED, *values, "-", "-"]
    kept = o["beyond_range_rad"] <= ROUNDING and o["beyond_speed_rad_s"] <= ROUNDING
    return [o["robot"], o["moved"], *values, "kept" if kept else "broken", o["frames_per_second"]]
