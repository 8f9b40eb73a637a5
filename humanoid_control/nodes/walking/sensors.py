"""Sensors of a walking robot as messages: each checked, their ages known, and put together to a measurement."""

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
UNIT = 0.05  # by which the length of an orientation's quaternion may differ from 1
SMOOTH = 20.0  # readings over which the interval between them is taken
PATIENCE = 1.5  # intervals that an instant may be late
AHEAD = 2  # ticks that may be made ahead of the newest instant, while it is not known to be lost
MADE_UP = 5  # lost instants that are made up for at once; time that stood still is noticed as a jump of the commands
SILENT = 5.0  # intervals without an instant after which it is
SLOW = 1.8  # ticks: sensors whose common instants are farther apart are too slow to wait for
BACK = 0.05  # [s] by which the sensors' clock must go back to have been set back
APART = 0.1  # [s] without a common instant after which the sensors have stamps of their own
FROZEN = 8  # equal readings of a force sensor, while joints move, after which it counts as silent
CARRIED = 0.6  # of the weight: what the foot that stands alone must feel
MOVING = 0.1  # [rad/s] of the fastest joint
USELESS = 1.0  # [rad^2] variance of an orientation about x or y, which says nothing of where up is
IMPOSSIBLE = 1e6  # in any unit of a sensor
FASTEST = 3.0  # times its speed limit that a joint may move, as in `JointPlausibility`
FASTEST_TURN, HARDEST = 35.0, 200.0  # [rad/s], [m/s^2] of a body: beyond 2000 deg/s and 20 g no IMU of a robot measures
WEIGHTLESS = 1.5  # [m/s^2] below which no robot begins: 1 in g, 0 where gravity was taken out
SUDDEN = 5.0  # [rad/s] by which a body's angular velocity changes in no time, as at an impact
ANGULAR = 1000.0  # [rad/s^2] of its angular acceleration
BELIEVED = 3  # odd readings in a row that agree: there the body really is
TURNED, LEAPT = 0.3, 0.3  # [rad] by which an orientation, or a joint, changes in no time: the robot was put elsewhere


class SoleFrames:
    """The way from the frames of links to those of the soles, by the measured joints.

    The force on a foot passes through the links that carry it and those that are fixed to it. A wrench in the frame of
    one of them is the same wrench about another point and in other axes. One in the frame of another limb is of another
    sensor, and refused.
    """

    def __init__(self, robot: Robot, soles: tuple[str, ...]) -> None:
        """Prepare; soles: names of feet of the robot."""
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
        """The wrench (6,) about the middle of a sole, in the axes of its link.

        Args:
            sole: its name. frame: in which it was measured; empty: that of the sole.
            wrench: (6,) force [N] and torque [N m] about the origin of the frame. joints: (n,) [rad].

        Raises:
            ConfigError: a frame that is none of the robot's links, or of another limb; joints that are not known.
        """
        if frame in ("", sole_frame(sole)):
            return wrench
        topic = f"wrench/{sole} in frame '{frame[:60]}'"
        if frame not in self._links:
            raise ConfigError(
                f"{topic}: neither '{sole_frame(sole)}' nor a link of this robot has that name: passed over"
            )
        (foot, X_foot), (link, X_link) = self._soles[sole], self._links[frame]
        supports = self._model.supports
        if link not in supports[foot] and foot not in supports[link]:
            raise ConfigError(f"{topic}: that link carries no force of this foot: passed over")
        X = X_foot.inverse() * X_link
        if link != foot:
            if not np.isfinite(joints).all():
                raise ConfigError(f"{topic}: the joints between are not measured yet: passed over")
            pin.forwardKinematics(self._model, self._data, self._robot.q(joints))
            X = (self._data.oMi[foot] * X_foot).actInv(self._data.oMi[link] * X_link)
        return np.asarray(X.act(pin.Force(wrench)).vector)


