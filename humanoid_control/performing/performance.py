"""Performance of a motion by a simulated robot, evaluated with its true state.

`OpenLoop` replays the motion without balance feedback, as a baseline.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.performing.dynamic_motion import DynamicMotion
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.retargeting.problem import imitation_points
from humanoid_control.retargeting.whole_body.contacts import runs
from humanoid_control.simulation import Engine
from humanoid_control.walking.gait import GRAVITY

TICK = 0.002  # [s] of a performer
FALLEN_TILT, FALLEN_HEIGHT = np.radians(40.0), 0.55  # tilt and share of the height, relative to the reference
# shares of the weight: unloaded swing, landing; [s] after a landing; share of the weight that bears
UNLOADED, LOADED, LANDED, BEARS = 0.05, 0.08, 0.15, 0.2
PLACED, ON_BEAT = 0.03, 0.1  # tolerances of a landing: [m] relative to the other foot, [s] in time
IN_SWING = (0.3, 0.8)  # part of a swing in which the foot must be unloaded
# [1/s] feedback of measurements into position commands. HRP-2 falls at 2 and 10, as stiff positions counteract balance;
# it dances at 40 and above.
LEAK = 80.0
SATURATED = 0.98  # share of a torque limit
EARLY_LANDING = 0.5  # share of a swing after which a load is its landing


class Performer(Protocol):
    """Interface of motion controllers."""

    def start(self, engine: Engine) -> None:
        """Start with the robot in the first posture."""

    def tick(self, t: float, engine: Engine) -> None:
        """Command the drives at a motion time [s]."""

    def numbers(self) -> dict[str, Any]:
        """Return the performer's own measurements as plain values."""


class OpenLoop:
    """Replay by position drives, with feed-forward torques if `forces`."""

    def __init__(self, motion: DynamicMotion, forces: bool = True) -> None:
        self.motion, self.forces = motion, forces

    def start(self, engine: Engine) -> None:
        """Do nothing."""

    def tick(self, t: float, engine: Engine) -> None:
        """See `Performer.tick`."""
        m = self.motion
        at = min(t * m.rate, len(m) - 1.0)
        k = min(int(at), len(m) - 2)
        s = at - k
        joints = (1 - s) * m.q[k, 7:] + s * m.q[k + 1, 7:]
        speed = (m.q[k + 1, 7:] - m.q[k, 7:]) * m.rate
        torque = (1 - s) * m.torque[k] + s * m.torque[k + 1]
        engine.command(joints, speed, torque if self.forces else None)

    def numbers(self) -> dict[str, Any]:
        """See `Performer.numbers`: none."""
        return {}


class Tracker(Performer, Protocol):
    """Performer with joint accelerations, torques and state: `WholeBodyController`."""

    acceleration: np.ndarray
    torque: np.ndarray
    estimate: Any


class PositionDrives:
    """Controller for position drives: integrated accelerations that leak towards measurements.

    The leak prevents wind-up at joints blocked by the ground. Torques are fed forward.
    """

    def __init__(self, tracker: Tracker, leak: float = LEAK) -> None:
        """Wrap a controller.

        Args:
            leak: [1/s].
        """
        self.tracker, self.leak = tracker, leak
        self.q, self.v = np.zeros(0), np.zeros(0)

    def start(self, engine: Engine) -> None:
        """See `Performer.start`."""
        self.tracker.start(engine)
        self.q, self.v = engine.q[-engine.robot.n :].copy(), np.zeros(engine.robot.n)

    def tick(self, t: float, engine: Engine) -> None:
        """See `Performer.tick`."""
        self.tracker.tick(t, engine)
        if self.tracker.estimate is None:
            return
        robot, state = engine.robot, self.tracker.estimate
        self.v += TICK * (self.tracker.acceleration + self.leak * (state.v[robot.iv :] - self.v))
        self.v = np.clip(self.v, -robot.velocity, robot.velocity)
        self.q += TICK * (self.v + self.leak * (state.q[robot.iq :] - self.q))
        self.q = np.clip(self.q, robot.lower, robot.upper)
        engine.command(self.q, self.v, self.tracker.torque)

    def numbers(self) -> dict[str, Any]:
        """See `Performer.numbers`."""
        return self.tracker.numbers()


