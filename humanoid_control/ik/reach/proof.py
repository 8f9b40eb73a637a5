"""What a run of random reaching proves, from the commands that were recorded and from nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from humanoid_control.ik.reach.goals import HANDS, REACHABLE
from humanoid_control.imitation.run_report import Signal, limits_kept
from humanoid_control.robots import Robot
from humanoid_control.robots.near_pairs import RobotPairs

LOOK = 0.1  # [m] pairs farther apart are not told
REACHED = 0.01  # [m]
REACHED_SHARE = 0.8  # of the reachable goals; a local method may be held up on its way to the others
REST = 0.2  # [s] at the end of a goal's stay, when the hands should be at rest
ROUNDING = 1e-6
GAP = 0.05  # [s]
STOPPED = 0.05  # [m] a hand that moves less in that time counts as held


@dataclass(frozen=True)
class GoalRecord:
    """A goal as it was published when the targets had come to it.

    Attributes:
        number, kind: as in the script.
        time, end: when the targets came and when they left [s], on the clock of the commands.
        points: (2, 3) of the hands [m].
    """

    number: int
    kind: str
    time: float
    end: float
    points: np.ndarray


def collisions(robot: Robot, commands: Signal) -> dict[str, Any]:
    """Exact distances of the robot's own shapes in every command, and half way from each to the next.

    Returns:
        postures: how many were measured. in_collision: how many of them. closest_m, closest_pair, closest_at_s: of the
        nearest pair of all; None where nothing came within 0.1 m.
    """
    pairs, between = RobotPairs(robot), (commands.position[1:] + commands.position[:-1]) / 2
    times = np.concatenate([commands.time, (commands.time[1:] + commands.time[:-1]) / 2])
    closest, who, when, hits = np.inf, ("", ""), np.nan, 0
    for t, joints in zip(times, np.vstack([commands.position, between]), strict=True):
        near = pairs.near(robot.q(joints), LOOK)
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
    """The greatest acceleration between two commands [rad/s^2], from the velocities and stamps they carry.

    Args:
        commands: with their velocities.
        limit: what the joints may do [rad/s^2].
    """
    dt = np.maximum(np.diff(commands.time), 1e-9)
    most = float((np.abs(np.diff(commands.velocity, axis=0)) / dt[:, None]).max(initial=0.0))
    # Stamps in nanoseconds make an interval of 0.1 ms uncertain by 1e-5 of itself.
    return {"most_rad_s2": most, "limit_rad_s2": limit, "kept": bool(most <= limit * (1 + 1e-4) + ROUNDING)}


def goal_results(robot: Robot, commands: Signal, goals: Sequence[GoalRecord]) -> list[dict[str, Any]]:
    """How near the hands were to each goal at the end of its stay, and whether they had come to rest.

    Returns:
        A row a goal at whose end commands were recorded: number, kind, error_m of the farther hand, moved_m by a
        hand in the last 0.2 s, reached, held.
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
    """Whether there are commands from `begin` to `end` [s] without a gap that would have to be guessed across."""
    inside = times[(times >= begin - GAP) & (times <= end + GAP)]
    return bool(len(inside) > 1 and inside[0] <= begin and inside[-1] >= end and np.diff(inside).max() <= GAP)


def prove(
    robot: Robot, commands: Signal, goals: Sequence[GoalRecord], acceleration: float, measured: bool = False
) -> dict[str, Any]:
    """Everything that is claimed of a run; `good` is whether all of it holds.

    Claimed is: no self-collision, no limit of range, speed or acceleration broken, four fifths of the reachable goals
    reached within 1 cm, none of the others reached, and the hands held still there.

    Args:
        robot: with a fixed base.
        commands: every command that was recorded.
        goals: what was asked for.
        acceleration: the limit that the inverse kinematics was given [rad/s^2].
        measured: the commands are velocities under feedback, and their positions were measured. Then acceleration is
            told but not claimed, because a correction of the estimate's error is added to what was solved.
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
