"""Recorded run: its bag as arrays, with link errors, limits and self-collisions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.evaluation.bag import BagReader
from humanoid_control.evaluation.tracking_error import LINK_ENDS
from humanoid_control.kinematics import node_statuses
from humanoid_control.retargeting.scaling import POINTS
from humanoid_control.robots.robot import Robot
from humanoid_control.terminal import ReportTable

STOP_COMPLIANCE = np.radians(1.0)  # [rad]
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Signal:
    """Recorded joint vectors.

    Attributes:
        time: (T,) [s].
        position: (T, n) [rad].
        velocity: (T, n) [rad/s].
    """

    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray

    def at(self, times: np.ndarray) -> np.ndarray:
        """Return positions (K, n) interpolated at other times."""
        columns = [np.interp(times, self.time, self.position[:, k]) for k in range(self.position.shape[1])]
        return np.stack(columns, axis=1)


def link_error_statistics(robot: Robot, signal: Signal, target_time: np.ndarray, targets: np.ndarray) -> dict[str, Any]:
    """Return the distance of each link's end to its target [m] at the target's publication time.

    Args:
        targets: (K, 7, 3) [m].

    Returns:
        Link -> mean, std, max [m]; "mean" over all seven points.
    """
    inside = (target_time >= signal.time[0]) & (target_time <= signal.time[-1])
    joints = signal.at(target_time[inside])
    reached = np.array([robot.point_positions(robot.q(j), POINTS) for j in joints])
    errors = np.linalg.norm(reached - targets[inside], axis=2)
    rows = {name: errors[:, ends] for name, ends in LINK_ENDS.items()} | {"mean": errors}
    return {k: {"mean": float(e.mean()), "std": float(e.std()), "max": float(e.max())} for k, e in rows.items()}


def limits_kept(robot: Robot, commands: Signal, measured: bool = False) -> dict[str, Any]:
    """Check all commands against joint ranges and speeds, also between commands by finite differences.

    Args:
        measured: positions are measured: speeds between commands are not checked, and joints may exceed a range by 1
            degree.
    """
    p, v = commands.position, commands.velocity
    outside = np.maximum(robot.lower - p, p - robot.upper).max(initial=-np.inf)
    dt = np.diff(commands.time)
    moved = np.zeros((0, robot.n)) if measured else np.abs(np.diff(p, axis=0)) / np.maximum(dt, 1e-9)[:, None]
    speed = max(float((np.abs(v) / robot.velocity).max(initial=0)), float((moved / robot.velocity).max(initial=0)))
    bad = int(np.sum(~np.isfinite(p)) + np.sum(~np.isfinite(v)))
    return {
        "commands": len(p),
        "position_beyond_limit_rad": max(0.0, float(outside)),
        "speed_share_of_limit": speed,
        "not_a_number": bad,
        "kept": bool(bad == 0 and outside <= (STOP_COMPLIANCE if measured else TOLERANCE) and speed <= 1 + 1e-3),
        "at_speed_limit_percent": 100 * float((np.abs(v) > 0.999 * robot.velocity).any(axis=1).mean()),
    }


def self_collisions(robot: Robot, signal: Signal, step: float = 0.02) -> dict[str, Any]:
    """Return self-penetration of a recorded motion, sampled every `step` seconds."""
    times = np.arange(signal.time[0], signal.time[-1], step)
    distance = robot.self_distance()
    data = robot.model.createData()
    closest, pair, frames = np.inf, ("", ""), 0
    for joints in signal.at(times):
        pin.forwardKinematics(robot.model, data, robot.q(joints))
        near = distance.near(data, 0.05)
        if not len(near):
            continue
        k = int(np.argmin(near.distance))
        frames += near.distance[k] < 0
        if near.distance[k] < closest:
            closest, pair = float(near.distance[k]), distance.name(int(near.pair[k]))
    return {
        "frames": len(times),
        "frames_in_collision": int(frames),
        "closest_m": closest if np.isfinite(closest) else None,
        "closest_pair": list(pair),
    }


def smoothness(commands: Signal) -> dict[str, float]:
    """Return the 99th percentile of commanded joint speed and acceleration, on a 10 ms grid."""
    t = np.arange(commands.time[0], commands.time[-1], 0.01)
    if len(t) < 4:
        return {"speed_p99_rad_s": 0.0, "acceleration_p99_rad_s2": 0.0}
    q = commands.at(t)
    v = np.diff(q, axis=0) / 0.01
    a = np.diff(v, axis=0) / 0.01
    return {
        "speed_p99_rad_s": float(np.percentile(np.abs(v), 99)),
        "acceleration_p99_rad_s2": float(np.percentile(np.abs(a), 99)),
    }


# -------- JointState messages as arrays

MEASURED = "joint_states"


class JointRows:
    """Messages of a joint topic in robot order; messages may hold velocities only, or some joints.

    Attributes:
        stamps: [ns] since 1970.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.stamps: list[int] = []
        self._values: list[np.ndarray] = []  # (2, n) positions and velocities, NaN if not given
        self._given: list[np.ndarray] = []  # (2, n)

    def __len__(self) -> int:
        return len(self.stamps)

    def add(self, message: Any) -> None:
        """Add a sensor_msgs/JointState."""
        n = self.robot.n
        theirs, ours = self.robot.order_of(message.name)
        values, given = np.full((2, n), np.nan), np.zeros((2, n), dtype=bool)
        for k, field in enumerate((message.position, message.velocity)):
            if len(field) == len(message.name):
                values[k, ours], given[k, ours] = np.asarray(field)[theirs], True
        self.stamps.append(nanoseconds(message.header.stamp))
        self._values.append(values)
        self._given.append(given)

    @property
    def complete(self) -> bool:
        """Whether every message has all joint positions."""
        return all(bool(g[0].all()) for g in self._given)

    def signal(self, first: int, measured: Signal | None = None) -> Signal:
        """Return the messages as arrays, with times since `first` [ns].

        Missing positions are those measured at that time, or NaN; missing velocities are differences.
        """
        time = 1e-9 * (np.array(self.stamps, dtype=np.int64) - first)
        (p, v), (by_p, by_v) = np.array(self._values).transpose(1, 0, 2), np.array(self._given).transpose(1, 0, 2)
        if measured is not None and not by_p.all():
            p = np.where(by_p, p, measured.at(time))
        if not by_v.all():
            dt = np.maximum(np.diff(time), 1e-9)[:, None]
            moved = np.diff(p, axis=0) / dt
            v = np.where(by_v, v, np.vstack([moved[:1], moved]))
        return Signal(time, p, v)


