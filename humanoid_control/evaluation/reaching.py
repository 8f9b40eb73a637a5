"""Verification of a random-reaching run from its recorded commands only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.evaluation.bag import BagReader
from humanoid_control.evaluation.recorded_run import (
    MEASURED,
    JointRows,
    Signal,
    commands_of,
    limits_kept,
    nanoseconds,
    postures_from,
    postures_note,
)
from humanoid_control.kinematics import node_statuses
from humanoid_control.reaching import HANDS, REACHABLE
from humanoid_control.robots.robot import Robot
from humanoid_control.terminal import ReportTable

HORIZON = 0.1  # [m] range of reported pairs
REACHED = 0.01  # [m]
REACHED_SHARE = 0.8  # required share of reachable goals; a local method may get stuck on the way to others
REST = 0.2  # [s] at the end of a goal, with the hands at rest
ROUNDING = 1e-6
GAP = 0.05  # [s]
STOPPED = 0.05  # [m] motion within REST below which a hand is held


@dataclass(frozen=True)
class GoalRecord:
    """Goal as published when the targets reached it.

    Attributes:
        time: arrival of the targets, command clock [s].
        end: departure of the targets [s].
        points: (2, 3) of the hands [m].
    """

    number: int
    kind: str
    time: float
    end: float
    points: np.ndarray


def collisions(robot: Robot, commands: Signal) -> dict[str, Any]:
    """Measure exact self-distances in every command and halfway between commands.

    Returns:
        postures: number measured. in_collision: number in collision. closest_m, closest_pair, closest_at_s: of the
            nearest pair; None beyond 0.1 m.
    """
    pairs, between = robot.collision_monitor("shapes"), (commands.position[1:] + commands.position[:-1]) / 2
    times = np.concatenate([commands.time, (commands.time[1:] + commands.time[:-1]) / 2])
    closest, who, when, hits = np.inf, ("", ""), np.nan, 0
    for t, joints in zip(times, np.vstack([commands.position, between]), strict=True):
        near = pairs.update(robot.q(joints), HORIZON)
        if not len(near):
            continue
        k = int(np.argmin(near.distance))
        hits += near.distance[k] < 0
        if near.distance[k] < closest:
            closest, who, when = float(near.distance[k]), pairs.name(int(near.pair[k])), float(t)
    found = bool(np.isfinite(closest))
    return {
        "postures": len(times),
        "in_collision": int(hits),
        "closest_m": closest if found else None,
        "closest_pair": list(who),
        "closest_at_s": when if found else None,
    }


def accelerations(commands: Signal, limit: float) -> dict[str, Any]:
    """Return the largest acceleration between commands, from velocities and stamps, and a limit [rad/s^2]."""
    dt = np.maximum(np.diff(commands.time), 1e-9)
    most = float((np.abs(np.diff(commands.velocity, axis=0)) / dt[:, None]).max(initial=0.0))
    # Stamps in nanoseconds: an interval of 0.1 ms has a relative error of 1e-5.
    return {"most_rad_s2": most, "limit_rad_s2": limit, "kept": bool(most <= limit * (1 + 1e-4) + ROUNDING)}


def goal_results(robot: Robot, commands: Signal, goals: Sequence[GoalRecord]) -> list[dict[str, Any]]:
    """Return distance and motion of the hands at the end of each goal.

    Returns:
        A row per recorded goal: number, kind, error_m of the farther hand, moved_m by a hand in the last 0.2 s,
            reached, held.
    """
    rows = []
    for g in goals:
        if g.number == 0 or not _recorded(commands.time, g.end - REST, g.end):
            continue
        before, at = (
            robot.point_positions(robot.q(joints), HANDS) for joints in commands.at(np.array([g.end - REST, g.end]))
        )
        error = float(np.linalg.norm(at - g.points, axis=1).max())
        moved = float(np.linalg.norm(at - before, axis=1).max())
        rows.append(
            {
                "number": g.number,
                "kind": g.kind,
                "error_m": error,
                "moved_m": moved,
                "reached": error <= REACHED,
                "held": moved <= STOPPED,
            }
        )
    return rows


def _recorded(times: np.ndarray, begin: float, end: float) -> bool:
    """Return True if commands cover `begin` to `end` [s] without a gap."""
    inside = times[(times >= begin - GAP) & (times <= end + GAP)]
    return bool(len(inside) > 1 and inside[0] <= begin and inside[-1] >= end and np.diff(inside).max() <= GAP)


def verify_run(
    robot: Robot, commands: Signal, goals: Sequence[GoalRecord], acceleration: float, measured: bool = False
) -> dict[str, Any]:
    """Check all claims about a run; `good` is True if all hold.

    Claims: no self-collision; range, speed and acceleration limits kept; four fifths of the reachable goals reached
    within 1 cm; no unreachable goal reached, with hands at rest.

    Args:
        acceleration: limit of the inverse kinematics [rad/s^2].
        measured: commands are feedback velocities with measured positions; acceleration is then not required.
    """
    rows = goal_results(robot, commands, goals)
    near = [r for r in rows if r["kind"] == REACHABLE]
    others = [r for r in rows if r["kind"] != REACHABLE]
    reached = sum(r["reached"] for r in near)
    report: dict[str, Any] = {
        "self_collision": collisions(robot, commands),
        "limits": limits_kept(robot, commands, measured),
        "acceleration": accelerations(commands, acceleration),
        "goals": rows,
        "reachable": {"goals": len(near), "reached": reached, **_errors(near)},
        "unreachable": {"goals": len(others), "held": sum(r["held"] for r in others), **_errors(others)},
    }
    checks = {
        "no self-collision": report["self_collision"]["in_collision"] == 0,
        "limits kept": report["limits"]["kept"],
        "acceleration kept": report["acceleration"]["kept"],
        "reachable goals reached": reached >= REACHED_SHARE * len(near),
        "others not reached, and held": all(r["held"] and not r["reached"] for r in others),
    }
    if measured:
        del checks["acceleration kept"]
    return report | {"checks": checks, "good": all(checks.values())}


def _errors(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    errors = [r["error_m"] for r in rows]
    return {
        "error_median_m": float(np.median(errors)) if errors else None,
        "error_max_m": max(errors, default=None),
    }


# -------- Recording and report

TOPICS = {"/joint_commands", "/joint_states", "/goals", "/diagnostics"}
IK = "whole_body_ik"
COMPLETE = 99.0  # [%]
SETTLED = 2  # diagnostics, which come once a second
FIGURES = (
    "rate_hz",
    "latency_p50_ms",
    "latency_p99_ms",
    "period_error_p50_ms",
    "period_error_p99_ms",
    "execution_p50_ms",
    "execution_p99_ms",
)


@dataclass(frozen=True)
class ReachRecording:
    """Commands, goals, and diagnostics by node of a bag."""

    commands: Signal
    goals: list[GoalRecord]
    nodes: dict[str, list[dict[str, str]]]
    postures_from: str


def read_reach(path: Path, robot: Robot) -> ReachRecording:
    """Read a bag.

    Times count from the first command; diagnostics have "stamp", in nanoseconds since then.

    Raises:
        ConfigError: if the bag lacks commands or postures.
    """
    bag = BagReader(path)
    rows = {topic: JointRows(robot) for topic in ("/joint_states", "/joint_commands")}
    asked: list[tuple[int, Any]] = []
    nodes: dict[str, list[dict[str, str]]] = {}
    for topic, _, m in bag.messages(TOPICS):
        if topic in rows:
            rows[topic].add(m)
        elif topic == "/goals":
            asked.append((nanoseconds(m.markers[0].header.stamp), m.markers))
        else:
            stamp = str(nanoseconds(m.header.stamp))
            for name, s in node_statuses(m).items():
                nodes.setdefault(name, []).append({"message": s.message, "stamp": stamp, **s.values})
    bag.close()
    given = rows["/joint_commands"]
    if len(given) < 2:
        raise ConfigError(f"{path} contains no commands: did the nodes discover each other? try `humanoid doctor`")
    # Float stamps since 1970 resolve only a quarter of a microsecond: count from the first one.
    first = given.stamps[0]
    commands = commands_of(given, rows["/joint_states"], first, path)
    for values in (v for said in nodes.values() for v in said):
        values["stamp"] = str(int(values["stamp"]) - first)
    known = [(ns, markers) for ns, markers in asked if {m.ns for m in markers} >= set(HANDS)]
    goals = [_goal(1e-9 * (ns - first), markers) for ns, markers in known]
    return ReachRecording(commands, goals, nodes, postures_from(given))


def _goal(time: float, markers: Any) -> GoalRecord:
    by_name = {m.ns: m.pose.position for m in markers}
    points = np.array([[getattr(by_name[h], axis) for axis in "xyz"] for h in HANDS])
    first = markers[0]
    stays = first.lifetime.sec + 1e-9 * first.lifetime.nanosec
    return GoalRecord(int(first.id), first.text, time, time + stays, points)


def reach_report(path: Path, robot: Robot, acceleration: float, nodes_of_interest: Collection[str]) -> dict[str, Any]:
    """Return verification, loop timing and last diagnostics of selected nodes as plain values."""
    read = read_reach(path, robot)
    commands, nodes = read.commands, read.nodes
    last = {name: rows[-1] for name, rows in nodes.items()}
    return {
        "robot": robot.name,
        "bag": str(path),
        "duration_s": float(commands.time[-1]),
        "postures_from": read.postures_from,
        **verify_run(robot, commands, read.goals, acceleration, measured=read.postures_from == MEASURED),
        "recorded_percent": recorded_percent(commands.time, nodes.get(IK, [])),
        "loop": closed_loop(nodes.get(IK, [])),
        "nodes": {name: values for name, values in last.items() if name in nodes_of_interest},
    }


def recorded_percent(times: np.ndarray, rows: list[dict[str, str]]) -> float | None:
    """Return the share of the node's sent commands that were recorded [%]."""
    counted = [(1e-9 * int(r["stamp"]), int(r["commands"])) for r in rows if "commands" in r]
    counted = [c for c in counted if c[0] >= 0]
    if len(counted) < 2 or counted[-1][1] == counted[0][1]:
        return None
    (begin, sent_before), (end, sent) = counted[0], counted[-1]
    recorded = int(((times > begin) & (times <= end)).sum())
    return min(100.0, 100.0 * recorded / (sent - sent_before))


