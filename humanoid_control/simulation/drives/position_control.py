"""Position-controlled joint drives: their gains, their commands, and their law, integrated implicitly.

Implicit integration keeps stiff gains stable at a fixed step. A motor's limits and the stops at the ends of a joint's
range are parts of the law: it is piecewise linear in the acceleration, and a step finds the pieces that hold at its
end, so that no more acts, and no more is reported, than the limits allow.

Every piece falls with the acceleration, so what is looked for is the minimum of a convex function: with the inertia M
and the law's force f, of a^T M a / 2 + b^T a - sum of the integrals of f_k. Newton's method takes the pieces that hold
at the last solution; where it goes round in circles, each of its steps ends at the minimum along its line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.jit import inlined, kernel
from humanoid_control.numerics.array_types import F1, F2, I1
from humanoid_control.numerics.packed import Packed, Table, by_reference, unpack
from humanoid_control.robots.accelerations import ROTOR_PER_EFFORT
from humanoid_control.robots.drive_mechanisms import reflected_inertia
from humanoid_control.robots.robot import Robot

STOP_FREQUENCY = 1e5  # [rad/s] of a joint's inertia on its stop: rigid for every step, and far from round-off
SPEED_BAND = 0.02  # share of the speed limit over which the driving torque falls to nothing


@dataclass(frozen=True)
class DriveGains:
    """One drive a joint: torque = kp (q_ref - q) + kd (v_ref - v), within the limits of effort and of speed.

    Attributes:
        kp: (n,) [N m/rad].
        kd: (n,) [N m s/rad].
        rotor: (n,) rotor inertia seen at the joint [kg m^2].
        effort: (n,) torque limit [N m].
        stop: (n,) stiffness of the mechanical stops at the ends of the range [N m/rad]; 0: there are none.
    """

    kp: np.ndarray
    kd: np.ndarray
    rotor: np.ndarray
    effort: np.ndarray
    stop: np.ndarray


def default_gains(robot: Robot, stiffness: float = 60.0, damping_ratio: float = 1.0) -> DriveGains:
    """Gains for a robot whose drives are not published: one rule for all.

    `stiffness` is the proportional gain as a multiple of the effort limit, so a joint that carries a third of its
    effort limit sags by 0.3 degrees. Damping is set for the inertia that the joint moves in the neutral posture. The
    rotor inertia is 1 g m^2 for each N m of effort limit, the order of a brushless motor behind a harmonic drive.
    """
    return _gains(robot, ROTOR_PER_EFFORT * robot.effort, stiffness, damping_ratio)


def driven_gains(robot: Robot, stiffness: float = 60.0, damping_ratio: float = 1.0) -> DriveGains:
    """The same with the rotors of the robot's file of drives."""
    return _gains(robot, reflected_inertia(robot), stiffness, damping_ratio)


def _gains(robot: Robot, rotor: np.ndarray, stiffness: float, damping_ratio: float) -> DriveGains:
    M = pin.crba(robot.model, robot.model.createData(), robot.q("neutral"))
    kp = stiffness * robot.effort
    inertia = np.diag(M)[robot.iv :] + rotor
    kd = 2 * damping_ratio * np.sqrt(kp * inertia)
    return DriveGains(kp, kd, rotor, robot.effort.copy(), STOP_FREQUENCY**2 * inertia)


def speed_falls(robot: Robot, gains: DriveGains) -> np.ndarray:
    """Fall of the driving torque near the speed limit (n,) [N m s/rad]; 0 where torque or speed have no limit."""
    known = np.isfinite(gains.effort) & np.isfinite(robot.velocity)
    band = SPEED_BAND * np.where(known, robot.velocity, 1.0)
    return np.where(known, gains.effort, 0.0) / band


# -------- Commands

POSITION, VELOCITY, EFFORT = 0, 1, 2