def commands_of(commands: JointRows, states: JointRows, first: int, path: object) -> Signal:
    """Return the commanded motion; missing postures, as under feedback, are measured ones.

    Raises:
        ConfigError: if they were not recorded.
    """
    if commands.complete:
        return commands.signal(first)
    if len(states) < 2:
        raise ConfigError(f"{path}: its joint_commands lack positions of some joints, and it contains no joint_states")
    return commands.signal(first, states.signal(first))


def postures_from(commands: JointRows) -> str:
    """Return the topic of the postures of a run."""
    return "joint_commands" if commands.complete else MEASURED


def postures_note(report: dict[str, Any]) -> list[str]:
    """Return a sentence if the postures of a report are not the commanded ones."""
    if report["postures_from"] != MEASURED:
        return []
    return [
        "the commands are velocities, or of some joints: postures are those of joint_states, and joints may press "
        "into their stops by 1 deg"
    ]


def nanoseconds(stamp: Any) -> int:
    """Return a builtin_interfaces/Time in nanoseconds."""
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


# -------- The report

TOPICS = {"/joint_states", "/joint_commands", "/targets", "/diagnostics"}


@dataclass(frozen=True)
class RecordedRun:
    """Content of a recording; times count from the first targets.

    Attributes:
        postures_from: topic of the postures: commands, or states if commands are velocities only.
        targets: (K, 7, 3) tracked points [m].
    """

    states: Signal
    commands: Signal
    postures_from: str
    times: np.ndarray
    targets: np.ndarray
    nodes: dict[str, dict[str, str]]
    rates: dict[str, float]
    duration: float


