"""A recorded run as arrays, and the report made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.cli.bag import BagReader
from humanoid_control.cli.bag_joints import MEASURED, JointRows, commands_of, nanoseconds, postures_from, tell_postures
from humanoid_control.cli.output import console, table
from humanoid_control.errors import ConfigError
from humanoid_control.imitation import POINTS
from humanoid_control.imitation.run_report import limits_kept, link_errors, self_collisions, smoothness
from humanoid_control.robots import Robot

TOO_FAST = 30.0  # [%]
TOPICS = {"/joint_states", "/joint_commands", "/targets", "/diagnostics"}


def read_run(path: Path, robot: Robot) -> dict[str, Any]:
    """Signals, targets and last diagnostics of a bag.

    Raises:
        ConfigError: the bag holds no commands or no targets.
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
            for s in m.status:
                nodes[s.name.strip("/")] = {"message": s.message, **{kv.key: kv.value for kv in s.values}}
    rates = bag.rates()
    duration = bag.duration
    bag.close()
    states, commands = rows["/joint_states"], rows["/joint_commands"]
    for what, count in {"joint states": len(states), "commands": len(commands), "targets": len(target_rows)}.items():
        if count < 2:
            raise ConfigError(f"{path} holds no {what}: did the nodes find each other? try `humanoid doctor`")
    # Stamps since 1970 as floats are only good to a quarter of a microsecond: count from the first one.
    first = target_rows[0][0]
    signals = {
        "/joint_states": states.signal(first),
        "/joint_commands": commands_of(commands, states, first, path),
    }
    times = 1e-9 * (np.array([stamp for stamp, _ in target_rows]) - first)
    targets = np.array([points for _, points in target_rows])
    return {
        "signals": signals,
        "postures_from": postures_from(commands),
        "times": times,
        "targets": targets,
        "nodes": nodes,
        "rates": rates,
        "duration": duration,
    }


def run_report(path: Path, robot: Robot, skip: float = 0.0) -> dict[str, Any]:
    """Everything worth knowing about a run, as plain numbers.

    Args:
        path: of the bag.
        robot: with a fixed base.
        skip: the first seconds of the targets that errors leave out (the lead-in).
    """
    run = read_run(path, robot)
    commands, states = run["signals"]["/joint_commands"], run["signals"]["/joint_states"]
    late = run["times"] > run["times"][0] + skip
    times, targets = run["times"][late], run["targets"][late]
    return {
        "robot": robot.name,
        "bag": str(path),
        "duration_s": run["duration"],
        "postures_from": run["postures_from"],
        "error_of_robot": link_errors(robot, states, times, targets),
        "error_of_command": link_errors(robot, commands, times, targets),
        "limits": limits_kept(robot, commands, run["postures_from"] == MEASURED),
        "self_collision": self_collisions(robot, states),
        "smoothness": smoothness(commands),
        "topics_hz": run["rates"],
        "nodes": run["nodes"],
    }


def print_report(r: dict[str, Any]) -> None:
    """The report as tables."""
    rows = []
    for link, e in r["error_of_robot"].items():
        c = r["error_of_command"][link]
        rows.append([link, *(round(100 * e[k], 1) for k in ("mean", "std", "max")), round(100 * c["mean"], 1)])
    table(
        "error of each link [cm]: simulated robot, and the command alone",
        ["link", "mean", "std", "max", "command mean"],
        rows,
    )
    tell_postures(r)
    limits, hits = r["limits"], r["self_collision"]
    kept = "kept" if limits["kept"] else "BROKEN"
    console.print(
        f"limits: {kept} in {limits['commands']} commands (speed up to {100 * limits['speed_share_of_limit']:.0f} % "
        f"of its limit, a joint at its speed limit {limits['at_speed_limit_percent']:.0f} % of the time)"
    )
    if limits["at_speed_limit_percent"] > TOO_FAST:
        console.print(
            "the clip is fast for this robot's joints: a lower speed of the clip (--speed 0.5) brings it nearer"
        )
    closest = (
        "far"
        if hits["closest_m"] is None
        else f"{1000 * hits['closest_m']:.0f} mm, {' and '.join(hits['closest_pair'])}"
    )
    console.print(f"self-collision: {hits['frames_in_collision']} of {hits['frames']} postures (closest: {closest})")
    columns = ["node", "rate Hz", "tick p50 ms", "tick p99 ms", "missed %", "state"]
    keys = ("rate_hz", "execution_p50_ms", "execution_p99_ms")
    rows = []
    for name, v in sorted(r["nodes"].items()):
        ticks, missed = float(v.get("ticks", 0)), float(v.get("missed_ticks", 0))
        share = 100 * missed / (ticks + missed) if ticks else 0.0
        rows.append([name, *(float(v.get(k, "nan")) for k in keys), round(share, 2), v.get("message", "")])
    table("nodes", columns, rows)