class ReferenceLimits(NamedTuple):
    """Limits of the references of all drives (n,).

    Attributes:
        lower, upper: ranges of the joints [rad].
        lead: how far a velocity drive's reference may be ahead of the joint [rad].
    """

    lower: np.ndarray
    upper: np.ndarray
    lead: np.ndarray


class DriveReferences(NamedTuple):
    """References of drives (n,) as in `DriveCommands`, and the limits of what is commanded.

    Attributes:
        lower, upper: ranges [rad].
        speed: limits [rad/s].
        torque: limits [N m].
        given: (4, n) commanded positions, velocities, efforts, where each is given; and where the joints are.
    """

    mode: I1
    q_ref: F1
    v_ref: F1
    effort: F1
    driven: F1
    lower: F1
    upper: F1
    speed: F1
    torque: F1
    given: F2


class DriveCommands:
    """The references of all drives. One rule for every engine.

    All three kinds are one law, torque = kp (q_ref - q) + kd (v_ref - v) + effort, clipped at the effort limit:

    * position: `q_ref` is held; between commands it moves on with the commanded velocity, for at most `coast`.
    * velocity: `q_ref` moves on with `v_ref` until the next command, so the drive carries a load without
      falling behind; it never runs further ahead of the joint than the effort limit can pull.
    * effort: kp = kd = 0.

    The arrays stay in place, for kernels that keep them.

    Attributes:
        mode: (n,) POSITION, VELOCITY or EFFORT.
        q_ref [rad], v_ref [rad/s], effort [N m]: (n,) references and feed-forward.
        limits: of the references.
        since: time of the last command [s].
        driven: (n,) 1 where kp and kd act, 0 for joints under effort command.
    """

    def __init__(self, robot: Robot, gains: DriveGains, coast: float) -> None:
        self.robot, self.coast, self._limit = robot, coast, gains.effort
        with np.errstate(divide="ignore", invalid="ignore"):
            lead = np.where(gains.kp > 0, gains.effort / gains.kp, np.inf)
        self.limits = ReferenceLimits(robot.lower, robot.upper, lead)
        n = robot.n
        self.mode, self.q_ref, self.v_ref = np.full(n, POSITION), np.zeros(n), np.zeros(n)
        self.effort, self.driven = np.zeros(n), np.ones(n)
        rows = (robot.lower, robot.upper, robot.velocity, gains.effort)
        limits = [np.require(row, float, ["C", "W"]) for row in rows]
        arrays = [self.mode, self.q_ref, self.v_ref, self.effort, self.driven, *limits, np.zeros((4, n))]
        self._references = Packed(DriveReferences(*arrays))
        self.reset(robot.joints(robot.q()))

    def reset(self, joints: np.ndarray, time: float = 0.0) -> None:
        """Hold a posture (n,) [rad] at rest from now on."""
        self.mode[:], self.q_ref[:], self.v_ref[:], self.effort[:] = POSITION, joints, 0.0, 0.0
        self.driven[:], self.since = 1.0, time

    def set(
        self,
        time: float,
        joints: np.ndarray,
        positions: np.ndarray | None = None,
        velocities: np.ndarray | None = None,
        efforts: np.ndarray | None = None,
    ) -> None:
        """Take a command; see `Engine.command`.

        Args:
            time: now [s].
            joints: (n,) where they are [rad].
            positions, velocities, efforts: (n,) each or None; entries that are not numbers are not given.
        """
        given = self._references.record.given
        for row, values in zip(given, (positions, velocities, efforts, joints), strict=True):
            row[:] = np.nan if values is None else values
        take_command(self._references.table)
        self.since = time

    def hold(self, which: np.ndarray, joints: np.ndarray) -> None:
        """Hold those of the joints (n,) [rad] that `which` (n,) is true of at rest; the others keep their commands."""
        self.mode[which], self.q_ref[which], self.v_ref[which] = POSITION, joints[which], 0.0
        self.effort[which], self.driven[which] = 0.0, 1.0

    def push(self, which: np.ndarray, torque: np.ndarray) -> None:
        """Give joints, those that `which` (n,) is true of, a torque (n,) [N m] alone; others keep their commands."""
        self.mode[which], self.v_ref[which], self.driven[which] = EFFORT, 0.0, 0.0
        self.effort[which] = torque[which]

    @property
    def moving(self) -> bool:
        """True where a reference moves by itself."""
        return bool(self.v_ref.any())

    def advance(self, time: float, joints: np.ndarray, h: float) -> None:
        """Move the references on by a step of length h."""
        silent = time - self.since >= self.coast
        advance_drive_references(self.mode, self.q_ref, self.v_ref, self.limits, joints, silent, h)