def read_run(path: Path, robot: Robot) -> RecordedRun:
    """Read signals, targets and last diagnostics of a bag.

    Raises:
        ConfigError: if the bag lacks joint states, commands or targets.
    """
    bag = BagReader(path)
    rows = {topic: JointRows(robot) for topic in ("/joint_states", "/joint_commands")}
    target_rows: list[tuple[int, np.ndarray]] = []
    nodes: dict[str, dict[str, str]] = {}
    for topic, _, m in bag.messages(TOPICS):
        if topic in rows:
            rows[topic].add(m)
        elif topic == "/targets":
            at = {k.ns: (k.pose.position.x, k.pose.position.y, k.pose.position.z) for k in m.markers}
            if all(name in at for name in POINTS):
                target_rows.append((nanoseconds(m.markers[0].header.stamp), np.array([at[n] for n in POINTS])))
        else:
            nodes |= {name: {"message": s.message, **s.values} for name, s in node_statuses(m).items()}
    rates = bag.rates()
    duration = bag.duration
    bag.close()
    states, commands = rows["/joint_states"], rows["/joint_commands"]
    for what, count in {"joint states": len(states), "commands": len(commands), "targets": len(target_rows)}.items():
        if count < 2:
            raise ConfigError(f"{path} contains no {what}: did the nodes discover each other? try `humanoid doctor`")
    # Float stamps since 1970 resolve only a quarter of a microsecond: count from the first one.
    first = target_rows[0][0]
    return RecordedRun(
        states=states.signal(first),
        commands=commands_of(commands, states, first, path),
        postures_from=postures_from(commands),
        times=1e-9 * (np.array([stamp for stamp, _ in target_rows]) - first),
        targets=np.array([points for _, points in target_rows]),
        nodes=nodes,
        rates=rates,
        duration=duration,
    )


def run_report(path: Path, robot: Robot, skip: float = 0.0) -> dict[str, Any]:
    """Return the evaluation of a run as plain values.

    Args:
        skip: initial time excluded from errors (lead-in) [s].

    Raises:
        ConfigError: as `read_run`, or if no target lies within the recorded postures.
    """
    run = read_run(path, robot)
    late = run.times > run.times[0] + skip
    times, targets = run.times[late], run.targets[late]
    for what, postures in (("joint states", run.states), ("commands", run.commands)):
        if not ((times >= postures.time[0]) & (times <= postures.time[-1])).any():
            raise ConfigError(
                f"{path}: none of its targets falls within the time of its {what}: record longer, or on a less busy "
                "machine"
            )
    return {
        "robot": robot.name,
        "bag": str(path),
        "duration_s": run.duration,
        "postures_from": run.postures_from,
        "error_of_robot": link_error_statistics(robot, run.states, times, targets),
        "error_of_command": link_error_statistics(robot, run.commands, times, targets),
        "limits": limits_kept(robot, run.commands, run.postures_from == MEASURED),
        "self_collision": self_collisions(robot, run.states),
        "smoothness": smoothness(run.commands),
        "topics_hz": run.rates,
        "nodes": run.nodes,
    }


def run_parts(r: dict[str, Any]) -> list[ReportTable | str]:
    """Return the report as tables and sentences."""
    rows = []
    for link, e in r["error_of_robot"].items():
        c = r["error_of_command"][link]
        rows.append([link, *(round(100 * e[k], 1) for k in ("mean", "std", "max")), round(100 * c["mean"], 1)])
    title = "error of each link [cm]: simulated robot, and the command alone"
    parts: list[ReportTable | str] = [
        ReportTable(title, ["link", "mean", "std", "max", "command mean"], rows),
        *postures_note(r),
    ]
    limits, hits = r["limits"], r["self_collision"]
    kept = "kept" if limits["kept"] else "BROKEN"
    parts.append(
        f"limits: {kept} in {limits['commands']} commands (speed up to {100 * limits['speed_share_of_limit']:.0f} % "
        f"of its limit, a joint at its speed limit {limits['at_speed_limit_percent']:.0f} % of the time)"
    )
    closest = (
        "far"
        if hits["closest_m"] is None
        else f"{1000 * hits['closest_m']:.0f} mm, {' and '.join(hits['closest_pair'])}"
    )
    parts.append(f"self-collision: {hits['frames_in_collision']} of {hits['frames']} postures (closest: {closest})")
    columns = ["node", "rate Hz", "tick p50 ms", "tick p99 ms", "missed %", "state"]
    keys = ("rate_hz", "execution_p50_ms", "execution_p99_ms")
    rows = []
    for name, v in sorted(r["nodes"].items()):
        ticks, missed = float(v.get("ticks", 0)), float(v.get("missed_ticks", 0))
        share = 100 * missed / (ticks + missed) if ticks else 0.0
        rows.append([name, *(float(v.get(k, "nan")) for k in keys), round(share, 2), v.get("message", "")])
    return [*parts, ReportTable("nodes", columns, rows)]
