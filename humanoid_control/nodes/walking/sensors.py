"""Sensors of a walking robot: checked messages, silences and the timing of ticks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu, JointState

from humanoid_control.errors import ConfigError, HumanoidError, NotANumberError
from humanoid_control.estimation import EncoderTurns, named_twice
from humanoid_control.kinematics.joint_state import ImuReading, Measurement
from humanoid_control.kinematics.joint_state import JointState as JointRecord
from humanoid_control.nodes.base.health import Health, Level
from humanoid_control.nodes.simulating.outputs import sole_frame
from humanoid_control.nodes.walking.imu_frame import ImuFrame, TurnBalance
from humanoid_control.robots import Robot
from humanoid_control.walking import Walker, WalkReport
from humanoid_control.walking.missing_forces import sensed_wrenches, wrenches_of_motion
from humanoid_control.walking.walker import EXPECTED

JOINTS, IMU, WRENCHES = "joint_states", "imu", "wrench"
UNIT = 0.05  # tolerance of the norm of a quaternion
SMOOTH = 20.0  # readings, time constant of the filter of the interval between instants
PATIENCE = 1.5  # intervals after which an instant counts as late
AHEAD = 2  # ticks that may run ahead of the newest instant; later ones wait until the sensors count as silent
MADE_UP = 5  # lost instants replaced at once; the jump check of the commands detects longer pauses
SILENT = 5.0  # intervals without an instant before the sensors count as silent
SLOW = 1.8  # ticks between common instants above which the joint states alone set the pace
BACK = 0.05  # [s] backward step that counts as a clock that was set back
APART = 0.1  # [s] without a common instant before the sensors count as stamped independently
FROZEN = 8  # equal readings of a force sensor, while joints move, before it counts as silent
CARRIED = 0.6  # share of the weight that a single supporting foot must measure
MOVING = 0.1  # [rad/s] speed of the fastest joint above which the robot counts as moving
USELESS = 1.0  # [rad^2] variance about x or y above which an orientation does not determine the vertical
IMPOSSIBLE = 1e6  # bound of the magnitude of any reading, in its own unit
FASTEST = 3.0  # multiple of the speed limit that a joint may reach, as in `JointPlausibility`
# [rad/s], [m/s^2] limits of a plausible IMU reading: ranges of robot IMUs end at 2000 deg/s and 20 g
FASTEST_TURN, HARDEST = 35.0, 200.0
WEIGHTLESS = 1.5  # [m/s^2] minimum specific force at the start: drivers that report g or remove gravity stay below it
SUDDEN = 5.0  # [rad/s] instantaneous change of angular velocity that an impact can cause
ANGULAR = 1000.0  # [rad/s^2] plausible angular acceleration
BELIEVED = 3  # consecutive consistent outliers after which the new value is accepted
TURNED, LEAPT = 0.3, 0.3  # [rad] instantaneous changes of orientation, of a joint: beyond them the robot was moved


class SoleFrames:
    """Transforms of wrenches to sole frames, by the joint positions.

    A wrench at a link that carries the foot, or is carried by it, counts as the ground wrench: the weight and inertia
    of links between are neglected. Other frames are rejected.
    """

    def __init__(self, robot: Robot, soles: tuple[str, ...]) -> None:
        self._model, self._data, self._robot = robot.model, robot.model.createData(), robot
        feet = {foot.name: foot for foot in robot.feet}
        self._soles: dict[str, tuple[int, pin.SE3]] = {}
        for name in soles:
            middle = pin.SE3(np.eye(3), feet[name].corners().mean(axis=0))
            self._soles[name] = self._placed(feet[name].link, middle)
        frames = (f for f in robot.model.frames if f.type == pin.FrameType.BODY)
        self._links = {f.name: (int(f.parentJoint), f.placement.copy()) for f in frames}
        self._links |= {sole_frame(name): placed for name, placed in self._soles.items()}

    def _placed(self, link: str, X: pin.SE3) -> tuple[int, pin.SE3]:
        frame = self._model.frames[self._model.getFrameId(link, pin.FrameType.BODY)]
        return int(frame.parentJoint), frame.placement * X

    def to_sole(self, sole: str, frame: str, wrench: np.ndarray, joints: np.ndarray) -> np.ndarray:
        """Return the wrench (6,) about the centre of a sole, in the axes of its link.

        Args:
            frame: frame of the measurement; empty: the sole frame.
            wrench: force [N] and torque [N m] (6,) about the origin of the frame.
            joints: joint positions (n,) [rad].

        Raises:
            ConfigError: if the frame is not on this limb, or joints in between are unknown.
        """
        if frame in ("", sole_frame(sole)):
            return wrench
        topic = f"wrench/{sole} in frame '{frame[:60]}'"
        if frame not in self._links:
            raise ConfigError(f"{topic}: not '{sole_frame(sole)}' or a link of this robot: ignored")
        (foot, X_foot), (link, X_link) = self._soles[sole], self._links[frame]
        supports = self._model.supports
        if link not in supports[foot] and foot not in supports[link]:
            raise ConfigError(f"{topic}: that link does not belong to this foot: ignored")
        X = X_foot.inverse() * X_link
        if link != foot:
            if not np.isfinite(joints).all():
                raise ConfigError(f"{topic}: the joints in between are not measured yet: ignored")
            pin.forwardKinematics(self._model, self._data, self._robot.q(joints))
            X = (self._data.oMi[foot] * X_foot).actInv(self._data.oMi[link] * X_link)
        return np.asarray(X.act(pin.Force(wrench)).vector)


class Sensors:
    """Newest reading of every sensor. Faulty messages are reported and discarded.

    Attributes:
        silence: time [s] without news per sensor, while this node ran.
        elsewhere: why the robot cannot be at its last posture; empty: it can.
        carrying: soles that must carry weight, and may not read zero for long.
    """

    def __init__(
        self,
        robot: Robot,
        soles: tuple[str, ...],
        health: Health,
        local_frame: Callable[[str], str] = str,
    ) -> None:
        """Create the sensors without readings.

        Args:
            robot: floating base.
            soles: feet with force sensors.
            local_frame: `NodeParameters.local_frame`.
        """
        self.robot, self._health, self._local_frame = robot, health, local_frame
        self._order: tuple[list[str], np.ndarray, np.ndarray] = ([], np.zeros(0, int), np.zeros(0, int))
        self.soles, self._frames, self._imu_frame = soles, SoleFrames(robot, soles), ImuFrame(robot)
        self._turns, self._balance = EncoderTurns(robot.lower, robot.upper), TurnBalance()
        self.reset()

    def reset(self) -> None:
        n = self.robot.n
        self._turns.restart()
        self._imu_frame.restart()
        self._balance.restart()
        self._q, self._v, self._effort = np.full(n, np.nan), np.zeros(n), np.full(n, np.nan)
        self._imu: ImuReading | None = None
        # last outlier, its stamp [ns], number of consistent outliers
        self._odd: tuple[ImuReading, int, int] | None = None
        self._wrenches: dict[str, np.ndarray] = {}
        self._stamps: dict[str, int] = {}
        self.silence = dict.fromkeys((JOINTS, IMU, *map(wrench_key, self.soles)), float("inf"))
        self._updated_at = time.monotonic()
        self._same = dict.fromkeys(self.soles, 0)
        self.elsewhere = ""
        self.carrying: frozenset[str] = frozenset()

    # -- messages ---------------------------------------------------------------------------------------------------

    forget = reset  # name before 0.2.0, which reports of faults use

    def on_joints(self, m: JointState) -> bool:
        """Accept joint states; return True if valid."""
        return self._guarded(JOINTS, self._take_joints, m)

    def on_imu(self, m: Imu) -> bool:
        """Accept an IMU reading; return True if valid."""
        return self._guarded(IMU, self._take_imu, m)

    def on_wrench(self, sole: str, m: WrenchStamped) -> bool:
        """Accept the wrench on a sole; return True if valid."""
        return self._guarded(wrench_key(sole), lambda w: self._take_wrench(sole, w), m)

    def _guarded(self, key: str, take: Callable[[Any], None], m: Any) -> bool:
        try:
            take(m)
        except HumanoidError as e:
            self._health.report(key, Level.ERROR, str(e))
            return False
        stamp = m.header.stamp.sec * 10**9 + m.header.stamp.nanosec
        if stamp != self._stamps.get(key):  # a repeated message carries no new information
            self._stamps[key] = stamp
            if not self._health.check(f"{key} frozen", self._frozen(key), Level.ERROR, f"{key} is frozen"):
                self.silence[key] = 0.0
        self._health.clear(key)
        return True

    def _frozen(self, key: str) -> bool:
        """Test whether a force sensor repeats equal values while joints move."""
        return self._same.get(key.removeprefix(f"{WRENCHES}/"), 0) > FROZEN

    def _take_joints(self, m: JointState) -> None:
        if m.name != self._order[0]:
            self._order = (list(m.name), *self.robot.order_of(m.name))
        names, places, own = self._order
        if len(m.position) != len(names):
            raise ConfigError("joint_states without a position for each name: ignored")
        if len(m.velocity) != len(names):  # zero velocities would make a moving robot appear at rest
            raise ConfigError("joint_states without velocities: ignored; configure the robot driver to publish them")
        q, v = np.asarray(m.position, dtype=float)[places], np.asarray(m.velocity, dtype=float)[places]
        if not len(own):
            raise ConfigError("joint_states without a joint of this robot: ignored")
        if twice := named_twice(names):
            raise ConfigError(f"joint_states name '{twice[:60]}' twice: ignored")
        bad = np.flatnonzero(~(_possible(q) & _possible(v)))
        if len(bad):
            k = bad[0]
            name = self.robot.joint_names[own[k]]
            raise NotANumberError(f"joint_states: {name} is non-numeric or implausible ({q[k]:g}, {v[k]:g}): ignored")
        fast = np.abs(v) > FASTEST * self.robot.velocity[own]
        if fast.any():
            k = int(np.argmax(fast))
            text = f"{self.robot.joint_names[own[k]]} moves at {v[k]:.3g} rad/s, more than {FASTEST:g} times its limit"
            raise ConfigError(f"joint_states: {text}: ignored")
        q, wrapped = self._turns.unwrap(own, q)
        if wrapped.any():
            name = self.robot.joint_names[own[int(np.argmax(wrapped))]]
            raise ConfigError(f"joint_states: {name} jumped by a whole turn, its encoder restarted: ignored")
        # Distance beyond the reach at the speed limit: larger ones mean that the robot was moved.
        far = np.abs(q - self._q[own]) - self.robot.velocity[own] * max(self._since(JOINTS, m), 0.0)
        leap = np.nan_to_num(far, nan=0.0)
        k = int(np.argmax(leap))
        if leap[k] > LEAPT:
            self.elsewhere = f"{self.robot.joint_names[own[k]]} jumped by {leap[k]:.1f} rad"
        self._q[own], self._v[own] = q, v

    def _take_imu(self, m: Imu) -> None:
        frame, o, w, a = self._local_frame(m.header.frame_id), m.orientation, m.angular_velocity, m.linear_acceleration
        for what, covariance in _covariances(m).items():
            if not covariance[0] >= 0.0:  # -1 marks an unknown covariance (definition of sensor_msgs/Imu)
                raise ConfigError(
                    f"imu: {what} not measured, according to its covariance of {covariance[0]:g}: ignored"
                )
        if (variance := max(m.orientation_covariance[0], m.orientation_covariance[4])) > USELESS:
            raise ConfigError(f"imu: the orientation has a variance of {variance:.3g} rad^2: ignored")
        orientation = np.array([o.x, o.y, o.z, o.w])
        turning, force = np.array([w.x, w.y, w.z]), np.array([a.x, a.y, a.z])
        if not (_possible(orientation).all() and _possible(turning).all() and _possible(force).all()):
            raise NotANumberError("imu: a value is not a number: ignored")
        length = float(np.linalg.norm(orientation))
        if abs(length - 1) > UNIT:
            raise ConfigError(f"imu: an orientation of length {length:.2f} is not a unit quaternion: ignored")
        time = 1e-9 * (m.header.stamp.sec * 10**9 + m.header.stamp.nanosec)
        reading = self._imu_frame.to_root(
            frame, ImuReading(orientation / length, turning, force), time, self._q, self._v
        )
        turning, force = reading.angular_velocity, reading.linear_acceleration
        speed, pull = float(np.linalg.norm(turning)), float(np.linalg.norm(force))
        if self.soles and self._imu is None and pull < WEIGHTLESS:
            text = f"the first acceleration is {pull:.3g} m/s^2, a standing robot measures 9.81"
            raise ConfigError(f"imu: {text}: is it in g, or without gravity? ignored")
        if speed > FASTEST_TURN or pull > HARDEST:
            raise ConfigError(f"imu: {speed:.3g} rad/s and {pull:.3g} m/s^2 are implausible: ignored")
        since = max(self._since(IMU, m), 0.0)
        if self._imu is not None and (leap := _leap(self._imu, reading, since)):
            # An outlier is accepted once BELIEVED consecutive outliers agree with each other.
            stamp, count = m.header.stamp.sec * 10**9 + m.header.stamp.nanosec, 1
            if self._odd is not None and not _leap(self._odd[0], reading, max(1e-9 * (stamp - self._odd[1]), 0.0)):
                count += self._odd[2]
            self._odd = reading, stamp, count
            if count < BELIEVED:
                raise ConfigError(f"imu: {leap}: ignored")
            if _turn(self._imu, reading) > TURNED:
                self.elsewhere = leap
        if self.soles and (fault := self._balance.fault(reading, time)):
            raise ConfigError(f"imu: {fault} ignored")
        self._imu, self._odd = reading, None

    def _take_wrench(self, sole: str, m: WrenchStamped) -> None:
        frame, f, t = self._local_frame(m.header.frame_id), m.wrench.force, m.wrench.torque
        wrench = np.array([f.x, f.y, f.z, t.x, t.y, t.z])
        if not _possible(wrench).all():
            raise NotANumberError(f"wrench/{sole}: a value is not a number: ignored")
        wrench = self._frames.to_sole(sole, frame, wrench, self._q)
        before = self._wrenches.get(sole)
        # Repeated zeros are normal for a foot in the air, but not for one that carries weight.
        told = wrench.any() or sole in self.carrying or self._same[sole] > FROZEN
        same = before is not None and told and np.array_equal(wrench, before)
        self._same[sole] = self._same[sole] + (np.abs(self._v).max() > MOVING) if same else 0
        self._wrenches[sole] = wrench

    def _since(self, key: str, m: Any) -> float:
        return 1e-9 * (m.header.stamp.sec * 10**9 + m.header.stamp.nanosec - self._stamps.get(key, 0))

    # -- readings ---------------------------------------------------------------------------------------------------

    @property
    def instant(self) -> int | None:
        """Stamp shared by all newest readings [ns]; None where stamps differ."""
        stamps = set(self._stamps.values())
        return stamps.pop() if len(stamps) == 1 and len(self._stamps) == len(self.silence) else None

    @property
    def joint_instant(self) -> int | None:
        """Stamp of the newest joint states [ns]."""
        return self._stamps.get(JOINTS)

    @property
    def missing(self) -> list[str]:
        """Sensors without any reading so far."""
        out = [key for key in self.silence if key not in self._stamps]
        if JOINTS not in out and (unknown := np.flatnonzero(np.isnan(self._q))).size:
            out.append(f"{JOINTS} of {self.robot.joint_names[unknown[0]]}")
        return out

    def advance(self, now: float, most: float, pace: float = 1.0) -> None:
        """Increase every silence by the time since the last call.

        Args:
            now: monotonic time [s].
            most: maximum increase [s], for suspended processes.
            pace: sensor time per clock time.
        """
        passed = pace * min(now - self._updated_at, most)
        self._updated_at = now
        for key in self.silence:
            self.silence[key] += passed

    def quiet(self, limit: float) -> list[str]:
        """Return sensors silent for `limit` [s]."""
        return [key for key, s in self.silence.items() if s > limit]

    def joints(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the last positions (n,) [rad] and velocities (n,) [rad/s]."""
        return self._q, self._v

    def measurement(self) -> Measurement:
        """Return the newest readings, which must be complete."""
        assert self._imu is not None
        joints = JointRecord(self.robot.joint_names, self._q.copy(), self._v.copy(), self._effort, self._stamp)
        return Measurement(joints, self._imu, dict(self._wrenches))

    @property
    def _stamp(self) -> float:
        return 1e-9 * self._stamps.get(JOINTS, 0)