@kernel
def take_command(table: Table[DriveReferences]) -> None:
    """Take the command `given` in packed References: of each joint the first that is a number."""
    r = unpack(table, DriveReferences)
    for k in range(r.mode.shape[0]):
        q, v, tau, joint = r.given[0, k], r.given[1, k], r.given[2, k], r.given[3, k]
        was = r.mode[k]
        feed = min(max(tau, -r.torque[k]), r.torque[k]) if np.isfinite(tau) else 0.0
        # An infinite speed together with a position stands for the limit.
        speed = 0.0 if np.isnan(v) else min(max(v, -r.speed[k]), r.speed[k])
        if np.isfinite(q):
            r.mode[k], r.q_ref[k], r.v_ref[k] = POSITION, min(max(q, r.lower[k]), r.upper[k]), speed
        elif np.isfinite(v):
            r.mode[k], r.v_ref[k] = VELOCITY, speed
            if was != VELOCITY:
                r.q_ref[k] = joint
        elif np.isfinite(tau):
            r.mode[k], r.v_ref[k] = EFFORT, 0.0
        else:
            if was == POSITION:
                r.v_ref[k] = 0.0
            continue
        r.effort[k] = feed
        r.driven[k] = 0.0 if r.mode[k] == EFFORT else 1.0


@kernel
def advance_drive_references(
    mode: I1, q_ref: F1, v_ref: F1, limits: ReferenceLimits, joints: F1, silent: bool, h: float
) -> None:
    """Move the references (n,) on by a step of length h, in place.

    Args:
        mode, q_ref, v_ref: see `DriveCommands`.
        limits: `ReferenceLimits`.
        joints: (n,) where they are [rad].
        silent: no command for longer than references of position drives coast.
    """
    lower, upper, lead = limits
    for k in range(mode.shape[0]):
        if silent and mode[k] != VELOCITY:
            v_ref[k] = 0.0
        if v_ref[k] != 0.0:
            q = min(max(q_ref[k] + h * v_ref[k], lower[k]), upper[k])
            if mode[k] == VELOCITY:
                q = min(max(q, joints[k] - lead[k]), joints[k] + lead[k])
            q_ref[k] = q


# -------- Law


@by_reference
class DriveTable(NamedTuple):
    """Drives (n,): references and limits as in `DriveCommands`, gains as in `DriveGains`, scratch rows (8, n).

    Attributes:
        speed: limits [rad/s].
        fall: of the driving torque near them [N m s/rad], 0: the speed has no limit.
    """

    mode: I1
    q_ref: F1
    v_ref: F1
    effort: F1
    driven: F1
    lower: F1
    upper: F1
    lead: F1
    kp: F1
    kd: F1
    rotor: F1
    torque_limit: F1
    stop: F1
    speed: F1
    fall: F1
    scratch: F2


def drive_table(robot: Robot, commands: DriveCommands, gains: DriveGains, stops: bool = True) -> Packed[DriveTable]:
    """The drives of a robot for kernels; they read the commands as they are then.

    Args:
        stops: False leaves the stops at the ends of the ranges to others.
    """
    d, g, limits = commands, gains, commands.limits
    rows = [d.q_ref, d.v_ref, d.effort, d.driven, limits.lower, limits.upper, limits.lead, g.kp, g.kd, g.rotor]
    rows += [g.effort, g.stop if stops else np.zeros(robot.n), robot.velocity, speed_falls(robot, g)]
    arrays = [d.mode, *(np.require(row, float, ["C", "W"]) for row in rows), np.zeros((8, robot.n))]
    return Packed(DriveTable(*arrays))


