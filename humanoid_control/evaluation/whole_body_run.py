"""Recorded whole-body imitation, evaluated from its messages: feet, limits, collisions, errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.evaluation.bag import BagReader
from humanoid_control.evaluation.ground_contact import measure_ground_contact
from humanoid_control.evaluation.recorded_run import JointRows, Signal, limits_kept, nanoseconds
from humanoid_control.retargeting.scaling import POINTS
from humanoid_control.retargeting.whole_body.contacts import EDGES
from humanoid_control.robots.robot import Robot
from humanoid_control.terminal import ReportTable

TOPICS = {"/joint_states", "/odom", "/contacts", "/targets"}
SLIP, PENETRATION = 2e-3, 1e-3  # [m] bounds of a good run


def whole_body_report(path: Path, robot: Robot) -> dict[str, Any]:
    """Evaluate a run of the stack `whole_body`.

    Args:
        path: bag with a contact message per joint message.

    Returns:
        duration_s, frames, rate_hz; contact (as `GroundContact.row`), limits (as `limits_kept`), frames_in_collision,
            closest_m, error_mm (mean of the seven points), root_acceleration (RMS) [m/s^2]; good: feet held, limits
            kept, no collision.

    Raises:
        ConfigError: if the bag holds no such run.
    """
    rows = JointRows(robot)
    roots: dict[int, np.ndarray] = {}
    flags: dict[int, list[bool]] = {}
    targets: dict[int, np.ndarray] = {}
    bag = BagReader(path)
    for topic, _, m in bag.messages(TOPICS):
        if topic == "/joint_states":
            rows.add(m)
        elif topic == "/odom":
            p, o = m.pose.pose.position, m.pose.pose.orientation
            roots[nanoseconds(m.header.stamp)] = np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w])
        elif topic == "/contacts":
            on = {k.ns: k.text == "on" for k in m.markers}
            flags[nanoseconds(m.markers[0].header.stamp)] = [on[e] for e in EDGES]
        else:
            at = {k.ns: (k.pose.position.x, k.pose.position.y, k.pose.position.z) for k in m.markers}
            targets[nanoseconds(m.markers[0].header.stamp)] = np.array([at[n] for n in POINTS])
    bag.close()
    if len(rows) < 10:
        raise ConfigError(f"{path} holds {len(rows)} joint states: not a run of the stack whole_body")
    signal = rows.signal(rows.stamps[0])
    kept = [k for k, ns in enumerate(rows.stamps) if ns in roots and ns in flags]
    if len(kept) < 10:
        raise ConfigError(f"{path}: odom and contacts of {len(kept)} frames only: not a run of the stack whole_body")
    q = np.array([np.concatenate([roots[rows.stamps[k]], signal.position[k]]) for k in kept])
    dt = float(np.median(np.diff(signal.time)))
    contact = measure_ground_contact(robot, q, np.array([flags[rows.stamps[k]] for k in kept]), 1.0 / dt)
    collisions, closest = _collisions(robot, q)
    errors = [
        np.linalg.norm(robot.point_positions(row, POINTS) - targets[rows.stamps[k]], axis=1)
        for k, row in zip(kept, q, strict=True)
        if rows.stamps[k] in targets
    ]
    steps = np.diff([rows.stamps[k] for k in kept])
    whole = np.flatnonzero((steps[1:] < 1.5e9 * dt) & (steps[:-1] < 1.5e9 * dt))  # without missing messages in between
    a = np.diff(q[:, :3], 2, axis=0)[whole] / dt**2
    row = contact.row()
    limits = limits_kept(robot, Signal(signal.time, signal.position, signal.velocity))
    feet = row["slip_max_mm"] <= 1e3 * SLIP and row["penetration_mm"] <= 1e3 * PENETRATION
    return {
        "duration_s": round(float(signal.time[-1]), 2),
        "frames": len(kept),
        "frames_missing": len(rows) - len(kept),
        "rate_hz": round(1.0 / dt, 1),
        "contact": row,
        "limits": limits,
        "frames_in_collision": collisions,
        "closest_m": closest,
        "error_mm": round(1e3 * float(np.mean(errors)), 1) if errors else None,
        "root_acceleration": round(float(np.sqrt(np.mean(np.sum(a**2, axis=1)))), 2) if len(a) else 0.0,
        "good": bool(feet and limits["kept"] and collisions == 0),
    }


def _collisions(robot: Robot, q: np.ndarray) -> tuple[int, float | None]:
    """Return the number of frames in collision, and the least distance [m]; None if no pair is near."""
    distance, data = robot.self_distance(), robot.model.createData()
    frames, closest = 0, np.inf
    for row in q:
        pin.forwardKinematics(robot.model, data, row)
        near = distance.near(data, 0.05)
        if len(near):
            least = float(near.distance.min())
            frames, closest = frames + (least < 0), min(closest, least)
    return int(frames), (closest if np.isfinite(closest) else None)


def whole_body_parts(report: dict[str, Any]) -> list[ReportTable | str]:
    """Return the report as a table and a verdict."""
    c, limits, closest = report["contact"], report["limits"], report["closest_m"]
    beyond = f"{limits['position_beyond_limit_rad']:.2g} rad"
    rows = [
        ["frames", f"{report['frames']} at {report['rate_hz']:g} Hz"],
        ["contacts", c["contacts"]],
        ["slip of a contact", f"{c['slip_mm']:.3f} mm median, {c['slip_max_mm']:.3f} mm worst"],
        ["soles below the floor", f"{c['penetration_mm']:.3f} mm worst"],
        ["above it in contact", f"{c['floating_mm']:.3f} mm worst"],
        ["frames with overlapping shapes", report["frames_in_collision"]],
        ["nearest shapes", "far apart" if closest is None else f"{1e3 * closest:.1f} mm"],
        ["joints beyond their range, speed of its limit", f"{beyond}, {limits['speed_share_of_limit']:.2f}"],
        ["error of shoulders, chest and arms", f"{report['error_mm']} mm"],
        ["acceleration of the root, rms", f"{report['root_acceleration']:g} m/s^2"],
    ]
    good = report["good"]
    verdict = "no slip, limits kept, no contact of shapes" if good else "slip, a limit exceeded, or contact of shapes"
    return [ReportTable("the whole body", ["what", "value"], rows), verdict]
