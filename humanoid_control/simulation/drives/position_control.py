"""Position-controlled joint drives: gains, commands and an implicitly integrated control law.

Torque limits and range stops make the law piecewise linear in the acceleration. A step finds the pieces that hold at
its end, so limits hold exactly.

The step minimises the convex function a^T M a / 2 + b^T a - sum of the integrals of the torques f_k by Newton's method
from the pieces of the last solution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.array_types import F1, F2, I1
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.robots.accelerations import ROTOR_PER_EFFORT
from humanoid_control.robots.drive_mechanisms import reflected_inertia
from humanoid_control.robots.robot import Robot

STOP_FREQUENCY = 1e5  # [rad/s] of a joint's inertia on its stop: rigid at every step size, yet far from round-off
SPEED_BAND = 0.02  # share of the speed limit over which the driving torque falls to zero


@dataclass(frozen=True)
class DriveGains:
    """Gains per joint: torque = kp (q_ref - q) + kd (v_ref - v), within effort and speed limits.

    Attributes:
        kp: (n,) [N m/rad].
        kd: (n,) [N m s/rad].
        rotor: (n,) at the joint [kg m^2].
        effort: (n,) limit [N m].
        stop: (n,) stiffness of mechanical stops [N m/rad]; 0: none.
    """

    kp: np.ndarray
    kd: np.ndarray
    rotor: np.ndarray
    effort: np.ndarray
    stop: np.ndarray


def default_gains(robot: Robot, stiffness: float = 60.0, damping_ratio: float = 1.0) -> DriveGains:
    """Return gains for unpublished drives: kp = stiffness * effort limit, kd for the neutral inertia.

    Rotor inertia is 1 g m^2 per N m of effort limit: a brushless motor with harmonic drive.
    """
    return _gains(robot, ROTOR_PER_EFFORT * robot.effort, stiffness, damping_ratio)


def driven_gains(robot: Robot, stiffness: float = 60.0, damping_ratio: float = 1.0) -> DriveGains:
    """Return `default_gains` with the rotor inertias of the drives file."""
    return _gains(robot, reflected_inertia(robot), stiffness, damping_ratio)


def _gains(robot: Robot, rotor: np.ndarray, stiffness: float, damping_ratio: float) -> DriveGains:
    M = pin.crba(robot.model, robot.model.createData(), robot.q("neutral"))
    kp = stiffness * robot.effort
    inertia = np.diag(M)[robot.iv :] + rotor
    kd = 2 * damping_ratio * np.sqrt(kp * inertia)
    return DriveGains(kp, kd, rotor, robot.effort.copy(), STOP_FREQUENCY**2 * inertia)


def speed_falls(robot: Robot, gains: DriveGains) -> np.ndarray:
    """Return the slope (n,) of the torque limit near the speed limit [N m s/rad], or 0."""
    known = np.isfinite(gains.effort) & np.isfinite(robot.velocity)
    band = SPEED_BAND * np.where(known, robot.velocity, 1.0)
    return np.where(known, gains.effort, 0.0) / band


# -------- Commands

POSITION, VELOCITY, EFFORT = 0, 1, 2


class ReferenceLimits(NamedTuple):
    """Limits of the references (n,).

    Attributes:
        lower: lower limit of the range [rad].
        upper: upper limit of the range [rad].
        lead: largest distance of a velocity drive's reference ahead of the joint [rad].
    """

    lower: np.ndarray
    upper: np.ndarray
    lead: np.ndarray


class DriveReferences(NamedTuple):
    """References (`DriveCommands`), limits and the present command.

    Attributes:
        speed: (n,) [rad/s].
        torque: (n,) [N m].
        given: (4, n) commanded positions, velocities, efforts (NaN: none), joint angles.
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
    """References of all drives, for every engine.

    All modes are one law, torque = kp (q_ref - q) + kd (v_ref - v) + effort, clipped at the effort limit:

    * position: `q_ref` continues at the commanded velocity for at most `coast`.
    * velocity: `q_ref` moves with `v_ref`; its lead is bounded by the effort limit.
    * effort: kp = kd = 0.

    Attributes:
        mode: (n,) POSITION, VELOCITY or EFFORT.
        q_ref: (n,) [rad].
        v_ref: (n,) [rad/s].
        effort: (n,) feed-forward [N m].
        limits: limits of the references.
        since: time of the last command [s].
        driven: (n,) 0 under effort command, else 1.
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
        """Hold a posture (n,) [rad] at rest."""
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
        """Apply a command (see `Engine.command`) at joint angles `joints` (n,) [rad]; NaN entries are ignored."""
        given = self._references.record.given
        for row, values in zip(given, (positions, velocities, efforts, joints), strict=True):
            row[:] = np.nan if values is None else values
        take_command(self._references.table)
        self.since = time

    def hold(self, which: np.ndarray, joints: np.ndarray) -> None:
        """Hold the masked joints at angles (n,) [rad]; others keep their commands."""
        self.mode[which], self.q_ref[which], self.v_ref[which] = POSITION, joints[which], 0.0
        self.effort[which], self.driven[which] = 0.0, 1.0

    def push(self, which: np.ndarray, torque: np.ndarray) -> None:
        """Apply torques (n,) [N m] alone to the masked joints; others keep their commands."""
        self.mode[which], self.v_ref[which], self.driven[which] = EFFORT, 0.0, 0.0
        self.effort[which] = torque[which]

    @property
    def moving(self) -> bool:
        return bool(self.v_ref.any())

    def advance(self, time: float, joints: np.ndarray, h: float) -> None:
        """Advance the references by h [s]."""
        silent = time - self.since >= self.coast
        advance_drive_references(self.mode, self.q_ref, self.v_ref, self.limits, joints, silent, h)


@kernel
def take_command(table: Table[DriveReferences]) -> None:
    """Apply `given`: per joint the first finite one of position, velocity, effort."""
    r = unpack(table, DriveReferences)
    for k in range(r.mode.shape[0]):
        q, v, tau, joint = r.given[0, k], r.given[1, k], r.given[2, k], r.given[3, k]
        was = r.mode[k]
        feed = min(max(tau, -r.torque[k]), r.torque[k]) if np.isfinite(tau) else 0.0
        # An infinite speed with a position means the speed limit.
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
    """Advance the references (n,) by h [s] in place.

    Args:
        joints: (n,) angles [rad].
        silent: the last command is older than `coast`.
    """
    lower, upper, lead = limits
    for k in range(mode.shape[0]):
        # End of coasting: position references stop; velocity references move until the next command.
        if silent and mode[k] != VELOCITY:
            v_ref[k] = 0.0
        if v_ref[k] != 0.0:
            q = min(max(q_ref[k] + h * v_ref[k], lower[k]), upper[k])
            if mode[k] == VELOCITY:
                # Anti-windup: a lead beyond effort / kp would not increase the torque.
                q = min(max(q, joints[k] - lead[k]), joints[k] + lead[k])
            q_ref[k] = q


# -------- Law


class DriveTable(NamedTuple):
    """Drives (n,): references (`DriveCommands`), gains (`DriveGains`), limits, scratch (8, n).

    Attributes:
        speed: limits [rad/s].
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
    """Pack the drives for kernels, which see later commands too; optionally without stops."""
    d, g, limits = commands, gains, commands.limits
    rows = [d.q_ref, d.v_ref, d.effort, d.driven, limits.lower, limits.upper, limits.lead, g.kp, g.kd, g.rotor]
    rows += [g.effort, g.stop if stops else np.zeros(robot.n), robot.velocity, speed_falls(robot, g)]
    arrays = [d.mode, *(np.require(row, float, ["C", "W"]) for row in rows), np.zeros((8, robot.n))]
    return Packed(DriveTable(*arrays))


