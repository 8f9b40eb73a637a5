"""How a run went, from what was recorded: error of each link, limits kept, self-collisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.imitation.scaling import POINTS
from humanoid_control.robots import Robot

LINKS = {
    "sternum": ("spine", 0, 1),
    "gh": ("clavicles", 1, 3),
    "elbow": ("upper arms", 3, 5),
    "wrist": ("lower arms", 5, 7),
}
GIVES_WAY = np.radians(1.0)  # [rad]
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Signal:
    """A recorded stream of joint vectors: times (T,) [s], positions and velocities (T, n) [rad], [rad/s]."""

    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray

    def at(self, times: np.ndarray) -> np.ndarray:
        """Positions (K, n) at other times, interpolated."""
        columns = [np.interp(times, self.time, self.position[:, k]) for k in range(self.position.shape[1])]
        return np.stack(columns, axis=1)


def link_errors(robot: Robot, signal: Signal, target_time: np.ndarray, targets: np.ndarray) -> dict[str, Any]:
    """Distance of each link's end to its target [m], where the joints were when the target was published.

    Args:
        robot: fixed base.
        signal: joint angles.
        target_time: (K,) [s]. targets: (K, 7, 3) [m].

    Returns:
        Link -> mean, std, max [m]; and "mean" over all seven points.
    """
    inside = (target_time >= signal.time[0]) & (target_time <= signal.time[-1])
    joints = signal.at(target_time[inside])
    reached = np.array([robot.point_positions(robot.q(j), POINTS) for j in joints])
    errors = np.linalg.norm(reached - targets[inside], axis=2)
    rows = {name: errors[:, a:b] for name, a, b in LINKS.values()} | {"mean": errors}
    return {k: {"mean": float(e.mean()), "std": float(e.std()), "max": float(e.max())} for k, e in rows.items()}


def limits_kept(robot: Robot, commands: Signal, measured: bool = False) -> dict[str, Any]:
    """Whether every command kept the joint range and the joint speed, also between two commands.

    The speed between commands is the difference of positions over the difference of stamps.

    Args:
        measured: the positions were not commanded but measured, at other times: nothing is said between commands, and
            a joint may press into the stop at the end of its range by 1 degree.
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
        "kept": bool(bad == 0 and outside <= (GIVES_WAY if measured else TOLERANCE) and speed <= 1 + 1e-3),
        "at_speed_limit_percent": 100 * float((np.abs(v) > 0.999 * robot.velocity).any(axis=1).mean()),
    }


def self_collisions(robot: Robot, signal: Signal, step: float = 0.02) -> dict[str, Any]:
    """Self-penetration of a recorded motion, looked at every `step` seconds."""
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
    """How smooth the commanded motion is: 99th percentile of joint speed and acceleration, on a 10 ms grid."""
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