def _turn(before: ImuReading, after: ImuReading) -> float:
    return float(2 * np.arccos(min(1.0, abs(float(before.orientation @ after.orientation)))))


def _leap(before: ImuReading, after: ImuReading, since: float) -> str:
    """Describe a change that no body makes within `since` [s]; empty: it is possible."""
    angle, speed = _turn(before, after), float(np.linalg.norm(after.angular_velocity))
    if angle - max(speed, float(np.linalg.norm(before.angular_velocity))) * since > TURNED:
        return f"the IMU orientation jumped by {np.degrees(angle):.0f} deg"
    change = float(np.linalg.norm(after.angular_velocity - before.angular_velocity))
    if change > SUDDEN + ANGULAR * since:
        return f"the angular velocity jumped by {change:.3g} rad/s"
    return ""


def _covariances(m: Imu) -> dict[str, np.ndarray]:
    return {
        "orientation": m.orientation_covariance,
        "angular velocity": m.angular_velocity_covariance,
        "linear acceleration": m.linear_acceleration_covariance,
    }


def _possible(values: np.ndarray) -> np.ndarray:
    return np.abs(values) < IMPOSSIBLE


class TickClock:
    """Schedule of ticks from sensor instants.

    Each due instant gets a tick of `dt` [s]. If its message is lost, a tick uses the last readings. Slow or
    independently stamped sensors follow the joint states.

    Attributes:
        held: number of ticks without an instant of their own.
    """

    def __init__(self, dt: float) -> None:
        self.dt, self.held = dt, 0
        self.restart()

    def restart(self) -> None:
        """Start with the next instant."""
        self._due: float | None = None  # [s] in the sensors' time
        self._instant: int | None = None
        self._common, self._gap, self._common_received = 0, self.dt, -np.inf
        self._stamp, self._arrived = 0.0, 0.0  # newest instant: its stamp, its arrival [s]
        self._ticked, self._interval = 0.0, self.dt

    @property
    def pace(self) -> float:
        """Sensor time per clock time, at most 1."""
        return self.dt / self._interval

    def rest(self, now: float) -> None:
        """Restart the waiting times at `now` [s], after a pause."""
        self._ticked = self._arrived = self._common_received = now

    def choose(self, common: int | None, joints: int | None, now: float) -> int | None:
        """Return the instant to use [ns]: the common one, or the joints' one if other sensors are slow.

        Args:
            common: newest stamp shared by all sensors [ns], or None.
            joints: newest stamp of the joint states [ns], or None.
            now: monotonic time [s].
        """
        if common is not None and common != self._common:
            if self._common and (gap := 1e-9 * (common - self._common)) > 0:
                self._gap += (min(gap, 10 * self.dt) - self._gap) / SMOOTH
            self._common, self._common_received = common, now
        slow = now - self._common_received > APART or self._gap > SLOW * self.dt
        return joints if slow else (common if common is not None else self._instant)

    def newer(self, instant: int | None) -> bool:
        """Test whether an instant [ns] had no tick yet."""
        return instant is not None and (self._instant is None or instant != self._instant)

    def step(self, instant: int | None, now: float) -> int:
        """Return the number of ticks to run; more than one replaces lost instants.

        Args:
            instant: instant to use [ns], or None.
            now: monotonic time [s].
        """
        if instant is not None and (self._instant is None or instant > self._instant):
            return self._take(instant, now)
        if self._due is None or now - self._ticked <= PATIENCE * self._interval:
            return 0
        # No instant in time: treat it as lost, but do not run far ahead of sensors that are only slow.
        ahead = self._due - self._stamp > (AHEAD + 0.5) * self.dt
        if ahead and now - self._arrived < SILENT * self._interval:
            return 0  # delayed rather than lost
        self._ticked = max(self._ticked + self._interval, now - self._interval)  # replace at most one missed tick
        self._due += self.dt
        self.held += 1
        return 1

    def jumped(self, instant: int | None, limit: float) -> bool:
        """Test whether the sensor clock was set back, or advanced by `limit` [s]."""
        if instant is None or self._instant is None:
            return False
        passed = 1e-9 * (instant - self._instant)
        return passed < -BACK or passed > limit

    def _take(self, instant: int, now: float) -> int:
        stamp = 1e-9 * instant
        if self._due is None:
            self._due = stamp
        else:
            periods = max(1.0, round((stamp - self._stamp) / self.dt))
            # Filtered clock time per tick, which exceeds dt for a slow simulation.
            between = min(max(now - self._arrived, 0.0) / periods, 10 * self.dt)
            self._interval = max(self._interval + (between - self._interval) / SMOOTH, self.dt)
        self._instant, self._stamp, self._arrived, self._ticked = instant, stamp, now, now
        late = stamp - self._due
        # Its tick has already run without it.
        if late < -0.5 * self.dt:
            return 0
        lost = min(round(late / self.dt), MADE_UP)
        self.held += lost
        self._due = stamp + self.dt if lost else self._due + self.dt
        return 1 + lost