LAW, LAW_GAIN, MOTOR, MOTOR_GAIN, STOP, STOP_GAIN, POINT, REACTION = range(8)  # rows of a `DriveTable`'s scratch
ROUND_OFF = 1e-11  # of a torque limit
SLACK = 1e-14  # [rad] of a stop
RECOVERY = 0.01  # [s] in which a joint that is beyond its range comes back
TOGETHER, SLOWLY, LAST = range(3)  # ways to switch pieces
NEWTON_ROUNDS, MOST_ROUNDS = 4, 60  # solutions of a step with the first way, and until the last; see `way_of`


@kernel
def drive_terms(d: DriveTable, joints: F1, speed: F1, guess: F1, h: float, tau: F1, armature: F1) -> None:
    """Motors and mechanical stops for one implicit step: generalised forces, and inertia that stands for the rest.

    The motor's torque at the end of the step, kp (q_ref - q - h v+) + kd (v_ref - v+) + effort with v+ = v + h a, is
    t - g a; so the equations of motion are solved with t as a force and g added to the joint's inertia. Its limits
    are pieces of the same form, and so is a stop: see `motor_piece` and `stop_piece`.

    Args:
        d: `DriveTable`; its scratch is written: t and g of the law, of the motor's and of the stop's present piece.
        joints [rad], speed [rad/s]: (n,).
        guess: (n,) accelerations for which the pieces are chosen at first.
        h: length of the step [s].
        tau, armature: (n,) written.
    """
    s = d.scratch
    for k in range(joints.shape[0]):
        q, v = joints[k], speed[k]
        kp, kd = d.driven[k] * d.kp[k], d.driven[k] * d.kd[k]
        s[LAW, k] = kp * (d.q_ref[k] - q - h * v) + kd * (d.v_ref[k] - v) + d.effort[k]
        s[LAW_GAIN, k] = h * kd + h * h * kp
        s[MOTOR, k], s[MOTOR_GAIN, k] = motor_piece(d, k, v, guess[k], h)
        s[STOP, k], s[STOP_GAIN, k] = stop_piece(d, k, q, v, guess[k], h)
        tau[k] = s[MOTOR, k] + s[STOP, k]
        armature[k] = d.rotor[k] + s[MOTOR_GAIN, k] + s[STOP_GAIN, k]


@inlined
def motor_piece(d: DriveTable, k: int, v: float, a: float, h: float) -> tuple[float, float]:
    """The torque t - g a of a motor near an acceleration: its law, or the limit that cuts the law off.

    Toward its speed limit a motor gives all it can up to 98 % of it, and nothing at the limit; what is driven past it
    from outside is braked, at 102 % by all it can.

    Args:
        v: speed at the beginning of the step [rad/s].
        a: acceleration [rad/s^2].
    """
    t, g = d.scratch[LAW, k], d.scratch[LAW_GAIN, k]
    most, fall, w = d.torque_limit[k], d.fall[k], v + h * a
    law = t - g * a
    if fall > 0.0:
        side = 1.0 if w >= 0.0 else -1.0
        bound = fall * (d.speed[k] - side * w)
        if side * law > bound and bound < most:
            return (side * fall * (d.speed[k] - side * v), fall * h) if bound > -most else (-side * most, 0.0)
    if abs(law) <= most:
        return t, g
    return (most, 0.0) if law > 0.0 else (-most, 0.0)