LAW, LAW_GAIN, MOTOR, MOTOR_GAIN, STOP, STOP_GAIN, POINT, REACTION = range(8)  # rows of a `DriveTable`'s scratch
ROUND_OFF = 1e-11  # of a torque limit
SLACK = 1e-14  # [rad] of a stop
RECOVERY = 0.01  # [s] time constant of the return from beyond the range
TOGETHER, SLOWLY, LAST = range(3)  # rules for switching pieces
NEWTON_ROUNDS, MOST_ROUNDS = 4, 60  # solutions with TOGETHER, and before LAST


@kernel
def drive_terms(d: DriveTable, joints: F1, speed: F1, guess: F1, h: float, tau: F1, armature: F1) -> None:
    """Compute forces tau (n,) and added inertias armature (n,) of motors and stops for one implicit step h [s].

    With v+ = v + h a, the torque kp (q_ref - q - h v+) + kd (v_ref - v+) + effort is t - g a: t acts as a force, g as
    inertia. Limits and stops have the same form (`motor_piece`, `stop_piece`).

    Args:
        d: its scratch gets t and g of the law and of the pieces.
        joints: (n,) [rad].
        speed: (n,) [rad/s].
        guess: (n,) accelerations that select the first pieces.
    """
    s = d.scratch
    for k in range(joints.shape[0]):
        q, v = joints[k], speed[k]
        kp, kd = d.driven[k] * d.kp[k], d.driven[k] * d.kd[k]
        # t - g a with q+ = q + h v + h^2 a and v+ = v + h a.
        s[LAW, k] = kp * (d.q_ref[k] - q - h * v) + kd * (d.v_ref[k] - v) + d.effort[k]
        s[LAW_GAIN, k] = h * kd + h * h * kp
        s[MOTOR, k], s[MOTOR_GAIN, k] = motor_piece(d, k, v, guess[k], h)
        s[STOP, k], s[STOP_GAIN, k] = stop_piece(d, k, q, v, guess[k], h)
        tau[k] = s[MOTOR, k] + s[STOP, k]
        armature[k] = d.rotor[k] + s[MOTOR_GAIN, k] + s[STOP_GAIN, k]


