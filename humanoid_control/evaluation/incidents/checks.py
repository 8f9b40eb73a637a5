"""Checks of a recorded run: ticks, limits, contact, estimates, commands, power, node reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from humanoid_control.evaluation.incidents.streams import CONTACTS, JointStream, RobotStreams, RunStreams
from humanoid_control.evaluation.incidents.timeline import (
    COMMAND,
    CONTACT,
    ESTIMATE,
    KINDS,
    LATE,
    LIMIT,
    POWER,
    REPORTED,
    Timeline,
    Violation,
    spans,
    without_numbers,
)

if TYPE_CHECKING:
    from humanoid_control.robots import Robot

COMMANDS, MEASURED, ESTIMATED = "joint_commands", "joint_states", "estimated_joint_states"
FALLEN = "FALLEN"
POWERED = ("HOLD", "BLEND", "RUN")
LOST = ("STOPPING", "FAULT", "ESTOP", "OFFLINE", "MONITOR")


@dataclass(frozen=True)
class RecordedBounds:
    """Thresholds of violations.

    Attributes:
        gap: time between messages of a stream, or `gap_periods` if longer [s].
        silence: time from the end of a stream to the end of the robot's other streams [s].
        position: command beyond a range [rad].
        stop: measured position beyond a range [rad].
        speed: commanded speed over its limit.
        measured_speed: measured (noisy) speed over its limit.
        following: command minus measurement for `lasting` [rad].
        estimate: estimate minus measurement for `lasting` [rad].
        lasting: minimum duration [s].
        tilt: error of the estimated base inclination [rad].
        fall: base inclination of a fall [rad].
        flight: time without foot contact when standing or walking [s].
        supply: supply voltage over its initial value.
        start: warnings open at the first command that end within this time belong to the start [s].
    """

    gap: float = 0.1
    gap_periods: float = 10.0
    silence: float = 1.0
    position: float = 1e-6
    stop: float = float(np.radians(1.0))
    speed: float = 1.001
    measured_speed: float = 1.25
    following: float = 0.25
    estimate: float = 0.15
    lasting: float = 0.05
    tilt: float = float(np.radians(5.0))
    fall: float = float(np.radians(45.0))
    flight: float = 0.1
    supply: float = 0.85
    start: float = 3.0


Found = Iterator[Violation]


class _RecordedRun:
    """Robot of a recording under check."""

    def __init__(self, streams: RobotStreams, space: str, bounds: RecordedBounds, robot: Robot | None) -> None:
        self.streams, self.space, self.bounds, self.robot = streams, space, bounds, robot
        commands = streams.joints.get(COMMANDS)
        self.begin = float(commands.received[0]) if commands is not None else 0.0

    def name(self, topic: str) -> str:
        return f"{self.space}/{topic}"


def find_violations(run: RunStreams, robot: Robot | None = None, bounds: RecordedBounds | None = None) -> Timeline:
    """Check all recorded quantities (`streams.read_streams`) and return the time line of violations.

    Args:
        robot: for the limits; None: limits are not checked.
    """
    bounds, found, checked = bounds or RecordedBounds(), [], []
    runs = [_RecordedRun(streams, space, bounds, robot) for space, streams in run.robots.items()]
    begin = min((r.begin for r in runs), default=0.0)
    for one in runs:
        for name, topics, check in CHECKS:
            if all(t in one.streams.joints or t in one.streams.poses or t in one.streams.values for t in topics):
                if check is _limits and robot is None:
                    continue
                checked.append(f"{name}{' of ' + one.space if one.space else ''}")
                found += list(check(one))
    if run.statuses:
        checked.append("reports of nodes")
        found += list(_reports(run.statuses, begin, bounds, run.duration))
    missing = [f"{name} (no {' and '.join(topics)})" for name, topics, check in CHECKS if name not in checked]
    if robot is None:
        missing = [m for m in missing if not m.startswith("limits")] + ["limits (the robot is not known: --robot)"]
    ordered = sorted(found, key=lambda v: (v.begin, KINDS.index(v.kind), v.source))
    return Timeline(
        str(run.path), robot.name if robot else "", run.duration, begin, tuple(ordered), tuple(checked), tuple(missing)
    )


# -------- Streams of joints


def _paused(run: _RecordedRun) -> list[tuple[float, float]]:
    rows, out, since = run.streams.values.get("simulator/paused", []), [], None
    for t, paused in rows:
        if paused and since is None:
            since = t
        elif not paused and since is not None:
            out.append((since, t))
            since = None
    return out if since is None else [*out, (since, np.inf)]


def _late(run: _RecordedRun, topic: str) -> Found:
    stream, b = run.streams.joints[topic], run.bounds
    paused = _paused(run)

    def at_rest(a: float, z: float) -> bool:
        return any(z >= begin and a <= end for begin, end in paused)

    # Use both clocks: arrival alone may show a busy recorder, stamps alone a clock that was set.
    steps = np.minimum(np.diff(stream.stamps), np.diff(stream.received))
    if len(steps) > 3 and (period := float(np.median(steps))) > 0:
        bound = max(b.gap, b.gap_periods * period)
        for k in np.flatnonzero(steps > bound):
            begin, end = float(stream.received[k]) + period, float(stream.received[k + 1])
            if not at_rest(begin, end):
                text = f"no message for {steps[k]:.3f} s, {steps[k] / period:.0f} periods"
                yield Violation(begin, end, LATE, run.name(topic), text, float(steps[k]), bound, "s")
    last = max(float(s.received[-1]) for s in run.streams.joints.values())
    end = float(stream.received[-1])
    if last - end > b.silence and not at_rest(end, last):
        text = f"stopped {last - end:.1f} s before the end of the other streams"
        yield Violation(end, last, LATE, run.name(topic), text, last - end, b.silence, "s")


def _late_commands(run: _RecordedRun) -> Found:
    yield from _late(run, COMMANDS)


def _late_states(run: _RecordedRun) -> Found:
    yield from _late(run, MEASURED)


def _late_estimates(run: _RecordedRun) -> Found:
    yield from _late(run, ESTIMATED)


def _worst(
    run: _RecordedRun,
    topic: str,
    kind: str,
    excess: np.ndarray,
    words: Callable[[int, int], tuple[str, float, float, str]],
) -> Found:
    """Yield the intervals with positive excess (T, n), per joint, with the worst sample described by `words`."""
    stream = run.streams.joints[topic]
    for j in range(excess.shape[1]):
        column = np.nan_to_num(excess[:, j], nan=-np.inf)
        for a, z in spans(stream.received, column > 0):
            k = a + int(np.argmax(column[a : z + 1]))
            text, worst, bound, unit = words(k, j)
            begin, end = float(stream.received[a]), float(stream.received[z])
            yield Violation(begin, end, kind, run.name(topic), text, worst, bound, unit)


def _not_numbers(run: _RecordedRun, topic: str, kind: str) -> Found:
    stream = run.streams.joints[topic]
    bad = stream.given & ~np.isfinite(stream.position)

    def words(k: int, j: int) -> tuple[str, float, float, str]:
        return f"{stream.names[j]}: the position is not a number", float("nan"), float("nan"), ""

    yield from _worst(run, topic, kind, np.where(bad, 1.0, -1.0), words)


def _commands(run: _RecordedRun) -> Found:
    yield from _not_numbers(run, COMMANDS, COMMAND)


def _limits(run: _RecordedRun) -> Found:
    for topic in (COMMANDS, "applied_commands", MEASURED):
        if topic in run.streams.joints:
            yield from _limits_of(run, topic, topic == MEASURED)


def _limits_of(run: _RecordedRun, topic: str, measured: bool) -> Found:
    robot, b, stream = run.robot, run.bounds, run.streams.joints[topic]
    assert robot is not None
    known = [n for n in stream.names if n in robot.index]
    ours, theirs = [robot.index[n] for n in known], stream.columns(known)
    q, v = stream.position[:, theirs], stream.velocity[:, theirs]
    low, high, most = robot.lower[ours], robot.upper[ours], robot.velocity[ours]
    slack, share = (b.stop, b.measured_speed) if measured else (b.position, b.speed)

    def beyond(k: int, j: int) -> tuple[str, float, float, str]:
        bound = float(high[j] if q[k, j] > high[j] else low[j])
        return f"{known[j]}: position {q[k, j]:.4f} rad, limit {bound:.4f} rad", float(q[k, j]), bound, "rad"

    yield from _worst(run, topic, LIMIT, np.maximum(low - q, q - high) - slack, beyond)
    with np.errstate(invalid="ignore"):
        speed = np.abs(v)
        if not measured and len(q) > 1:  # also between commands, whatever their velocity
            steps = np.maximum(np.diff(stream.stamps), 1e-4)[:, None]
            moved = np.abs(np.diff(q, axis=0)) / steps
            speed = np.fmax(speed, np.vstack([np.zeros((1, len(known))), moved]))

    def fast(k: int, j: int) -> tuple[str, float, float, str]:
        text = f"{known[j]}: speed {speed[k, j]:.2f} rad/s, limit {most[j]:.2f} rad/s"
        return text, float(speed[k, j]), float(most[j]), "rad/s"

    yield from _worst(run, topic, LIMIT, speed - share * most, fast)


def _apart(run: _RecordedRun, topic: str, kind: str, bound: float, verb: str) -> Found:
    one, other = run.streams.joints[topic], run.streams.joints[MEASURED]
    both = [n for n in one.names if n in other.names]
    mine, theirs = one.position[:, one.columns(both)], other.position[:, other.columns(both)]
    if len(other.received) < 2:
        return
    for j, name in enumerate(both):
        good = np.isfinite(theirs[:, j])
        if not good.any():
            continue
        error = np.abs(mine[:, j] - np.interp(one.received, other.received[good], theirs[good, j]))
        bad = np.nan_to_num(error, nan=0.0) > bound
        for a, z in spans(one.received, bad, run.bounds.lasting):
            k = a + int(np.nanargmax(error[a : z + 1]))
            text = f"{name}: {error[k]:.3f} rad from its measurement, {verb}, bound {bound:g} rad"
            begin, end = float(one.received[a]), float(one.received[z])
            yield Violation(begin, end, kind, run.name(topic), text, float(error[k]), bound, "rad")


def _following(run: _RecordedRun) -> Found:
    topic = "applied_commands" if "applied_commands" in run.streams.joints else COMMANDS
    yield from _apart(run, topic, COMMAND, run.bounds.following, "not followed")


def _estimates(run: _RecordedRun) -> Found:
    yield from _not_numbers(run, ESTIMATED, ESTIMATE)
    yield from _apart(run, ESTIMATED, ESTIMATE, run.bounds.estimate, "estimated")


# -------- The base, contact, power


def _up_axis(rows: np.ndarray) -> np.ndarray:
    """Return the world vertical (T, 3) in base axes: third row of the rotation."""
    x, y, z, w = rows[:, 3:7].T
    return np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=1)


def _angles(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), (a * b).sum(axis=1))


def _base_estimate(run: _RecordedRun) -> Found:
    (t, rows), (t_true, true) = run.streams.poses["odom"], run.streams.poses["ground_truth/odometry"]
    near = np.clip(np.searchsorted(t_true, t), 0, len(t_true) - 1)
    error = _angles(_up_axis(rows), _up_axis(true[near]))
    for a, z in spans(t, error > run.bounds.tilt, run.bounds.lasting):
        worst = float(error[a : z + 1].max())
        text = f"estimated inclination of the base is off by {np.degrees(worst):.1f} deg"
        yield Violation(float(t[a]), float(t[z]), ESTIMATE, run.name("odom"), text, worst, run.bounds.tilt, "rad")


def _falls(run: _RecordedRun, topic: str) -> Found:
    t, rows = run.streams.poses[topic]
    upright = _up_axis(rows[:1]).repeat(len(rows), axis=0)
    tilt = _angles(_up_axis(rows), upright)
    for a, z in spans(t, ~(tilt <= run.bounds.fall), join=1.0):
        worst = float(tilt[a : z + 1].max())
        text = f"the base is inclined by {np.degrees(worst):.0f} deg from its start: it fell"
        yield Violation(float(t[a]), float(t[z]), CONTACT, run.name(topic), text, worst, run.bounds.fall, "rad")


def _true_falls(run: _RecordedRun) -> Found:
    yield from _falls(run, "ground_truth/odometry")


def _fallen(run: _RecordedRun, topic: str) -> Found:
    rows = run.streams.values[topic]
    for (t, text), (until, _) in zip(rows, [*rows[1:], (rows[-1][0], "")], strict=True):
        if text.split(":")[0].strip() == FALLEN:
            yield Violation(t, until, CONTACT, run.name(topic), f"the controller reports: {text}")


def _walking(run: _RecordedRun) -> Found:
    yield from _fallen(run, "walking/state")


def _performing(run: _RecordedRun) -> Found:
    yield from _fallen(run, "performing/state")


def _flight(run: _RecordedRun) -> Found:
    feet = [run.streams.values[name] for name in CONTACTS]
    t = np.array([time for time, _ in feet[0]])
    other = np.array([time for time, _ in feet[1]])
    right = np.array([bool(on) for _, on in feet[1]])[np.clip(np.searchsorted(other, t, "right") - 1, 0, None)]
    air = ~np.array([bool(on) for _, on in feet[0]]) & ~right & (t >= run.begin)
    bound = run.bounds.flight
    for a, z in spans(t, air, bound, join=0.02):
        text = f"no foot on the ground for {t[z] - t[a]:.2f} s"
        yield Violation(float(t[a]), float(t[z]), CONTACT, run.name("contact"), text, float(t[z] - t[a]), bound, "s")


def _power(run: _RecordedRun) -> Found:
    rows, before = run.streams.values["hardware_state"], ""
    for k, (t, text) in enumerate(rows):
        state = text.split(":")[0].strip()
        if state in LOST and before in POWERED and (state in ("FAULT", "ESTOP") or ":" in text):
            until = rows[k + 1][0] if k + 1 < len(rows) else t
            yield Violation(t, until, POWER, run.name("hardware_state"), f"{before} -> {text}")
        before = state


def _supply(run: _RecordedRun) -> Found:
    rows = [(t, v) for t, v in run.streams.values["battery"] if np.isfinite(v)]
    if not rows or rows[0][1] <= 0:
        return
    t, volts = np.array(rows).T
    bound = run.bounds.supply * volts[0]
    for a, z in spans(t, volts < bound, join=2.0):
        worst = float(volts[a : z + 1].min())
        text = f"supply of {worst:.1f} V, {volts[0]:.1f} V at the start"
        yield Violation(float(t[a]), float(t[z]), POWER, run.name("battery"), text, worst, float(bound), "V")


# -------- Node reports


def _reports(statuses: dict[str, list[Any]], begin: float, b: RecordedBounds, duration: float) -> Found:
    for node, rows in statuses.items():
        open_since: dict[str, tuple[float, str, int]] = {}
        for t, status in [*rows, (duration, None)]:
            texts = [] if status is None or not status.level else status.message.split("; ")
            now = {without_numbers(text): text for text in texts}
            for key in [key for key in open_since if key not in now]:
                since, text, level = open_since.pop(key)
                belongs_to_start = since <= begin + 1.0 and t < begin + b.start
                if t > begin and not belongs_to_start:
                    kind = LATE if "ticks were missed" in text else REPORTED
                    word = "error" if level > 1 else "warning"
                    yield Violation(max(since, begin), t, kind, node, f"{word}: {text}")
            for key, text in now.items():
                open_since.setdefault(key, (t, text, status.level))


Check = Callable[[_RecordedRun], Found]
CHECKS: tuple[tuple[str, tuple[str, ...], Check], ...] = (
    ("ticks of commands", (COMMANDS,), _late_commands),
    ("ticks of measurements", (MEASURED,), _late_states),
    ("ticks of estimates", (ESTIMATED,), _late_estimates),
    ("commands", (COMMANDS,), _commands),
    ("limits", (COMMANDS,), _limits),
    ("following", (COMMANDS, MEASURED), _following),
    ("estimates of joints", (ESTIMATED, MEASURED), _estimates),
    ("estimate of the base", ("odom", "ground_truth/odometry"), _base_estimate),
    ("falls", ("ground_truth/odometry",), _true_falls),
    ("state of the walker", ("walking/state",), _walking),
    ("state of the performer", ("performing/state",), _performing),
    ("contact of the feet", CONTACTS, _flight),
    ("power", ("hardware_state",), _power),
    ("supply", ("battery",), _supply),
)
__all__ = ["JointStream", "RecordedBounds", "find_violations"]
