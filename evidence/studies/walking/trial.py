"""One walk in the simulated world, by sensors with errors, and what can be measured of it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from humanoid_control.robots import Robot
from humanoid_control.simulation.engine import Engine
from humanoid_control.simulation.noisy_sensors import NOISE, NoisySensors
from humanoid_control.simulation.sensors.sensor_model import Imperfection
from humanoid_control.walking.walker import Walker, WalkReport, WalkState

SETTLING = 0.3  # [s] in which a robot sinks into its contacts before the walker looks


@dataclass(frozen=True)
class WrongBody:
    """How a simulated robot differs from the model that its walker has.

    Attributes:
        masses: of all links, as a multiple. shift: (3,) of the centre of mass of the whole robot, by that of the link
            with the sternum, in the axes of the neutral posture [m]. payload: at the left wrist [kg].
    """

    masses: float = 1.0
    shift: tuple[float, float, float] = (0.0, 0.0, 0.0)
    payload: float = 0.0

    def put_on(self, robot: Robot) -> Robot:
        """The robot itself, changed."""
        model, total = robot.model, robot.mass
        pin.framesForwardKinematics(model, robot.data, robot.q("neutral"))
        trunk = model.frames[robot.points["sternum"]].parentJoint
        if any(self.shift):
            inertia = model.inertias[trunk]
            lever = robot.data.oMi[trunk].rotation.T @ np.array(self.shift) * total / inertia.mass
            model.inertias[trunk] = pin.Inertia(inertia.mass, inertia.lever + lever, inertia.inertia)
        for i in model.inertias if self.masses != 1.0 else ():
            i.mass, i.inertia = self.masses * i.mass, self.masses * i.inertia
        if self.payload > 0:
            wrist = model.frames[robot.points["l_wrist"]]
            ball = pin.Inertia.FromSphere(self.payload, 0.05)
            model.appendBodyToJoint(wrist.parentJoint, ball, wrist.placement)
        return robot


@dataclass(frozen=True)
class TrialPush:
    """A push: begin after the first lift-off [s], force (3,) in the world [N], duration [s], link (empty: the root)."""

    when: float
    force: tuple[float, float, float]
    duration: float = 0.1
    link: str = ""


@dataclass
class WalkOutcome:
    """What became of a walk.

    Attributes:
        fell: why it fell, empty where it did not. steps: that it took. time: walked [s], simulated.
        distance: [m]. dcm_error: (2,) root mean square of xi - xi_ref, forward and sideways [m].
        tilt: most [rad] of the root link. zmp_margin: least of the zero-moment point that was asked for [m].
        sole_error: most [m] that a foot came down off its plan, against the other foot.
        foot_error: most [m] that the inverse kinematics missed a sole.
        slip: way that loaded soles crept, in all [m].
        torque_share: most of a torque limit; torque_joint: whose; torque_full: time with a joint at its limit [s].
        speed_share: most of a speed limit, in truth; command_share: of the commands.
        odometry: error of the estimated way, as share of it. height_drift: [m]. heading_drift: [rad].
        velocity_error: of the estimated centre of mass, root mean square of its horizontal size [m/s].
        inside: share of the time in which the place was within three of the deviations that were estimated for it.
        velocity: (3,) mean over the steady part [m/s, m/s, rad/s], in the robot's heading.
        momentum: peak to peak of the angular momentum about the vertical [N m s].
        yaw_torque: about the vertical under the soles, measured; most of all but a hundredth of the time [N m].
        turned, turned_felt: most that a sole turned about the vertical while it stood, in truth and measured [rad].
        real_time_factor: simulated time per time. tick: median and 99th percentile of a tick of the walker [s].
    """

    fell: str = ""
    steps: int = 0
    time: float = 0.0
    distance: float = 0.0
    dcm_error: np.ndarray = field(default_factory=lambda: np.zeros(2))
    tilt: float = 0.0
    zmp_margin: float = np.inf
    sole_error: float = 0.0
    foot_error: float = 0.0
    slip: float = 0.0
    torque_share: float = 0.0
    torque_joint: str = ""
    torque_full: float = 0.0
    speed_share: float = 0.0
    command_share: float = 0.0
    odometry: float = 0.0
    height_drift: float = 0.0
    heading_drift: float = 0.0
    velocity_error: float = 0.0
    inside: float = 0.0
    velocity: np.ndarray = field(default_factory=lambda: np.zeros(3))
    momentum: float = 0.0
    yaw_torque: float = 0.0
    turned: float = 0.0
    turned_felt: float = 0.0
    real_time_factor: float = 0.0
    tick: tuple[float, float] = (0.0, 0.0)


Program = Callable[[float], Sequence[float]]


@dataclass(frozen=True)
class WalkConditions:
    """What a walk is done under.

    Attributes:
        program: velocity (3,) to walk with, at a time since the start [s]; after the steps it is zero.
        steps: after which it stops. longest: time after which it is ended [s].
        noise: of the sensors; None: they are perfect. seed: of the noise.
        pushes: on the root link, in the order of time.
    """

    program: Program
    steps: int
    longest: float = 1e4
    noise: Imperfection | None = NOISE
    seed: int = 0
    pushes: tuple[TrialPush, ...] = ()


def walk(
    engine: Engine,
    walker: Walker,
    conditions: WalkConditions,
    watch: Callable[[Engine, Walker, WalkReport], None] | None = None,
) -> WalkOutcome:
    """Walk until so many steps are done and the robot stands again, or it falls.

    Args:
        engine: with a robot on a floating base, at rest. walker: of a robot of its own.
        conditions: of the walk. watch: called after every tick.
    """
    program, steps, longest = conditions.program, conditions.steps, conditions.longest
    noise, seed, pushes = conditions.noise, conditions.seed, conditions.pushes
    dt, h = walker.settings.dt, engine.settings.step
    half = max(round(0.5 * dt / h), 1)
    rest = max(round(dt / h) - half, 0)
    engine.step(round(SETTLING / h))
    sensors = NoisySensors(engine, noise, seed) if noise else None
    seen = _Seen(engine, walker)
    todo, out, first = list(pushes), WalkOutcome(), float("nan")
    begin = time.perf_counter()
    while walker.t < longest:
        measured = engine.read() if sensors is None else sensors.read()
        if measured is None:
            engine.step(half + rest)
            continue
        walker.command(np.asarray(program(walker.t), dtype=float) if walker.steps < steps else np.zeros(3))
        t0 = time.perf_counter()
        report = walker.step(measured)
        seen.ticks.append(time.perf_counter() - t0)
        iq, iv = walker.robot.iq, walker.robot.iv
        engine.command(walker.q[iq:], walker.v[iv:])
        if np.isnan(first) and report.references.swinging is not None:
            first = walker.t
        while todo and walker.t - first >= todo[0].when:
            push = todo.pop(0)
            engine.push(push.link or engine.robot.root_link, np.array([*push.force, 0.0, 0.0, 0.0]), push.duration)
        seen.look(report)
        if watch is not None:
            watch(engine, walker, report)
        if report.state == WalkState.FALLEN or engine.diverged:
            out.fell = report.why or engine.failure
            break
        if walker.steps >= steps and report.state == WalkState.STAND:
            break
        engine.step(half)
        if sensors is not None and rest:
            sensors.sample()
        if rest:
            engine.step(rest)
    out.real_time_factor = walker.t / (time.perf_counter() - begin)
    seen.tell(out)
    return out


class _Seen:
    """Everything that is measured while a robot walks."""

    def __init__(self, engine: Engine, walker: Walker) -> None:
        self.engine, self.walker, self.ticks = engine, walker, list[float]()
        self.rows: list[list[float]] = []
        self.data = engine.robot.model.createData()
        self.torque = np.zeros(engine.robot.n)
        self.sole_errors: list[float] = []
        self.slip, self.full = 0.0, 0.0
        self.turned, self.turned_felt = 0.0, 0.0
        self._down: list[np.ndarray | None] = [None, None]
        self._swinging: int | None = None
        self._soles: list[pin.SE3] | None = None

    def look(self, report: WalkReport) -> None:
        e, w = self.engine, self.walker
        r, dt = e.robot, w.settings.dt
        momentum = pin.computeCentroidalMomentum(r.model, self.data, e.q, e.v)
        L, believed = momentum.angular[2], report.estimate
        off = believed.center_velocity[:2] - momentum.linear[:2] / r.mass
        soles = [pin.updateFramePlacement(r.model, self.data, f).copy() for f in w.feet.frames]
        share = np.abs(e.torque) / r.effort
        np.maximum(self.torque, share, out=self.torque)
        self.full += dt * bool(share.max() > 0.999)
        ref = report.references
        if self._soles is not None:
            for k in (0, 1):
                if k != ref.swinging and report.estimate.weights[k] > 0.2:
                    still = w.estimator.pivots[k]  # of a foot that rolls, what does not move by that
                    self.slip += math.dist(soles[k].act(still)[:2], self._soles[k].act(still)[:2])
        if self._swinging is not None and ref.swinging is None:
            k = self._swinging
            planned, true = ref.soles[1 - k].actInv(ref.soles[k]), soles[1 - k].actInv(soles[k])
            self.sole_errors.append(float(np.hypot(*(planned.translation - true.translation)[:2])))
        for k, touches in enumerate(report.estimate.touches):
            if not touches:
                self._down[k] = None
                continue
            R = soles[k].rotation
            down = self._down[k]
            if down is None:
                down = self._down[k] = R
            if report.state != WalkState.STAND:
                turn = (down.T @ R).tolist()
                self.turned = max(self.turned, abs(math.atan2(turn[1][0], turn[0][0])))
                self.turned_felt = max(self.turned_felt, float(abs(report.estimate.turned[k])))
        self._soles, self._swinging = soles, ref.swinging
        up = (pin.Quaternion(e.q[3:7]).toRotationMatrix() @ r.X_world_root.rotation.T).tolist()
        heading = math.atan2(up[1][0], up[0][0])
        self.rows.append(
            [
                w.t,
                *(ref.heading.T[:2, :2] @ report.balance.error),
                math.acos(min(max(up[2][2], -1.0), 1.0)),
                report.balance.margin,
                report.foot_error.max(),
                (np.abs(e.v[r.iv :]) / r.velocity).max(),
                (np.abs(w.v[r.iv :]) / r.velocity).max(),
                *e.q[:3],
                *believed.q[:3],
                heading,
                L,
                report.reaction.yaw_torque,
                *e.q[3:7],
                *believed.q[3:7],
                math.hypot(*off.tolist()),
                believed.deviation[0],
                float(ref.swinging is not None),
            ]
        )

    def tell(self, out: WalkOutcome) -> None:
        """Fill the outcome."""
        a, w = np.array(self.rows), self.walker
        out.steps, out.time = w.steps, w.t
        walking = np.flatnonzero(a[:, -1])
        a = a[walking[0] :] if len(walking) else a
        out.dcm_error = np.sqrt((a[:, 1:3] ** 2).mean(axis=0))
        out.tilt, out.zmp_margin = float(a[:, 3].max()), float(a[:, 4].min())
        out.foot_error, out.speed_share = float(a[:, 5].max()), float(a[:, 6].max())
        out.command_share = float(a[:, 7].max())
        way = a[:, 8:11] - a[0, 8:11]
        guess = a[:, 11:14] - a[0, 11:14]
        out.distance = float(np.hypot(np.diff(a[:, 8]), np.diff(a[:, 9])).sum())
        out.odometry = float(np.linalg.norm((guess - way)[-1, :2]) / max(out.distance, 1e-9))
        out.height_drift = float((guess - way)[-1, 2])
        turn = [_heading(row[21:25]) - _heading(row[17:21]) for row in (a[0], a[-1])]
        out.heading_drift = math.remainder(turn[1] - turn[0], 2 * math.pi)
        out.velocity_error = float(np.sqrt((a[:, 25] ** 2).mean()))
        far, sigma = np.linalg.norm((guess - way)[:, :2], axis=1), np.maximum(a[:, 26], 1e-9)
        out.inside = float((far <= 3 * sigma).mean())
        out.sole_error, out.slip = max(self.sole_errors, default=0.0), self.slip
        k = int(np.argmax(self.torque))
        out.torque_share, out.torque_joint = float(self.torque[k]), self.engine.robot.joint_names[k]
        out.torque_full = self.full
        out.turned, out.turned_felt = self.turned, self.turned_felt
        third = a[len(a) // 3 : -max(len(a) // 10, 1)]
        if len(third) > 2:
            h = np.unwrap(third[:, 14])
            span = third[-1, 0] - third[0, 0]
            d = np.diff(third[:, 8:10], axis=0)
            c, s = np.cos(h[:-1]), np.sin(h[:-1])
            forward, left = (c * d[:, 0] + s * d[:, 1]).sum(), (c * d[:, 1] - s * d[:, 0]).sum()
            out.velocity = np.array([forward, left, h[-1] - h[0]]) / span
            out.momentum = float(np.ptp(third[:, 15]))
            out.yaw_torque = float(np.percentile(np.abs(third[:, 16]), 99))
        out.tick = (float(np.median(self.ticks)), float(np.percentile(self.ticks, 99)))


def _heading(q: np.ndarray) -> float:
    """Turn about the vertical of a quaternion x y z w [rad]."""
    x, y, z, w = q.tolist()
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def steady(velocity: Sequence[float], after: float = 2.0) -> Program:
    """A program: stand, then walk with one velocity (3,)."""
    return lambda t: velocity if t >= after else (0.0, 0.0, 0.0)
