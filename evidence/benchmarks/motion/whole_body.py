"""Retargeting of a whole body, next to GMR where it is installed: the same person, frames and robot.

The feet of both are judged by pinocchio's kinematics of our model of the robot. GMR plans no contacts: next to it the
slip of both is in the contacts of the person (`studies.gmr`), and ours in the robot's own as well.
"""

from __future__ import annotations

import time

import numpy as np
import pinocchio as pin

from evidence.benchmarks import Row, row_of
from evidence.studies.gmr import GMR_ROBOTS, PEER, gmr_floor, gmr_frames, gmr_installed
from humanoid_control.errors import ConfigError
from humanoid_control.evaluation import measure_ground_contact
from humanoid_control.mocap import BodyPoints, load_body_points
from humanoid_control.retargeting import WholeBodyRetargeter, WholeBodyScaler
from humanoid_control.retargeting.whole_body.contacts import level
from humanoid_control.retargeting.whole_body.scaling import WholeBodyTargets
from humanoid_control.robots import Robot, load_robot
from humanoid_control.terminal import progress

COLUMNS = ["name", "unit", "median", "p99", "n"]
TITLE = "bench whole_body, a frame of root, arms and legs"


def measure(robot: str = "lola,hrp2,suralp,wabian2", motion: str = "dance", quiet: bool = True) -> list[Row]:
    """Rows for each robot: time of a frame by the live method, next to GMR's; slip, penetration, skating of both.

    Args:
        robot: names or paths, separated by commas. motion: a clip that shows legs. quiet: no bar.

    Raises:
        ConfigError: no robot.
    """
    names = [n.strip() for n in robot.split(",") if n.strip()]
    if not names:
        raise ConfigError("--robot contains no robot name")
    body, out = load_body_points(motion), []
    with progress("whole bodies", len(names), quiet=quiet) as show:
        for k, name in enumerate(names):
            out += _rows(name, load_robot(name, "floating"), body)
            show(k + 1)
    return out


def _rows(name: str, robot: Robot, body: BodyPoints) -> list[Row]:
    scaler = WholeBodyScaler(body, robot)
    targets = scaler.targets(body)
    solver = WholeBodyRetargeter.following(targets, robot)
    frames, dt = solver.inputs(targets), 1.0 / targets.rate
    solver.start(frames, float(targets.heading[0]))
    q, contacts, took = [], [], []
    for k in range(len(targets)):
        begin = time.perf_counter()
        if k:
            solver.step(frames, k, dt)
        took.append(1e6 * (time.perf_counter() - begin))
        q.append(np.concatenate([pin.SE3ToXYZQUAT(solver.root), solver.joints]))
        contacts.append(solver.contacts.copy())
    ours = np.array(q)
    rows = [row_of(f"{name}_ours_live", "us", took[2:])]
    rows += _feet(f"{name}_ours", robot, ours, np.array(contacts), targets.rate)
    whole = time.perf_counter()
    solver.solve(targets)
    rows.append(row_of(f"{name}_ours_whole_clip", "us", [1e6 * (time.perf_counter() - whole) / len(targets)]))
    if name in GMR_ROBOTS and gmr_installed():
        theirs, times = gmr_frames(name, robot, level(body, scaler.floor))
        rows.append(row_of(f"{name}_gmr", "us", times[2:]))
        rows.append(row_of(f"{name}_gmr_over_ours", "", np.array(times[2:]) / np.array(took[2:])))
        theirs[:, 2] -= gmr_floor(robot, theirs)
        rows += _feet(f"{name}_gmr", robot, theirs, targets.contacts, targets.rate)[1:]
        rows += _same_contacts(f"{name}_ours", robot, ours, targets)
        rows += _same_contacts(f"{name}_gmr", robot, theirs, targets)
    return rows


def _feet(name: str, robot: Robot, q: np.ndarray, contacts: np.ndarray, rate: float) -> list[Row]:
    """Slip of each contact, penetration of each frame, skating."""
    contact = measure_ground_contact(robot, q, contacts, rate)
    return [
        row_of(f"{name}_slip", "mm", 1e3 * contact.slip),
        row_of(f"{name}_penetration", "mm", 1e3 * contact.penetration),
        row_of(f"{name}_skating", "mm/s", [1e3 * contact.skating]),
    ]


def _same_contacts(name: str, robot: Robot, q: np.ndarray, targets: WholeBodyTargets) -> list[Row]:
    """Slip of each contact of the person, and how far soles are above the floor in each frame of one."""
    contact = measure_ground_contact(robot, q, targets.contacts, targets.rate)
    return [
        row_of(f"{name}_slip_person", "mm", 1e3 * contact.slip),
        row_of(f"{name}_floating_person", "mm", 1e3 * contact.floating),
    ]


def notes(rows: list[Row]) -> list[str]:
    """What the rows mean."""
    out = [
        "ours_live: a frame by `WholeBodyRetargeter.step`, as a node calls it, collisions and limits included; "
        "ours_whole_clip: the same in one call. slip: longest displacement of a corner in each contact, ours in the "
        "contacts of the robot; penetration: largest per frame; skating: mean speed of corners below 5 mm.",
    ]
    if any("_gmr" in r["name"] for r in rows):
        out.append(
            "gmr: `GeneralMotionRetargeting.retarget`, its smplx configuration, solver and damping unchanged, no "
            "collisions. Segment poses are computed from the points of the clip; the floor is at the usual height of "
            "its soles. "
            "slip_person, floating_person: both programs in the contacts of the person, since GMR plans none."
        )
    else:
        out.append(f"GMR is not installed ({PEER}), or it knows none of these robots: {', '.join(GMR_ROBOTS)}.")
    return out