@dataclass
class Performance:
    """Outcome of one performance.

    Attributes:
        fell: [s]; infinite: no fall.
        why: first sign of a fall.
        seconds: duration of the motion [s].
        steps: number of steps planned until the fall.
        made: number of steps with lift-off and landing.
        placed: number of steps placed within 3 cm, relative to the other foot.
        on_beat: number of steps that land within 0.1 s.
        slip: longest slip of a flat, loaded sole [m].
        tilt: largest root error [rad].
        tracking: mean distance of seven points, in root axes and world [m].
        saturated: share of ticks at a torque limit.
        real_time: simulated time per processor time.
    """

    fell: float
    why: str
    seconds: float
    steps: int
    made: int
    placed: int
    on_beat: int
    slip: float
    tilt: float
    tracking: tuple[float, float]
    saturated: float
    real_time: float
    traces: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def survived(self) -> bool:
        """True without a fall."""
        return not np.isfinite(self.fell)

    def row(self) -> dict[str, Any]:
        """Return plain values for tables and JSON."""
        return {
            "survived": self.survived,
            "fell_s": None if self.survived else round(self.fell, 2),
            "why": self.why,
            "seconds": round(self.seconds, 2),
            "steps": self.steps,
            "made": self.made,
            "placed": self.placed,
            "on_beat": self.on_beat,
            "slip_mm": round(1000 * self.slip, 1),
            "tilt_deg": round(float(np.degrees(self.tilt)), 2),
            "tracking_root_cm": round(100 * self.tracking[0], 2),
            "tracking_world_cm": round(100 * self.tracking[1], 2),
            "saturated_percent": round(100 * self.saturated, 2),
            "real_time": round(self.real_time, 2),
        }


def perform(
    motion: DynamicMotion, engine: Engine, performer: Performer, watch: Callable[[float, Engine], None] | None = None
) -> Performance:
    """Run a performance to the end or a fall.

    Args:
        engine: with a floating base.
        performer: called every 2 ms.
        watch: called before every tick with its time [s].

    Raises:
        ConfigError: if the robot differs, or its base is fixed.
    """
    robot = engine.robot
    if robot.base != "floating" or tuple(robot.joint_names) != motion.joint_names:
        raise ConfigError(f"the motion of {motion.robot} cannot be performed by {robot.name} with a {robot.base} base")
    steps = max(1, round(TICK / engine.settings.step))
    begin, record = time.process_time(), _Record(motion, engine)
    engine.reset(motion.q[0, 7:])
    engine.set_state(motion.q[0, 7:], np.zeros(robot.n), pin.XYZQUATToSE3(motion.q[0, :7]), np.zeros(6))
    performer.start(engine)
    ticks, fell, why = round((len(motion) - 1) / motion.rate / TICK), np.inf, ""
    for k in range(ticks):
        if watch is not None:
            watch(k * TICK, engine)
        performer.tick(k * TICK, engine)
        engine.step(steps)
        why = record.take((k + 1) * TICK)
        if why:
            fell = (k + 1) * TICK
            break
    spent = max(time.process_time() - begin, 1e-9)
    return record.outcome(fell, why, record.count * TICK / spent)


