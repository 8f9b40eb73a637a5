"""Whole bodies over many dances and robots: the quality of each clip on each robot, compared with GMR if installed.

Every clip is moved to every robot; both motions are measured by the same functions, in the same frames, on the same
model of the robot. GMR plans no contacts: slip and floating of both are compared in the person's contacts, and GMR has
neither a slip in contacts of its own nor a grade, which counts that slip.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evidence.studies.gmr import GMR_ROBOTS, gmr_installed, gmr_trajectory
from evidence.studies.report import KeptOutcomes, Progress, StudyReport, as_markdown, silent
from humanoid_control.errors import HumanoidError
from humanoid_control.evaluation import measure_ground_contact
from humanoid_control.evaluation.clip_quality import ALWAYS, GRADES
from humanoid_control.evaluation.whole_body_score import WholeBodyScore, score_motion
from humanoid_control.mocap import BodyPoints, load_body_points
from humanoid_control.paths import test_data
from humanoid_control.retargeting import LIVE, WholeBodyTask, WholeBodyTrajectory, at_solving_rate, whole_body_solver
from humanoid_control.retargeting.whole_body.contacts import find_floor, level
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.catalogue import urdf_path
from humanoid_control.robots.humanoids import found_humanoids
from humanoid_control.terminal import ReportTable, machine
from humanoid_control.warm_up import WHOLE_BODY, compile_first

BIPEDS, OTHERS = ("lola", "hrp2", "suralp", "wabian2"), ("g1", "h1_2", "talos")
RECORDINGS = (
    "mocap/dance_markers/dance1.trc",
    "mocap/cmu_bvh/05_02.bvh",
    "mocap/vicon_c3d/PiG_Motion-FlatFoot-One.c3d",
)  # of $HUMANOID_TEST_DATA: two dances and a walk
OURS, CLIP, GMR = "ours", "ours, clip", "GMR"  # frame by frame, and all frames at once; and another's
METHODS = {OURS: LIVE, CLIP: "clip"}
CAUGHT = (HumanoidError, ArithmeticError, ValueError, IndexError, KeyError, RuntimeError)
UNKNOWN = "-"
Column = tuple[str, str, int]
KEPT = (
    ("error cm", "error_cm", 2),
    ("slip mm", "slip_mm", 2),
    ("penetration mm", "penetration_mm", 2),
    ("floating mm", "floating_mm", 2),
    ("shapes touch %", "colliding_percent", 2),
    ("meshes touch %", "meshes_percent", 2),
    ("beyond range °", "beyond_range_deg", 2),
    ("speed / limit", "speed_share", 2),
)
TOLD = (
    ("slip mm, person's contacts", "slip_person_mm", 1),
    ("floating mm, person's contacts", "floating_person_mm", 1),
    ("skating mm/s", "skating_mm_s", 1),
    ("contacts agree %", "contacts_agree_percent", 0),
    ("CoM over support %", "balanced_percent", 0),
    ("torque / limit %", "torque_p99_percent", 0),
    ("acceleration rad/s²", "acceleration_p99_rad_s2", 0),
)
"""Head, name of the number, digits: of what has a goal or a grade, and of what has none."""
OWN_CONTACTS = ("grade", "verdict", "slip_mm", "floating_mm", "contacts_agree_percent")
"""What is known only of a motion with contacts of its own."""
GOALS = {
    "slip_mm": 2.0,
    "penetration_mm": 1.0,
    "floating_mm": 5.0,
    "colliding_percent": 0.0,
    "meshes_percent": 0.5,
    "beyond_range_deg": ALWAYS,
    "speed_share": 1.0 + ALWAYS,
}
"""Most that a median over the clips may be."""
NOTE = (
    "Error: mean distance of the points to their targets; GMR scales them differently. Slip: 95th percentile of the "
    "contacts. Penetration, floating: largest values. Slip, floating and the grade are measured in the robot's "
    "own contacts, which GMR does not plan. The second table compares both programs in the contacts of the person; "
    "our contacts begin later. Shapes: pairs that our solver keeps apart. Meshes: collision meshes of the robot. "
    "Contacts agree: frames in which the same heels and toes of robot and person are on the floor. CoM over support: "
    "share of the frames in contact. "
    "Torque: by inverse dynamics, 99th percentile of the most loaded joint. Acceleration: 99th "
    "percentile. GMR runs its own smplx configuration, solver and robot model, without collisions. Three inputs of "
    "its rows are ours: the poses of the segments, from the clip's points; the height of the floor, the usual "
    "height of its soles; joint angles, transferred to our model by name. Speed: `humanoid bench whole_body`."
)


def run_study(
    robot: Sequence[str] = (),
    clips: Sequence[str] = (),
    resume: Path | None = None,
    workers: int | None = None,
    show: Progress = silent,
    method: Sequence[str] = (LIVE,),
) -> StudyReport:
    """Retarget clips to robots, and measure all that a clip's quality has.

    Args:
        robot: names or paths; default: our four bipeds, and of g1, h1_2 and talos those whose models are here.
        clips: built in or files; default: the dance, and two dances and a walk where recordings are there.
        resume: file that keeps outcomes. workers: processes; None: one a core.
        method: ours: 'live', frame by frame, 'clip', all frames at once, or both.

    Raises:
        UnknownNameError, RobotError: no such method or robot, or its model is not here.
        ClipError: a clip that cannot be read. ConfigError: `resume` holds something else.
    """
    for one in method:
        whole_body_solver(one)
    ours = [who for who, name in METHODS.items() if name in method]
    here = set(found_humanoids())
    names = list(dict.fromkeys(robot)) or [*BIPEDS, *(name for name in OTHERS if name in here)]
    found = [str(path) for path in map(test_data, RECORDINGS) if path is not None]
    clips = list(dict.fromkeys(clips)) or ["dance", *found]
    for name in names:
        urdf_path(name)
    for clip in clips:
        load_body_points(clip)
    kept = KeptOutcomes(resume, "whole bodies")
    peer = gmr_installed()
    jobs = [(clip, name, who) for clip in clips for name in names for who in _who(name, peer, ours)]
    outcomes = list(kept.all(jobs, _try, workers, lambda share: show(share, "whole bodies")))
    rows = [dict(zip(("clip", "robot", "who"), job, strict=True)) | o for job, o in zip(jobs, outcomes, strict=True)]
    parts: list[ReportTable | str] = median_tables(rows)
    for clip in clips:
        parts += clip_tables(clip, [r for r in rows if r["clip"] == clip])
    parts += [f"{clip_name(r['clip'])}, {r['robot']}, {r['who']}: {r['why']}" for r in rows if r["why"]]
    parts += [goal_line(rows), NOTE]
    if not peer and any(name in GMR_ROBOTS for name in names):
        parts.append("GMR is not installed here.")
    data = {"study": "whole_body", "clips": clips, "robots": names, "rows": rows, "machine": machine()}
    return StudyReport(data, parts, pictures=lambda: {"whole_body.md": as_markdown("Whole bodies", HEAD, parts)})


HEAD = "`humanoid study whole_body -o FILE.md` writes this page; options select robots and clips."


def _who(name: str, peer: bool, ours: Sequence[str]) -> tuple[str, ...]:
    """Who moves a robot."""
    return (*ours, GMR) if peer and name in GMR_ROBOTS else tuple(ours)


# -------- One robot, one clip


def _try(job: tuple[str, str, str]) -> dict[str, Any]:
    """Move a robot by a clip, and measure it; what goes wrong is an outcome, not an error."""
    clip, name, who = job
    try:
        return {"why": "", **measure_pair(load_body_points(clip), name, who)}
    except CAUGHT as e:
        return {"why": f"{e.__class__.__name__}: {e}"}


def measure_pair(body: BodyPoints, name: str, who: str) -> dict[str, Any]:
    """Grade, verdict and numbers of a clip on a robot.

    Args:
        body: the clip. name: of the robot, or its path. who: OURS, CLIP or GMR.

    Raises:
        ClipError, RobotError: the clip shows no legs, or the robot has none.
    """
    robot = load_robot(name, "floating")
    compile_first(WHOLE_BODY)
    trajectory, person, rate = moved_by(body, robot, name, who)
    score = score_motion(body.name, robot, trajectory, person if who != GMR else None)
    out = {"grade": score.quality.grade, "verdict": score.quality.verdict, **score.quality.numbers}
    if who == GMR:
        out = {key: value for key, value in out.items() if key not in OWN_CONTACTS}
    return out | {"frames_per_second": rate} | in_contacts(robot, trajectory, person) | _mesh_words(score)


def moved_by(body: BodyPoints, robot: Robot, name: str, who: str) -> tuple[WholeBodyTrajectory, np.ndarray, float]:
    """Motion of a robot by a clip, contacts (T, 4) of the person, and frames a second.

    Args:
        body: the clip. robot: with a floating base. name: of it, which GMR knows. who: OURS, CLIP or GMR.

    Raises:
        ClipError, RobotError: the clip shows no legs, or the robot has none.
    """
    task = WholeBodyTask.of(body, robot)
    if who != GMR:
        began = time.perf_counter()
        motion = task.solve(method=METHODS[who])
        return motion.trajectory, motion.targets.contacts, len(task) / (time.perf_counter() - began)
    solved, between, _ = at_solving_rate(body)
    upright = level(solved, find_floor(solved))
    clip = replace(upright, positions=upright.positions[::between].copy(), rate=upright.rate / between)
    person = task.targets.contacts[::between]
    trajectory, rate = gmr_trajectory(name, robot, clip, person)
    return trajectory, person, rate


def in_contacts(robot: Robot, trajectory: WholeBodyTrajectory, contacts: np.ndarray) -> dict[str, float]:
    """Slip that 95 of 100 contacts stay below, and the most that soles float in them [mm].

    Args:
        robot: whose motion it is. trajectory: the motion.
        contacts: (T, 4) of the person.
    """
    ground = measure_ground_contact(robot, trajectory.q(), contacts, trajectory.rate)
    slip = 1000 * float(np.percentile(ground.slip, 95)) if len(ground.slip) else 0.0
    return {"slip_person_mm": slip, "floating_person_mm": 1000 * float(ground.floating.max())}


def _mesh_words(score: WholeBodyScore) -> dict[str, Any]:
    """The pair of links whose meshes touch most often; empty without one."""
    meshes = score.measures.meshes
    return {"mesh_pair": list(meshes.pairs[0]) if meshes is not None and meshes.pairs else []}


# -------- Rows


def clip_name(clip: str) -> str:
    """Name of a clip for a title."""
    return Path(clip).stem


def median_tables(rows: Sequence[Mapping[str, Any]]) -> list[ReportTable | str]:
    """Medians over the clips, a row for each robot and for each who moved it, with how often each grade was given."""
    kept: list[list[Any]] = []
    told: list[list[Any]] = []
    for robot, who in dict.fromkeys((r["robot"], r["who"]) for r in rows):
        mine = [r for r in rows if (r["robot"], r["who"]) == (robot, who) and not r["why"]]
        grades = " ".join(f"{n}{g}" for g in GRADES if (n := sum(r.get("grade") == g for r in mine)))
        kept.append([robot, who, len(mine), grades or UNKNOWN, *_medians(mine, KEPT)])
        told.append([robot, who, *_medians(mine, TOLD)])
    return [
        ReportTable("medians over the clips", ["robot", "", "clips", "grades", *(c[0] for c in KEPT)], kept),
        ReportTable("measures without a goal", ["robot", "", *(c[0] for c in TOLD)], told),
    ]


def clip_tables(clip: str, rows: Sequence[Mapping[str, Any]]) -> list[ReportTable | str]:
    """A clip on every robot."""
    heads, named = ["robot", ""], [[r["robot"], r["who"]] for r in rows]
    kept = [[*n, r.get("grade", UNKNOWN), *_cells(r, KEPT)] for n, r in zip(named, rows, strict=True)]
    told = [[*n, *_cells(r, TOLD)] for n, r in zip(named, rows, strict=True)]
    return [
        ReportTable(clip_name(clip), [*heads, "grade", *(c[0] for c in KEPT)], kept),
        ReportTable(f"{clip_name(clip)}, measures without a goal", [*heads, *(c[0] for c in TOLD)], told),
    ]


def goal_line(rows: Sequence[Mapping[str, Any]]) -> str:
    """What of ours misses a goal in the median over the clips, in words."""
    missed = []
    for robot in dict.fromkeys(r["robot"] for r in rows):
        for who in METHODS:
            mine = [r for r in rows if (r["robot"], r["who"]) == (robot, who) and not r["why"]]
            name = robot if who == OURS else f"{robot}, {METHODS[who]}"
            for head, key, digits in KEPT:
                value = _median(r.get(key) for r in mine)
                if key in GOALS and value is not None and value > GOALS[key]:
                    missed.append(f"{name}: {head} {_rounded(value, digits)}")
    return f"Goals missed in the median: {'; '.join(missed)}." if missed else "Every goal is met in the median."


def _median(values: Iterable[Any]) -> float | None:
    known = [float(v) for v in values if v is not None]
    return float(np.median(known)) if known else None


def _rounded(value: float | None, digits: int) -> Any:
    if value is None or not np.isfinite(value):
        return UNKNOWN
    return round(value, digits) if digits else round(value)


def _cells(r: Mapping[str, Any], columns: Sequence[Column]) -> list[Any]:
    return [_rounded(r.get(key), digits) for _, key, digits in columns]


def _medians(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> list[Any]:
    return [_rounded(_median(r.get(key) for r in rows), digits) for _, key, digits in columns]