@inlined
def stop_piece(d: DriveTable, k: int, q: float, v: float, a: float, h: float) -> tuple[float, float]:
    """The torque t - g a of the stops near an acceleration: it only pushes, and only where the step would end beyond.

    Inside the range it takes just the speed that would be too much, so that no energy comes of it; from beyond, where
    something stronger than the stop has brought the joint, it lets it return slowly.

    Args:
        q, v: at the beginning of the step [rad, rad/s].
        a: acceleration [rad/s^2].
    """
    stiffness, w = d.stop[k], v + h * a
    gap = d.lower[k] - q
    T = h if gap <= 0.0 else h + RECOVERY
    if stiffness * (gap - T * w) > 0.0:
        return stiffness * (gap - T * v), stiffness * T * h
    gap = d.upper[k] - q
    T = h if gap >= 0.0 else h + RECOVERY
    if stiffness * (gap - T * w) < 0.0:
        return stiffness * (gap - T * v), stiffness * T * h
    return 0.0, 0.0


@inlined
def way_of(rounds: int) -> int:
    """The way to switch after so many solutions of a step; two or three are usual under load.

    SLOWLY needs a last point whose equations were those of now: contact is corrected in earlier rounds only.
    """
    return TOGETHER if rounds <= NEWTON_ROUNDS else SLOWLY if rounds <= MOST_ROUNDS else LAST


@kernel
def switch_drives(d: DriveTable, joints: F1, speed: F1, a: F1, h: float, tau: F1, armature: F1, way: int) -> bool:
    """Pieces of all motors and stops at the accelerations that a solution gave; True where one has to change.

    TOGETHER, they are those that hold at this solution: Newton's method. SLOWLY, those that hold at the minimum
    between the last point and this solution, which ends after finitely many steps where all else is linear in the
    accelerations; MuJoCo's contact is not quite. Should it take too long, an end is made: motors beyond their limit
    give the limit, stops that would pull let go, and nothing is taken back.

    Args:
        d, joints, speed, h, tau, armature: as of `drive_terms`.
        a: (n,) accelerations [rad/s^2].
        way: see `way_of`.
    """
    s, wrong, share = d.scratch, False, 1.0
    for k in range(joints.shape[0]):
        given, most = s[MOTOR, k] - s[MOTOR_GAIN, k] * a[k], d.torque_limit[k]
        t, g = motor_piece(d, k, speed[k], a[k], h)
        wrong |= abs(given - (t - g * a[k])) > ROUND_OFF * most
        stopped = s[STOP, k] - s[STOP_GAIN, k] * a[k]
        t, g = stop_piece(d, k, joints[k], speed[k], a[k], h)
        wrong |= abs(stopped - (t - g * a[k])) > SLACK * d.stop[k]
    if not wrong:
        return False
    if way == SLOWLY:
        share = _least_along(d, joints, speed, a, h)
    again = way != LAST
    for k in range(joints.shape[0]):
        given, most = s[MOTOR, k] - s[MOTOR_GAIN, k] * a[k], d.torque_limit[k]
        reached = given + s[STOP, k] - s[STOP_GAIN, k] * a[k]
        if way == SLOWLY:
            s[POINT, k] += share * (a[k] - s[POINT, k])
            s[REACTION, k] += share * (reached - s[REACTION, k])
        else:
            s[POINT, k], s[REACTION, k] = a[k], reached
        if way != LAST:
            s[MOTOR, k], s[MOTOR_GAIN, k] = motor_piece(d, k, speed[k], s[POINT, k], h)
        elif abs(given) > most * (1.0 + ROUND_OFF):
            s[MOTOR, k], s[MOTOR_GAIN, k], again = (most if given > 0.0 else -most), 0.0, True
        if switch_stop(d, k, joints[k], speed[k], s[POINT, k], h, way):
            again = True
        tau[k] = s[MOTOR, k] + s[STOP, k]
        armature[k] = d.rotor[k] + s[MOTOR_GAIN, k] + s[STOP_GAIN, k]
    return again