class Sensors:
    """The newest reading of every sensor. A faulty message is reported by name and changes nothing.

    Attributes:
        instant: stamp [ns] that the newest readings of all sensors have in common; None where they differ.
        silence: sensor -> time [s] for which this node listened and heard nothing new.
        elsewhere: why the robot cannot be where it was, empty where it can.
        carrying: soles on which the robot must stand now: not even nothing is what they may say for long.
    """

    def __init__(
        self,
        robot: Robot,
        soles: tuple[str, ...],
        health: Health,
        local_frame: Callable[[str], str] = str,
    ) -> None:
        """Make it.

        Args:
            robot: with a floating base. soles: names of its feet with force sensors. health: where faults are reported.
            local_frame: `NodeParameters.local_frame`, which removes the prefix of a frame.
        """
        self.robot, self._health, self._local_frame = robot, health, local_frame
        self._order: tuple[list[str], np.ndarray, np.ndarray] = ([], np.zeros(0, int), np.zeros(0, int))
        self.soles, self._frames, self._imu_frame = soles, SoleFrames(robot, soles), ImuFrame(robot)
        self._turns, self._balance = EncoderTurns(robot.lower, robot.upper), TurnBalance()
        self.forget()

    def forget(self) -> None:
        """Nothing is known any more."""
        n = self.robot.n
        self._turns.restart()
        self._imu_frame.restart()
        self._balance.restart()
        self._q, self._v, self._effort = np.full(n, np.nan), np.zeros(n), np.full(n, np.nan)
        self._imu: ImuReading | None = None
        self._odd: tuple[ImuReading, int, int] | None = None  # last one passed over, its stamp [ns], how many agreed
        self._wrenches: dict[str, np.ndarray] = {}
        self._stamps: dict[str, int] = {}
        self.silence = dict.fromkeys((JOINTS, IMU, *map(wrench_key, self.soles)), float("inf"))
        self._looked = time.monotonic()
        self._same = dict.fromkeys(self.soles, 0)
        self.elsewhere = ""
        self.carrying: frozenset[str] = frozenset()

    # -- messages ---------------------------------------------------------------------------------------------------

    def on_joints(self, m: JointState) -> bool:
        """Take joint states; True where they were good."""
        return self._guarded(JOINTS, self._take_joints, m)

    def on_imu(self, m: Imu) -> bool:
        """Take a reading of the IMU; True where it was good."""
        return self._guarded(IMU, self._take_imu, m)

    def on_wrench(self, sole: str, m: WrenchStamped) -> bool:
        """Take the wrench on a sole; True where it was good."""
        return self._guarded(wrench_key(sole), lambda w: self._take_wrench(sole, w), m)

    def _guarded(self, key: str, take: Callable[[Any], None], m: Any) -> bool:
        try:
            take(m)
        except HumanoidError as e:
            self._health.report(key, Level.ERROR, str(e))
            return False
        stamp = m.header.stamp.sec * 10**9 + m.header.stamp.nanosec
        if stamp != self._stamps.get(key):  # one that is sent again is no news
            self._stamps[key] = stamp
            if not self._health.check(f"{key} frozen", self._frozen(key), Level.ERROR, f"{key} is frozen"):
                self.silence[key] = 0.0
        self._health.clear(key)
        return True

    def _frozen(self, key: str) -> bool:
        """True where a force sensor says the same number for number while joints move, as none does that works.

        A foot in the air presses nothing for long; one that carries the robot does not.
        """
        return self._same.get(key.removeprefix(f"{WRENCHES}/"), 0) > FROZEN

    def _take_joints(self, m: JointState) -> None:
        if m.name != self._order[0]:
            self._order = (list(m.name), *self.robot.order_of(m.name))
        names, places, own = self._order
        if len(m.position) != len(names):
            raise ConfigError("joint_states without a position for each name: passed over")
        if len(m.velocity) != len(names):  # taken as zero they would make a robot that moves one that rests
            raise ConfigError("joint_states carry no velocities: passed over; let the robot's driver publish them")
        q, v = np.asarray(m.position, dtype=float)[places], np.asarray(m.velocity, dtype=float)[places]
        if not len(own):
            raise ConfigError("joint_states without a joint of this robot: passed over")
        if twice := named_twice(names):
            raise ConfigError(f"joint_states name '{twice[:60]}' twice: passed over")
        bad = np.flatnonzero(~(_possible(q) & _possible(v)))
        if len(bad):
            k = bad[0]
            name = self.robot.joint_names[own[k]]
            raise NotANumberError(f"joint_states: {name} is not a number that can be ({q[k]:g}, {v[k]:g}): passed over")
        fast = np.abs(v) > FASTEST * self.robot.velocity[own]
        if fast.any():
            k = int(np.argmax(fast))
            text = f"{self.robot.joint_names[own[k]]} moves at {v[k]:.3g} rad/s, more than {FASTEST:g} times its limit"
            raise ConfigError(f"joint_states: {text}: passed over")
        q, wrapped = self._turns.unwrap(own, q)
        if wrapped.any():
            name = self.robot.joint_names[own[int(np.argmax(wrapped))]]
            raise ConfigError(
                f"joint_states: {name} is a whole turn from where it was, its encoder began again: passed over"
            )
        far = np.abs(q - self._q[own]) - self.robot.velocity[own] * max(self._since(JOINTS, m), 0.0)
        leap = np.nan_to_num(far, nan=0.0)
        k = int(np.argmax(leap))
        if leap[k] > LEAPT:
            self.elsewhere = f"{self.robot.joint_names[own[k]]} is at once {leap[k]:.1f} rad from where it was"
        self._q[own], self._v[own] = q, v

    def _take_imu(self, m: Imu) -> None:
        frame, o, w, a = self._local_frame(m.header.frame_id), m.orientation, m.angular_velocity, m.linear_acceleration
        for what, covariance in _covariances(m).items():
            if not covariance[0] >= 0.0:  # -1 by the definition of sensor_msgs/Imu
                raise ConfigError(f"imu: no {what} was measured, by its covariance of {covariance[0]:g}: passed over")
        if (variance := max(m.orientation_covariance[0], m.orientation_covariance[4])) > USELESS:
            raise ConfigError(f"imu: the orientation has a variance of {variance:.3g} rad^2: passed over")
        orientation = np.array([o.x, o.y, o.z, o.w])
        turning, force = np.array([w.x, w.y, w.z]), np.array([a.x, a.y, a.z])
        if not (_possible(orientation).all() and _possible(turning).all() and _possible(force).all()):
            raise NotANumberError("imu: a value is not a number: passed over")
        length = float(np.linalg.norm(orientation))
        if abs(length - 1) > UNIT:
            raise ConfigError(f"imu: an orientation of length {length:.2f} is no unit quaternion: passed over")
        time = 1e-9 * (m.header.stamp.sec * 10**9 + m.header.stamp.nanosec)
        reading = self._imu_frame.to_root(
            frame, ImuReading(orientation / length, turning, force), time, self._q, self._v
        )
        turning, force = reading.angular_velocity, reading.linear_acceleration
        speed, pull = float(np.linalg.norm(turning)), float(np.linalg.norm(force))
        if self.soles and self._imu is None and pull < WEIGHTLESS:
            text = f"the first acceleration is {pull:.3g} m/s^2, a robot that stands feels 9.81"
            raise ConfigError(f"imu: {text}: is it in g, or without gravity? passed over")
        if speed > FASTEST_TURN or pull > HARDEST:
            raise ConfigError(f"imu: {speed:.3g} rad/s and {pull:.3g} m/s^2 are more than a body does: passed over")
        since = max(self._since(IMU, m), 0.0)
        if self._imu is not None and (leap := _leap(self._imu, reading, since)):
            stamp, count = m.header.stamp.sec * 10**9 + m.header.stamp.nanosec, 1
            if self._odd is not None and not _leap(self._odd[0], reading, max(1e-9 * (stamp - self._odd[1]), 0.0)):
                count += self._odd[2]
            self._odd = reading, stamp, count
            if count < BELIEVED:
                raise ConfigError(f"imu: {leap}: passed over")
            if _turn(self._imu, reading) > TURNED:
                self.elsewhere = leap
        if self.soles and (fault := self._balance.fault(reading, time)):
            raise ConfigError(f"imu: {fault} passed over")
        self._imu, self._odd = reading, None

    def _take_wrench(self, sole: str, m: WrenchStamped) -> None:
        frame, f, t = self._local_frame(m.header.frame_id), m.wrench.force, m.wrench.torque
        wrench = np.array([f.x, f.y, f.z, t.x, t.y, t.z])
        if not _possible(wrench).all():
            raise NotANumberError(f"wrench/{sole}: a value is not a number: passed over")
        wrench = self._frames.to_sole(sole, frame, wrench, self._q)
        before = self._wrenches.get(sole)
        told = wrench.any() or sole in self.carrying or self._same[sole] > FROZEN
        same = before is not None and told and np.array_equal(wrench, before)
        self._same[sole] = self._same[sole] + (np.abs(self._v).max() > MOVING) if same else 0
        self._wrenches[sole] = wrench

    def _since(self, key: str, m: Any) -> float:
        """Time between a message and the one before [s]."""
        return 1e-9 * (m.header.stamp.sec * 10**9 + m.header.stamp.nanosec - self._stamps.get(key, 0))

    # -- what is known ----------------------------------------------------------------------------------------------

    @property
    def instant(self) -> int | None:
        """The common stamp of the newest readings [ns]; None where they are of different times."""
        stamps = set(self._stamps.values())
        return stamps.pop() if len(stamps) == 1 and len(self._stamps) == len(self.silence) else None

    @property
    def joint_instant(self) -> int | None:
        """Stamp of the newest joint states [ns]."""
        return self._stamps.get(JOINTS)

    @property
    def missing(self) -> list[str]:
        """Sensors that were never heard."""
        out = [key for key in self.silence if key not in self._stamps]
        if JOINTS not in out and (unknown := np.flatnonzero(np.isnan(self._q))).size:
            out.append(f"{JOINTS} of {self.robot.joint_names[unknown[0]]}")
        return out

    def look(self, now: float, most: float, pace: float = 1.0) -> None:
        """Let the silences grow by the time since the last look, by `most` at the most [s].

        A process that did not run could not listen: that time counts for nothing.

        Args:
            pace: time of the sensors by that of the clock: what is slow to come is not silent.
        """
        passed = pace * min(now - self._looked, most)
        self._looked = now
        for key in self.silence:
            self.silence[key] += passed

    def quiet(self, limit: float) -> list[str]:
        """Sensors that were silent for longer than this [s]."""
        return [key for key, s in self.silence.items() if s > limit]

    def joints(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions (n,) [rad] and velocities (n,) [rad/s] as they were measured last."""
        return self._q, self._v

    def measurement(self) -> Measurement:
        """The newest readings; `missing` must be empty."""
        assert self._imu is not None
        joints = JointRecord(self.robot.joint_names, self._q.copy(), self._v.copy(), self._effort, self._stamp)
        return Measurement(joints, self._imu, dict(self._wrenches))

    @property
    def _stamp(self) -> float:
        return 1e-9 * self._stamps.get(JOINTS, 0)


def _turn(before: ImuReading, after: ImuReading) -> float:
    """Angle between the orientations of two readings [rad]."""
    return float(2 * np.arccos(min(1.0, abs(float(before.orientation @ after.orientation)))))


def _leap(before: ImuReading, after: ImuReading, since: float) -> str:
    """Words for a change between two readings that no body makes in a time [s]; empty: it is possible."""
    angle, speed = _turn(before, after), float(np.linalg.norm(after.angular_velocity))
    if angle - max(speed, float(np.linalg.norm(before.angular_velocity))) * since > TURNED:
        return f"the IMU is at once turned by {np.degrees(angle):.0f} deg"
    change = float(np.linalg.norm(after.angular_velocity - before.angular_velocity))
    if change > SUDDEN + ANGULAR * since:
        return f"the angular velocity changes at once by {change:.3g} rad/s"
    return ""


def _covariances(m: Imu) -> dict[str, np.ndarray]:
    """Covariances of what an IMU measures, by name."""
    return {
        "orientation": m.orientation_covariance,
        "angular velocity": m.angular_velocity_covariance,
        "linear acceleration": m.linear_acceleration_covariance,
    }


def _possible(values: np.ndarray) -> np.ndarray:
    """True where a reading is a number, and not one that no sensor gives."""
    return np.abs(values) < IMPOSSIBLE


class TickClock:
    """Decides which instants of the sensors get a tick, and when one is made without them.

    A tick stands for `dt` of the sensors' time. One is made for every instant that is due; where one does not come (its
    message was lost) a tick is made with what is known, and the instant that it stood for gets none later. Sensors of
    which some are slower than the ticks, or have stamps of their own, are taken as they are at all joint states.

    Attributes:
        held: ticks that were made without an instant of their own.
    """

    def __init__(self, dt: float) -> None:
        """Make it; dt: of the ticks [s]."""
        self.dt, self.held = dt, 0
        self.restart()

    def restart(self) -> None:
        """Begin with the next instant."""
        self._due: float | None = None  # [s] in the sensors' time
        self._instant: int | None = None
        self._common, self._gap, self._common_heard = 0, self.dt, -np.inf
        self._stamp, self._arrived = 0.0, 0.0  # of the newest instant [s]: its stamp, and when it came
        self._ticked, self._interval = 0.0, self.dt

    @property
    def pace(self) -> float:
        """Time of the sensors by that of the clock, at most 1."""
        return self.dt / self._interval

    def rest(self, now: float) -> None:
        """Time stands still: what has not come yet is not late [s]."""
        self._ticked = self._arrived = self._common_heard = now

    def choose(self, common: int | None, joints: int | None, now: float) -> int | None:
        """The instant that counts: one of all sensors where these keep pace with the ticks, else of the joints [ns].

        Args:
            common: newest stamp that all sensors have in common, joints: of the joint states [ns]; None: none yet.
            now: monotonic [s].
        """
        if common is not None and common != self._common:
            if self._common and (gap := 1e-9 * (common - self._common)) > 0:
                self._gap += (min(gap, 10 * self.dt) - self._gap) / SMOOTH
            self._common, self._common_heard = common, now
        slow = now - self._common_heard > APART or self._gap > SLOW * self.dt
        return joints if slow else (common if common is not None else self._instant)

    def newer(self, instant: int | None) -> bool:
        """True where an instant [ns] has had no tick yet."""
        return instant is not None and (self._instant is None or instant != self._instant)

    def step(self, instant: int | None, now: float) -> int:
        """How many ticks to make now: none, one, or those of instants that were lost, too, so that time goes on evenly.

        Args:
            instant: that counts [ns], or None. now: monotonic [s].
        """
        if instant is not None and (self._instant is None or instant > self._instant):
            return self._take(instant, now)
        if self._due is None or now - self._ticked <= PATIENCE * self._interval:
            return 0
        ahead = self._due - self._stamp > (AHEAD + 0.5) * self.dt
        if ahead and now - self._arrived < SILENT * self._interval:
            return 0  # more likely slow than lost
        self._ticked = max(self._ticked + self._interval, now - self._interval)  # no more than one is made up for
        self._due += self.dt
        self.held += 1
        return 1

    def jumped(self, instant: int | None, limit: float) -> bool:
        """True where the sensors' clock was set back, or went on by more than a limit [s].

        A common instant may be a little older than one of the joints alone.
        """
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
            between = min(max(now - self._arrived, 0.0) / periods, 10 * self.dt)
            self._interval = max(self._interval + (between - self._interval) / SMOOTH, self.dt)
        self._instant, self._stamp, self._arrived, self._ticked = instant, stamp, now, now
        late = stamp - self._due
        if late < -0.5 * self.dt:
            return 0
        lost = min(round(late / self.dt), MADE_UP)
        self.held += lost
        self._due = stamp + self.dt if lost else self._due + self.dt
        return 1 + lost


def rehearse(walker: Walker) -> None:
    """Run a few ticks at rest: what is compiled is loaded now, and not in the first tick."""
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
    """Name of a wrench's sensor, in reports."""
    return f"{WRENCHES}/{sole}"


def soles_without_force(walker: Walker, report: WalkReport, measured: Measurement) -> frozenset[str]:
    """Soles that feel nothing of a foot that stands alone, where the ground carries much less than the weight."""
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
    """The measurement with wrenches that the motion tells, in place of those of silent sensors.

    Args:
        walker: after the tick before this one, which told `report`. late: keys of sensors that are silent.
    """
    feet, estimator, ref = walker.feet, walker.estimator, report.references
    estimator.kinematics(measured.joints.q, measured.joints.v, measured.imu)
    silent = [any(wrench_key(sole.name) in late for sole in soles) for soles in feet.soles]
    heard = {s.name: measured.foot_wrenches[s.name] for k in (0, 1) if not silent[k] for s in feet.soles[k]}
    in_air = ref.swinging if ref.u < EXPECTED or all(silent) else None  # without any force: by the plan
    pressed = wrenches_of_motion(feet, estimator, heard, silent, in_air)
    return measured._replace(foot_wrenches=sensed_wrenches(feet, estimator.data, pressed) | heard)