def rehearse(walker: Walker) -> None:
    """Run a few ticks at rest to load compiled code."""
    r = walker.robot
    q = r.postures["neutral"]
    o = pin.Quaternion(r.X_world_root.rotation)
    imu = ImuReading(np.array([o.x, o.y, o.z, o.w]), np.zeros(3), np.array([0.0, 0.0, 9.81]))
    joints = JointRecord(r.joint_names, q, np.zeros(r.n), np.zeros(r.n), 0.0)
    walker.estimator.kinematics(q, joints.v, imu)
    weight = np.array([[0.5 * r.mass * 9.81, 0.0, 0.0]] * 2)
    wrenches = sensed_wrenches(walker.feet, walker.estimator.data, weight)
    for _ in range(3):
        walker.step(Measurement(joints, imu, wrenches))
    walker.reset()


def wrench_key(sole: str) -> str:
    return f"{WRENCHES}/{sole}"


def soles_without_force(walker: Walker, report: WalkReport, measured: Measurement) -> frozenset[str]:
    """Return soles of the single supporting foot that wrongly measure nothing."""
    ref = report.references
    if ref.swinging is None or not 1.0 - EXPECTED < ref.u < EXPECTED:
        return frozenset()
    if report.reaction.force[2] > CARRIED * walker.robot.mass * 9.81:
        return frozenset()
    soles = walker.feet.soles[1 - ref.swinging]
    return frozenset(s.name for s in soles if not measured.foot_wrenches[s.name].any())


def with_forces_of_motion(
    walker: Walker, report: WalkReport, measured: Measurement, late: Sequence[str]
) -> Measurement:
    """Return the measurement with silent sensors' wrenches estimated from the motion.

    Args:
        walker: walker after the previous tick, which made `report`.
        report: its report.
        measured: current measurement.
        late: keys of silent sensors.
    """
    feet, estimator, ref = walker.feet, walker.estimator, report.references
    estimator.kinematics(measured.joints.q, measured.joints.v, measured.imu)
    silent = [any(wrench_key(sole.name) in late for sole in soles) for soles in feet.soles]
    heard = {s.name: measured.foot_wrenches[s.name] for k in (0, 1) if not silent[k] for s in feet.soles[k]}
    # without any force measurement, the plan decides which foot swings
    in_air = ref.swinging if ref.u < EXPECTED or all(silent) else None
    pressed = wrenches_of_motion(feet, estimator, heard, silent, in_air)
    return measured._replace(foot_wrenches=sensed_wrenches(feet, estimator.data, pressed) | heard)