@inlined
def motor_piece(d: DriveTable, k: int, v: float, a: float, h: float) -> tuple[float, float]:
    """Return t and g of the motor torque t - g a near an acceleration a: its law or the active limit.

    The driving torque falls from full at 98 % of the speed limit to zero at the limit; from 102 % the motor brakes
    fully.
    """
    t, g = d.scratch[LAW, k], d.scratch[LAW_GAIN, k]
    # w: speed at the end of the step; the speed limit is a line torque <= fall (limit - |w|).
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
    """Return t and g of the stop torque t - g a near an acceleration a.

    Stops push if the step would end beyond the range, take only the excess speed (no energy), and return a joint
    slowly.
    """
    stiffness, w = d.stop[k], v + h * a
    gap = d.lower[k] - q
    # gap - T w > 0: at this speed the joint would be beyond the lower end after T. From beyond (gap > 0) the stop
    # drives it back with the time constant T, not within one step, which would add energy.
    T = h if gap <= 0.0 else h + RECOVERY
    if stiffness * (gap - T * w) > 0.0:
        return stiffness * (gap - T * v), stiffness * T * h
    gap = d.upper[k] - q
    T = h if gap >= 0.0 else h + RECOVERY
    if stiffness * (gap - T * w) < 0.0:
        return stiffness * (gap - T * v), stiffness * T * h
    return 0.0, 0.0


@inlined
def switching_rule(rounds: int) -> int:
    """Return the switching rule after a number of solutions; usual are two or three.

    SLOWLY needs a last point with the same equations: contact is corrected in earlier rounds only.
    """
    return TOGETHER if rounds <= NEWTON_ROUNDS else SLOWLY if rounds <= MOST_ROUNDS else LAST