@inlined
def _least_along(d: DriveTable, joints: F1, speed: F1, a: F1, h: float) -> float:
    """The share of the way from the last point to a solution at which the convex function is least, 1 at most.

    Its slope there is that of M a + b, a line between the drives' forces at both ends, less that of the forces at the
    point itself. It grows, so that its zero is found by regula falsi (Illinois).
    """
    low, high, at_low, at_high = 0.0, 1.0, _slope(d, joints, speed, a, h, 0.0), _slope(d, joints, speed, a, h, 1.0)
    if at_high <= 0.0:
        return 1.0
    enough, side = 1e-9 * abs(at_low), 0
    for _ in range(60):
        middle = high - at_high * (high - low) / (at_high - at_low) if at_low < 0.0 else 0.5 * (low + high)
        there = _slope(d, joints, speed, a, h, middle)
        if abs(there) <= enough:
            return middle
        if there > 0.0:
            high, at_high = middle, there
            at_low, side = (0.5 * at_low if side == 1 else at_low), 1
        else:
            low, at_low = middle, there
            at_high, side = (0.5 * at_high if side == -1 else at_high), -1
    return high


@inlined
def _slope(d: DriveTable, joints: F1, speed: F1, a: F1, h: float, share: float) -> float:
    """Slope of the convex function along the way from the last point to the solution a (n,), at a share of it."""
    s, slope = d.scratch, 0.0
    for k in range(joints.shape[0]):
        way = a[k] - s[POINT, k]
        reached = s[MOTOR, k] + s[STOP, k] - (s[MOTOR_GAIN, k] + s[STOP_GAIN, k]) * a[k]
        at = s[POINT, k] + share * way
        t, g = motor_piece(d, k, speed[k], at, h)
        stop, stop_gain = stop_piece(d, k, joints[k], speed[k], at, h)
        slope += way * ((1.0 - share) * s[REACTION, k] + share * reached - (t + stop - (g + stop_gain) * at))
    return slope


@inlined
def switch_stop(d: DriveTable, k: int, q: float, v: float, a: float, h: float, way: int) -> bool:
    """Take the piece of a joint's stops that holds at an acceleration; True where it is another."""
    s = d.scratch
    t, g = stop_piece(d, k, q, v, a, h)
    wrong = abs(s[STOP, k] - s[STOP_GAIN, k] * a - (t - g * a)) > SLACK * d.stop[k]
    if wrong and (g == 0.0 or way != LAST):
        s[STOP, k], s[STOP_GAIN, k] = t, g
        return True
    return False


# -------- For an engine that is not compiled with them

JOINT, SPEED, ACCELERATION, FORCE, INERTIA, TORQUE = range(6)  # rows of a step


@kernel
def begin_drive_step(drives: Table[DriveTable], rows: F2, h: float) -> None:
    """Forces and inertias of all drives for one implicit step, at the pieces that the last accelerations let expect.

    Args:
        drives: a packed `DriveTable`.
        h: length of the step [s].
        rows: (6, n) angles [rad], speeds [rad/s] and last accelerations [rad/s^2] of the joints; written: generalised
            forces [N m] and inertias [kg m^2]; not used here: torques of the motors [N m].
    """
    d = unpack(drives, DriveTable)
    drive_terms(d, rows[JOINT], rows[SPEED], rows[ACCELERATION], h, rows[FORCE], rows[INERTIA])


@kernel
def switch_drive_step(drives: Table[DriveTable], rows: F2, h: float, way: int) -> bool:
    """The same at the accelerations that a solution with these gave; see `switch_drives`.

    Returns:
        True where forces and inertias are others now, for another solution; else the torques of the motors are right.
    """
    d, a = unpack(drives, DriveTable), rows[ACCELERATION]
    again = switch_drives(d, rows[JOINT], rows[SPEED], a, h, rows[FORCE], rows[INERTIA], way)
    for k in range(a.shape[0]):
        rows[TORQUE, k] = d.scratch[MOTOR, k] - d.scratch[MOTOR_GAIN, k] * a[k]
    return again