def closed_loop(rows: list[dict[str, str]]) -> dict[str, Any]:
    """Return latency, period error and missed ticks of the inverse kinematics, from its diagnostics in time order.

    Latency is from the target stamp until the command is published. Ticks missed during start-up do not count.
    """
    active = [r for r in rows if r.get("state") == "active"]
    if not active:
        return {}
    ticks, missed = (
        int(active[-1][k]) - int(active[min(SETTLED, len(active) - 1)][k]) for k in ("ticks", "missed_ticks")
    )
    share = 100 * missed / max(1, ticks + missed)
    values = {k: float(active[-1].get(k, "nan")) for k in FIGURES}
    return values | {"ticks": ticks, "missed_ticks": missed, "missed_percent": share}


def reach_parts(r: dict[str, Any]) -> list[ReportTable | str]:
    """Return the report as tables and sentences."""
    rows = [
        [g["number"], g["kind"], round(1000 * g["error_m"], 1), round(1000 * g["moved_m"], 1), _verdict(g)]
        for g in r["goals"]
    ]
    parts: list[ReportTable | str] = [
        ReportTable("goals", ["goal", "kind", "error mm", "moved at the end mm", ""], rows)
    ]
    near, others, hits = r["reachable"], r["unreachable"], r["self_collision"]
    parts += postures_note(r)
    parts.append(f"reachable goals: {near['reached']} of {near['goals']} within 10 mm{_median(near)}")
    parts.append(f"unreachable goals: {others['held']} of {others['goals']} held{_median(others)}")
    closest = "far" if hits["closest_m"] is None else f"{1000 * hits['closest_m']:.1f} mm"
    who = f", {' and '.join(hits['closest_pair'])}" if hits["closest_m"] is not None else ""
    parts.append(f"self-collision: {hits['in_collision']} of {hits['postures']} postures (closest: {closest}{who})")
    limits, most = r["limits"], r["acceleration"]
    parts.append(
        f"limits: {'kept' if limits['kept'] else 'BROKEN'} in {limits['commands']} commands, speed up to "
        f"{100 * limits['speed_share_of_limit']:.0f} % of its limit; acceleration: "
        f"{'kept' if most['kept'] else 'BROKEN'}, up to {most['most_rad_s2']:.0f} of {most['limit_rad_s2']:.0f} rad/s^2"
    )
    if (share := r["recorded_percent"]) is not None and share < COMPLETE:
        parts.append(f"only {share:.0f} % of the commands were recorded: this machine is too slow for the recorder")
    loop = r["loop"]
    if loop:
        parts.append(
            f"loop at {loop['rate_hz']:.0f} Hz: targets to command {loop['latency_p50_ms']:.2f} ms "
            f"(p99 {loop['latency_p99_ms']:.2f}), period error {loop['period_error_p50_ms']:.3f} ms "
            f"(p99 {loop['period_error_p99_ms']:.3f}), {loop['missed_ticks']} of {loop['ticks']} ticks missed"
        )
    wrong = [name for name, holds in r["checks"].items() if not holds]
    parts.append("proven: " + ", ".join(r["checks"]) if not wrong else f"NOT proven: {', '.join(wrong)}")
    return parts


def _verdict(goal: dict[str, Any]) -> str:
    if goal["kind"] == "reachable":
        return "reached" if goal["reached"] else "not reached"
    return "held" if goal["held"] else "moving"


def _median(rows: dict[str, Any]) -> str:
    m = rows["error_median_m"]
    return "" if m is None else f", error {1000 * m:.1f} mm (median), {1000 * rows['error_max_m']:.1f} mm at most"