@kernel
def switch_drives(d: DriveTable, joints: F1, speed: F1, a: F1, h: float, tau: F1, armature: F1, way: int) -> bool:
    """Select the pieces at the accelerations a (n,) of a solution by rule `way`; True if one changes.

    TOGETHER: pieces at this solution (Newton). SLOWLY: pieces at the minimum between last point and solution. LAST:
    motors beyond limits get the limit, pulling stops release.
    """
    s, wrong, share = d.scratch, False, 1.0
    for k in range(joints.shape[0]):
        given, most = s[MOTOR, k] - s[MOTOR_GAIN, k] * a[k], d.torque_limit[k]
        t, g = motor_piece(d, k, speed[k], a[k], h)
        # A piece is wrong only if its torque differs: at a kink two pieces agree.
        wrong |= abs(given - (t - g * a[k])) > ROUND_OFF * most
        stopped = s[STOP, k] - s[STOP_GAIN, k] * a[k]
        t, g = stop_piece(d, k, joints[k], speed[k], a[k], h)
        wrong |= abs(stopped - (t - g * a[k])) > SLACK * d.stop[k]
    if not wrong:
        return False
    if way == SLOWLY:
        # Damped Newton: the point moves only as far as the convex function falls.
        share = _least_along(d, joints, speed, a, h)
    again = way != LAST
    for k in range(joints.shape[0]):
        given, most = s[MOTOR, k] - s[MOTOR_GAIN, k] * a[k], d.torque_limit[k]
        # Torque of the present pieces at the solution: M a + b there, since the equations hold with these pieces.
        reached = given + s[STOP, k] - s[STOP_GAIN, k] * a[k]
        if way == SLOWLY:
            s[POINT, k] += share * (a[k] - s[POINT, k])
            s[REACTION, k] += share * (reached - s[REACTION, k])
        else:
            s[POINT, k], s[REACTION, k] = a[k], reached
        if way != LAST:
            s[MOTOR, k], s[MOTOR_GAIN, k] = motor_piece(d, k, speed[k], s[POINT, k], h)
        # LAST moves pieces only toward limits and released stops, so it terminates.
        elif abs(given) > most * (1.0 + ROUND_OFF):
            s[MOTOR, k], s[MOTOR_GAIN, k], again = (most if given > 0.0 else -most), 0.0, True
        if switch_stop(d, k, joints[k], speed[k], s[POINT, k], h, way):
            again = True
        tau[k] = s[MOTOR, k] + s[STOP, k]
        armature[k] = d.rotor[k] + s[MOTOR_GAIN, k] + s[STOP_GAIN, k]
    return again


@inlined
def _least_along(d: DriveTable, joints: F1, speed: F1, a: F1, h: float) -> float:
    """Return the share (at most 1) of the way to a solution that minimises the convex function.

    Its slope increases, so regula falsi (Illinois) finds the zero.
    """
    low, high, at_low, at_high = 0.0, 1.0, _slope(d, joints, speed, a, h, 0.0), _slope(d, joints, speed, a, h, 1.0)
    if at_high <= 0.0:
        return 1.0
    # Illinois: an end that is kept twice has its value halved, or the secant would stagnate.
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
    """Return the slope of the convex function at a share of the way to the solution a (n,)."""
    s, slope = d.scratch, 0.0
    for k in range(joints.shape[0]):
        way = a[k] - s[POINT, k]
        reached = s[MOTOR, k] + s[STOP, k] - (s[MOTOR_GAIN, k] + s[STOP_GAIN, k]) * a[k]
        at = s[POINT, k] + share * way
        t, g = motor_piece(d, k, speed[k], at, h)
        stop, stop_gain = stop_piece(d, k, joints[k], speed[k], at, h)
        # dF/dshare = way^T (M a + b - f): M a + b is linear between both ends, f is evaluated at the point.
        slope += way * ((1.0 - share) * s[REACTION, k] + share * reached - (t + stop - (g + stop_gain) * at))
    return slope


@inlined
def switch_stop(d: DriveTable, k: int, q: float, v: float, a: float, h: float, way: int) -> bool:
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
    """Compute forces and inertias for one implicit step, with pieces from the last accelerations.

    Args:
        rows: (6, n) input: angles [rad], speeds [rad/s], accelerations [rad/s^2]; output: forces [N m], inertias [kg
            m^2].
    """
    d = unpack(drives, DriveTable)
    drive_terms(d, rows[JOINT], rows[SPEED], rows[ACCELERATION], h, rows[FORCE], rows[INERTIA])


@kernel
def switch_drive_step(drives: Table[DriveTable], rows: F2, h: float, way: int) -> bool:
    """Update forces and inertias at the accelerations of a solution.

    Returns:
        True if another solution is necessary; else the motor torques are final.
    """
    d, a = unpack(drives, DriveTable), rows[ACCELERATION]
    again = switch_drives(d, rows[JOINT], rows[SPEED], a, h, rows[FORCE], rows[INERTIA], way)
    for k in range(a.shape[0]):
        rows[TORQUE, k] = d.scratch[MOTOR, k] - d.scratch[MOTOR_GAIN, k] * a[k]
    return again