class _Record:
    """Recording of every tick."""

    def __init__(self, motion: DynamicMotion, engine: Engine) -> None:
        self.motion, self.engine, self.robot = motion, engine, engine.robot
        self.soles = RigidSoles.of(engine.robot)
        self.points = imitation_points(engine.robot, 0.0)
        n = round((len(motion) - 1) / motion.rate / TICK)
        self.count, self.weight = 0, engine.robot.mass * GRAVITY
        self.load, self.place = np.zeros((n, 2)), np.zeros((n, 2, 3))
        self.yaw, self.tilt, self.off = np.zeros((n, 2)), np.zeros(n), np.zeros((n, 2))
        self.full = np.zeros(n, dtype=bool)
        limits = np.where(engine.robot.effort_known, engine.robot.effort, np.inf)
        self.limits = np.where(limits > 0, limits, np.inf)
        sides = [_side(engine.robot, foot.link, self.soles) for foot in engine.robot.feet]
        self.side = {foot.name: side for foot, side in zip(engine.robot.feet, sides, strict=True)}
        self.data = engine.robot.model.createData()

    def take(self, t: float) -> str:
        """Record a tick at `t` [s]; return the reason of a fall, or ''."""
        e, m, k = self.engine, self.motion, self.count
        frame = min(round(t * m.rate), len(m) - 1)
        if e.diverged:
            return e.failure
        pin.forwardKinematics(self.robot.model, self.data, e.q)
        ref = pin.XYZQUATToSE3(m.q[frame, :7])
        X = self.data.oMi[1].copy()
        self.tilt[k] = np.arccos(np.clip(X.rotation[:, 2] @ ref.rotation[:, 2], -1.0, 1.0))
        for f in (0, 1):
            S = self.data.oMi[self.soles.joints[f]] * self.soles.X_joint_sole[f]
            self.place[k, f], self.yaw[k, f] = S.translation, np.arctan2(S.rotation[1, 0], S.rotation[0, 0])
        for name, wrench in e.foot_wrenches().items():
            self.load[k, self.side[name]] += wrench[2] / self.weight
        self.full[k] = bool((np.abs(e.torque) > SATURATED * self.limits).any())
        if k % 5 == 0:
            ours = np.array([self.data.oMi[x.joint].act(x.point) for x in self.points])
            pin.forwardKinematics(self.robot.model, self.data, m.q[frame])
            theirs = np.array([self.data.oMi[x.joint].act(x.point) for x in self.points])
            own = (ours - X.translation) @ X.rotation - (theirs - ref.translation) @ ref.rotation
            self.off[k] = np.linalg.norm(own, axis=1).mean(), np.linalg.norm(ours - theirs, axis=1).mean()
        self.count += 1
        if self.tilt[k] > FALLEN_TILT:
            return f"the root leans by {np.degrees(self.tilt[k]):.0f} degrees"
        if e.q[2] < FALLEN_HEIGHT * m.q[frame, 2]:
            return f"the root is at {100 * e.q[2] / m.q[frame, 2]:.0f} % of its height"
        return ""

    def outcome(self, fell: float, why: str, real_time: float) -> Performance:
        """Evaluate the recording."""
        m, n = self.motion, self.count
        made = placed = beat = total = 0
        for f in (0, 1):
            for a, b in runs(~m.stands[:, f]):
                if (b / m.rate) > n * TICK or b >= len(m):
                    continue
                total += 1
                found = self._step(f, a / m.rate, b / m.rate)
                made, placed, beat = made + found[0], placed + found[1], beat + found[2]
        off = self.off[: max(n, 1) : 5]
        return Performance(
            fell,
            why,
            (len(m) - 1) / m.rate,
            total,
            made,
            placed,
            beat,
            self._slip(),
            float(self.tilt[:n].max(initial=0.0)),
            (float(off[:, 0].mean()), float(off[:, 1].mean())),
            float(self.full[:n].mean()) if n else 0.0,
            real_time,
            {"load": self.load[:n], "place": self.place[:n], "tilt": self.tilt[:n]},
        )

    def _step(self, f: int, begin: float, end: float) -> tuple[int, int, int]:
        """Return made, placed, on the beat (0 or 1 each)."""
        m, n, span = self.motion, self.count, end - begin
        low, high = (int((begin + share * span) / TICK) for share in IN_SWING)
        free = float(np.median(self.load[low:high, f])) < UNLOADED
        first = int((begin + EARLY_LANDING * span) / TICK)
        last = min(n, int((end + 0.5) / TICK))
        landed = np.flatnonzero(self.load[first:last, f] > LOADED)
        if not (free and len(landed)):
            return 0, 0, 0
        at = (first + int(landed[0])) * TICK
        k = min(n - 1, int((at + LANDED) / TICK))
        frame = min(len(m) - 1, round((end + LANDED) * m.rate))
        ours = _relative_to(self.place[k, 1 - f], self.yaw[k, 1 - f], self.place[k, f])
        R = m.sole_rotation[frame, 1 - f]
        theirs = _relative_to(m.sole_position[frame, 1 - f], np.arctan2(R[1, 0], R[0, 0]), m.sole_position[frame, f])
        return 1, int(np.linalg.norm(ours - theirs) < PLACED), int(abs(at - end) < ON_BEAT)

    def _slip(self) -> float:
        m, n, most = self.motion, self.count, 0.0
        frames = np.minimum(np.round((np.arange(n) + 1) * TICK * m.rate).astype(int), len(m) - 1)
        for f in (0, 1):
            flat = (m.stands & ~m.toe_only)[frames, f] & (self.load[:n, f] > BEARS)
            for a, b in runs(flat):
                way = np.linalg.norm(self.place[a:b, f, :2] - self.place[a, f, :2], axis=1)
                most = max(most, float(way.max()))
        return most


def _relative_to(place: np.ndarray, yaw: float, point: np.ndarray) -> np.ndarray:
    """Return a floor point (2,) in the axes of a sole."""
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([[c, s], [-s, c]]) @ (point[:2] - place[:2])


def _side(robot: Any, link: str, soles: RigidSoles) -> int:
    """Return the foot of a link: 0 left, 1 right."""
    joint = int(robot.model.frames[robot.model.getFrameId(link, pin.FrameType.BODY)].parentJoint)
    while joint not in soles.joints and joint > 0:
        joint = int(robot.model.parents[joint])
    return soles.joints.index(joint)
