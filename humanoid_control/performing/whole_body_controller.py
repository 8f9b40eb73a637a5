"""Whole-body torque controller of a feasible motion: inverse dynamics as a quadratic program at 500 Hz.

Unknowns: joint accelerations and forces at standing corners. Base accelerations follow from the equations of motion.
Tasks are weighted least squares:

    minimise  sum_i w_i |J_i v' + J_i' v - a_i|^2 + eps_f |f|^2 + eps_v |v'|^2
    subject to  f within friction cones, |M_a v' + h_a - J_a' f| <= torque limits, joints within ranges and speeds,
                shapes of the robot apart (`ik/limits/acceleration_limits.py`)

Forces are non-negative combinations of cone edges; torque limits are soft. The centre of mass follows the law of the
divergent component of motion.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from humanoid_control.errors import ClipError
from humanoid_control.estimation.floating_base import BaseEstimate, FloatingBaseEstimator
from humanoid_control.ik.limits.acceleration_limits import AccelerationLimits
from humanoid_control.kinematics.joint_state import Measurement
from humanoid_control.numerics.box_program import Guess
from humanoid_control.numerics.box_qp import BoxQp, solve_box_qp_from
from humanoid_control.performing.clip_dynamics import friction_cone
from humanoid_control.performing.dynamic_motion import DynamicMotion
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.robots import Robot
from humanoid_control.robots.accelerations import ROTOR_PER_EFFORT
from humanoid_control.robots.joint_groups import JointGroups
from humanoid_control.simulation import Engine
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.gait import GRAVITY

ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
UNIT = 100.0  # [N] per unit of a cone-edge share: scales the program
SWING, STAND, LATE = range(3)  # states of a foot


@dataclass(frozen=True)
class ControllerSettings:
    """Settings of the controller, common to all robots. No parameter of the node or the command changes the weights.

    Attributes:
        dt: tick [s].
        friction: coefficient that contact forces may use.
        dcm_gain: k of the divergent component [1/s].
        standing: weight of the acceleration of a standing sole.
        swinging: weight of the acceleration of a swinging foot.
        turning: weight of its angular acceleration.
        center: weight of the horizontal acceleration of the centre of mass.
        height: weight of its vertical acceleration.
        momentum: weight of the rate of angular momentum.
        root: weight of the angular acceleration of the root.
        joints: weight of joint accelerations, except legs.
        legs: weight of leg joint accelerations.
        acceleration: price of joint accelerations.
        force: price of contact forces [1/N^2].
        torque: price of a squared torque beyond its limit.
        touch: load ramp after touch-down [s].
        lift: load ramp before lift-off [s].
        early: share of a swing after which a load is a landing.
        felt: share of the weight that is a contact.
        reach_speed: downward speed of a late foot [m/s].
        reach: largest depth of a late foot [m].
        wait: longest stop of the motion's clock [s].
        shift: time constant of the plan's offset [s].
        margin: between the robot's shapes [m].
        activation: distance of active pairs [m]; 0: none.
        limit_rate: return to ranges and distances [1/s].
    """

    dt: float = 0.002
    friction: float = 0.6
    dcm_gain: float = 4.0
    standing: float = 200.0
    swinging: float = 20.0
    turning: float = 0.4  # low: an ankle at the end of its range would otherwise move the trunk
    center: float = 20.0
    height: float = 5.0
    momentum: float = 0.02
    root: float = 4.0
    joints: float = 0.5
    legs: float = 0.02
    force: float = 2e-6
    acceleration: float = 1e-4
    torque: float = 1.0
    touch: float = 0.03
    lift: float = 0.05
    early: float = 0.6
    felt: float = 0.06
    reach_speed: float = 0.3
    reach: float = 0.06
    wait: float = 0.3
    shift: float = 0.08
    margin: float = 0.005
    activation: float = 0.05
    limit_rate: float = 30.0


class Reference(NamedTuple):
    """Motion at one time: frame, share of the next, and the motion."""

    frame: int
    share: float
    motion: DynamicMotion

    def at(self, values: np.ndarray) -> np.ndarray:
        """Interpolate values (T, ...)."""
        return np.asarray((1 - self.share) * values[self.frame] + self.share * values[self.frame + 1])

    def rotation(self, values: np.ndarray) -> np.ndarray:
        """Interpolate rotations (T, 3, 3)."""
        a, b = values[self.frame], values[self.frame + 1]
        return np.asarray(a @ pin.exp3(self.share * pin.log3(a.T @ b)))


@dataclass
class _Foot:
    """State of a foot."""

    state: int = STAND
    since: float = 1.0
    down: float = 0.0


class _Corner(NamedTuple):
    """Loaded sole corner: foot, number, Jacobian (3, nv), largest normal force [N]."""

    foot: int
    corner: int
    J: np.ndarray
    most: float


class WholeBodyController:
    """Performer that tracks a feasible motion by torques, with the robot's own sensors.

    Attributes:
        clock: time of the motion [s].
        failed: programs without solution.
        dcm_error: along world x and y (2,) [m].
        torque: (n,) [N m].
        acceleration: (n,) [rad/s^2].
        forces: planned on sole corners, in the world (2, 4, 3) [N].
        felt: wrenches of `Feet.wrenches` (2, 6).
        estimate: None before the first tick.
        dt: between the last ticks [s].
    """

    def __init__(
        self,
        robot: Robot,
        motion: DynamicMotion,
        settings: ControllerSettings | None = None,
        read: Callable[[], Measurement | None] | None = None,
    ) -> None:
        """Set up.

        Args:
            robot: floating base.
            read: sensors; default: the engine's, without errors.

        Raises:
            ClipError: if the motion belongs to another robot.
        """
        if tuple(robot.joint_names) != motion.joint_names:
            raise ClipError(f"the motion of {motion.robot} does not belong to {robot.name}")
        self.robot, self.motion, self.settings, self.read = robot, motion, settings or ControllerSettings(), read
        self.soles, self.feet_of = RigidSoles.of(robot), Feet(robot)
        self.data, self.estimator = robot.model.createData(), FloatingBaseEstimator(robot, self.feet_of.frames)
        self.rotor = ROTOR_PER_EFFORT * robot.effort
        self.limits = np.where(robot.effort_known & (robot.effort > 0), robot.effort, np.inf)
        legs = JointGroups.of(robot).legs
        self.weights = np.full(robot.n, self.settings.joints)
        self.weights[legs] = self.settings.legs
        self.cone, self.weight = friction_cone(self.settings.friction), robot.mass * GRAVITY
        own = self.settings
        self.keep = AccelerationLimits(robot, own.limit_rate, own.margin, own.activation)
        self._toes = np.array([self._toe_edge(robot, f) for f in (0, 1)])
        self.follow(motion)
        self._begin()

    def follow(self, motion: DynamicMotion, time: float = 0.0) -> None:
        """Track another motion from `time` [s]; robot and feet keep their state."""
        self.motion, self.clock = motion, time
        self.omega = float(np.sqrt(GRAVITY / np.median(motion.center[:, 2])))
        self._root = Rotation.from_quat(motion.q[:, 3:7]).as_matrix()

    @property
    def finished(self) -> bool:
        """True at the end of the motion; the last posture is held."""
        return self.clock * self.motion.rate >= len(self.motion) - 1

    def _toe_edge(self, robot: Robot, f: int) -> np.ndarray:
        """Return the middle of a toe edge in the sole frame (3,) [m]."""
        edge = self.soles.X_joint_sole[f].act(np.array([self.soles.toe[f], 0.0, 0.0]))
        return np.asarray(robot.model.frames[self.feet_of.frames[f]].placement.actInv(edge))

    def _begin(self) -> None:
        self.clock, self.waited, self.offset, self.dt = 0.0, 0.0, np.zeros(2), self.settings.dt
        self.estimate: BaseEstimate | None = None
        self.forces, self.felt = np.zeros((2, 4, 3)), np.zeros((2, 6))
        self.feet = (_Foot(), _Foot())
        self.early = self.late = self.failed = 0
        self.dcm_error, self.torque = np.zeros(2), np.zeros(self.robot.n)
        self.acceleration = np.zeros(self.robot.n)
        self._guess = Guess.nothing(0, 0)
        self._errors, self._times = list[np.ndarray](), list[float]()

    def start(self, engine: Engine) -> None:
        """See `Performer.start`; resets the estimator to the standing soles."""
        self.begin(self.motion.q[0])

    def begin(self, q: np.ndarray) -> None:
        """Restart with a robot that stands on both soles at q (nq,)."""
        self._begin()
        pin.framesForwardKinematics(self.robot.model, self.data, q)
        self.estimator.reset([self.data.oMf[f].translation.copy() for f in self.feet_of.frames])

    def tick(self, t: float, engine: Engine) -> None:
        """See `Performer.tick`."""
        measured = engine.read() if self.read is None else self.read()
        if measured is None:
            return
        begin = time.process_time()
        torque = self.step(measured)
        self._errors.append(self.dcm_error)
        self._times.append(time.process_time() - begin)
        engine.command(None, None, torque)

    def numbers(self) -> dict[str, Any]:
        """See `Performer.numbers`: DCM error, contacts, processor time of a tick."""
        errors, times = np.array(self._errors or [np.zeros(2)]), np.array(self._times or [0.0])
        rms = 1000 * np.sqrt(np.mean(errors**2, axis=0))
        return {
            "dcm_error_mm": [round(float(x), 1) for x in rms],
            "early": self.early,
            "late": self.late,
            "failed_programs": self.failed,
            "tick_ms": round(1000 * float(np.median(times)), 2),
            "tick_p99_ms": round(1000 * float(np.percentile(times, 99)), 2),
        }

    # -- a tick -----------------------------------------------------------------------------------------------------

    def step(self, measured: Measurement, dt: float = 0.0) -> np.ndarray:
        """Return torques (n,) [N m] for a reading.

        Args:
            measured: finite.
            dt: since the last reading [s]; 0: a tick.
        """
        s, r = self.settings, self.robot
        self.dt = dt or s.dt
        self.estimator.kinematics(measured.joints.q, measured.joints.v, measured.imu)
        self.felt = self.feet_of.wrenches(self.estimator.data, measured.foot_wrenches)
        felt = self.felt[:, 2]
        ref = self._now()
        self._contacts(ref, felt / self.weight)
        may = [foot.state == STAND for foot in self.feet]
        # a foot rolling over its toe edge is fixed at this edge only
        rolls = ref.motion.toe_only[ref.frame][:, None]
        self.estimator.stand_on(np.where(rolls, self._toes, 0.0))
        estimate = self.estimate = self.estimator.update(felt, may, self.dt, (0.0, 0.0))
        torque = self._solve(ref, estimate.q, estimate.v)
        if torque is not None:
            self.torque = np.clip(torque, -self.limits, self.limits)
        else:
            self.failed += 1
        late = any(foot.state == LATE for foot in self.feet)
        leaving = ref.motion.stands[min(ref.frame + round(0.03 * self.motion.rate), len(self.motion) - 1)]
        if late and self.waited < s.wait and not all(leaving):
            self.waited += self.dt
        else:
            self.clock += self.dt
            self.waited = self.waited if late else 0.0
        assert self.torque.shape == (r.n,)
        return self.torque

    def _now(self) -> Reference:
        at = min(self.clock * self.motion.rate, len(self.motion) - 1.001)
        return Reference(int(at), at - int(at), self.motion)

    def _contacts(self, ref: Reference, load: np.ndarray) -> None:
        """Update foot states from plan and loads (2,), shares of the weight."""
        s, k = self.settings, ref.frame
        for f, foot in enumerate(self.feet):
            foot.since += self.dt
            planned = bool(self.motion.stands[k, f])
            state = foot.state
            if planned and state == SWING:
                state = STAND if load[f] > s.felt else LATE
                self.late += state == LATE
            elif state == LATE and load[f] > s.felt:
                state = STAND
            elif not planned and state == SWING:
                if load[f] > s.felt and self._swing_share(f, k) > s.early:
                    state, self.early = STAND, self.early + 1
            elif not planned and state != SWING and self._swing_share(f, k) < s.early:
                state = SWING
            if state == LATE:
                foot.down = min(foot.down + s.reach_speed * self.dt, s.reach)
            if state != foot.state:
                foot.since = 0.0
                foot.down = foot.down if state == LATE else 0.0
            foot.state = state

    def _swing_share(self, f: int, k: int) -> float:
        """Return the elapsed share of a swing; 0 in stance."""
        stands = self.motion.stands[:, f]
        if stands[k]:
            return 0.0
        before = np.flatnonzero(stands[:k])[-1] if stands[:k].any() else 0
        after = k + int(np.argmax(stands[k:])) if stands[k:].any() else len(stands)
        return float((k - before) / max(after - before, 1))

    def _most_force(self, f: int, k: int) -> float:
        """Return the ramped limit of a corner's normal force [N]."""
        s, stands = self.settings, self.motion.stands[:, f]
        ahead = stands[k : k + max(1, round(s.lift * self.motion.rate))]
        left = 1.0 if ahead.all() or not stands[k] else float(np.argmin(ahead)) / len(ahead)
        return 1.2 * self.weight * max(0.05, min(left, foot_share(self.feet[f].since, s.touch)))

    def _solve(self, ref: Reference, q: np.ndarray, v: np.ndarray) -> np.ndarray | None:
        s, r, model, data = self.settings, self.robot, self.robot.model, self.data
        zero = np.zeros(r.nv)
        # with v' = 0 the time variation of momentum is its drift, Ag' v
        pin.computeCentroidalMomentumTimeVariation(model, data, q, v, zero)
        drift_L, L = data.dhg.angular.copy(), data.hg.angular.copy()
        c, vc, drift_c = data.com[0].copy(), data.hg.linear / r.mass, data.dhg.linear / r.mass
        pin.ccrba(model, data, q, v)
        Ag = data.Ag.copy()
        M, h = pin.crba(model, data, q).copy(), pin.nonLinearEffects(model, data, q, v).copy()
        # reflected rotor inertia of the drives
        M[6:, 6:] += np.diag(self.rotor)
        pin.forwardKinematics(model, data, q, v, zero)
        pin.computeJointJacobians(model, data, q)
        rows, wanted, price, contacts = [], [], [], []
        k = ref.frame
        places, loads = np.zeros(2), 1e-9
        for f, foot in enumerate(self.feet):
            X = data.oMi[self.soles.joints[f]] * self.soles.X_joint_sole[f]
            J, drift, twist = self._sole_rows(f, X)
            toe = bool(self.motion.toe_only[k, f]) and foot.state == STAND
            if foot.state == STAND:
                own = np.arange(2 if toe else 0, 4)
                most = self._most_force(f, k)
                contacts += [_Corner(f, i, self._corner_rows(f, i, X), most) for i in own.tolist()]
                share = max(foot_share(foot.since, 0.1), 1e-3)
                places += share * (X.translation - ref.at(self.motion.sole_position)[f])[:2] * (0.0 if toe else 1.0)
                loads += share * (0.0 if toe else 1.0)
            e_R = X.rotation @ pin.log3(X.rotation.T @ ref.rotation(self.motion.sole_rotation[:, f]))
            twist_ref, acc_ref = ref.at(self.motion.sole_twist)[f], ref.at(self.motion.sole_acceleration)[f]
            # a flat sole must not move: damped to rest, without position feedback
            if foot.state == STAND and not toe:
                rows.append(J)
                wanted.append(-30.0 * twist - drift)
                price.append(np.full(6, s.standing))
            # toe corners 2 and 3 are fixed, while the rotation follows the plan
            elif toe:
                for i in (2, 3):
                    arm = X.rotation @ self.soles.corners[f, i]
                    turn, turned = pin.skew(twist[3:]), pin.skew(twist[3:]) @ arm
                    speed = twist[:3] + turned
                    bias = drift[:3] + pin.skew(drift[3:]) @ arm + turn @ turned
                    rows.append(J[:3] - pin.skew(arm) @ J[3:])
                    wanted.append(-30.0 * speed - bias)
                    price.append(np.full(3, s.standing))
                rows.append(J[3:])
                wanted.append(acc_ref[3:] + 200.0 * e_R + 28.0 * (twist_ref[3:] - twist[3:]) - drift[3:])
                price.append(np.full(3, 1.0))
            else:
                place = ref.at(self.motion.sole_position)[f] - [0.0, 0.0, foot.down]
                e = np.concatenate([place - X.translation, e_R])
                rows.append(J)
                wanted.append(acc_ref + 500.0 * e + 42.0 * (twist_ref - twist) - drift)
                price.append(np.repeat([s.swinging, s.turning], 3))
        if loads > 1e-6:
            # the plan follows the standing soles: their distance from the plan becomes its offset in the world
            self.offset += (1 - np.exp(-self.dt / s.shift)) * (places / loads - self.offset)
        # centre of mass: DCM law horizontally, a spring in height; then momentum and root
        dc = c - ref.at(self.motion.center)
        dc[:2] -= self.offset
        dv = vc - ref.at(self.motion.center_velocity)
        a_c = ref.at(self.motion.center_acceleration)
        self.dcm_error = dc[:2] + dv[:2] / self.omega
        w, gain = self.omega, s.dcm_gain
        # c'' = a_ref - w k dc - (w + k) dv makes the DCM error decay at rate k
        a_c[:2] -= w * gain * dc[:2] + (w + gain) * dv[:2]
        a_c[2] -= 80.0 * dc[2] + 16.0 * dv[2]
        rows.append(Ag[:3] / r.mass)
        wanted.append(a_c - drift_c)
        price.append(np.array([s.center, s.center, s.height]))
        rows.append(Ag[3:])
        wanted.append(ref.at(self.motion.momentum_rate) + 5.0 * (ref.at(self.motion.momentum) - L) - drift_L)
        price.append(np.full(3, s.momentum))
        R = data.oMi[1].rotation
        e_R = pin.log3(R.T @ ref.rotation(self._root))
        turn = np.zeros((3, r.nv))
        turn[:, 3:6] = np.eye(3)
        rows.append(turn)
        v_ref, a_ref = ref.at(self.motion.v), ref.at(self.motion.a)
        wanted.append(a_ref[3:6] + 150.0 * e_R + 24.0 * (v_ref[3:6] - v[3:6]))
        price.append(np.full(3, s.root))
        e_q, e_v = ref.at(self.motion.q)[7:] - q[7:], v_ref[6:] - v[6:]
        joints = a_ref[6:] + 120.0 * e_q + 20.0 * e_v
        tasks = (np.vstack(rows), np.concatenate(wanted), np.concatenate(price))
        return self._program((M, h), tasks, joints, contacts, (q, v))

    def _sole_rows(self, f: int, X: pin.SE3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Jacobian (6, nv), drift J' v (6,), twist (6,) of a sole, in world axes."""
        model, data, joint = self.robot.model, self.data, self.soles.joints[f]
        J = pin.getJointJacobian(model, data, joint, ALIGNED)
        v, a = pin.getVelocity(model, data, joint, ALIGNED), pin.getClassicalAcceleration(model, data, joint, ALIGNED)
        arm = X.translation - data.oMi[joint].translation
        J = J.copy()
        J[:3] -= pin.skew(arm) @ J[3:]
        turn, turned = pin.skew(v.angular), pin.skew(v.angular) @ arm
        twist = np.concatenate([v.linear + turned, v.angular])
        drift = np.concatenate([a.linear + pin.skew(a.angular) @ arm + turn @ turned, a.angular])
        return J, drift, twist

    def _corner_rows(self, f: int, i: int, X: pin.SE3) -> np.ndarray:
        """Return the Jacobian (3, nv) of a sole corner on its carrying link, in world axes."""
        joint = int(self.soles.carriers[f, i])
        J = pin.getJointJacobian(self.robot.model, self.data, joint, ALIGNED)
        arm = X.act(self.soles.corners[f, i]) - self.data.oMi[joint].translation
        return np.asarray(J[:3] - pin.skew(arm) @ J[3:])

    def _program(
        self, dynamics: tuple, tasks: tuple, joints: np.ndarray, contacts: list[_Corner], state: tuple
    ) -> np.ndarray | None:
        """Solve the program; return torques (n,)."""
        s, n, (M, h), (q, v) = self.settings, self.robot.n, dynamics, state
        G, most = [], []  # generalised forces (nv,) of each edge of each cone
        for corner in contacts:
            G.append(corner.J.T @ self.cone)
            most.append(np.full(4, corner.most / UNIT))
        edges = UNIT * np.hstack(G) if G else np.zeros((len(M), 0))
        m = edges.shape[1]
        # v' = T y + t eliminates the base by its equations of motion
        T, t = np.zeros((len(M), n + m)), np.zeros(len(M))
        base = np.linalg.inv(M[:6, :6])
        T[:6, :n], T[:6, n:], t[:6] = -base @ M[:6, 6:], base @ edges[:6], -base @ h[:6]
        T[6:, :n] = np.eye(n)
        R, wanted, price = tasks
        B = R @ T
        off = wanted - R @ t
        H = B.T @ (price[:, None] * B)
        g = -B.T @ (price * off)
        own = self.weights + s.acceleration
        H[np.arange(n), np.arange(n)] += own
        g[:n] -= self.weights * joints
        if m:
            square = UNIT**2 * s.force * (self.cone.T @ self.cone)
            for k in range(0, m, 4):
                H[n + k : n + k + 4, n + k : n + k + 4] += square + 1e-9 * np.eye(4)
        least, largest = self.keep.joints(q[7:], v[6:])
        low, high = np.concatenate([least, np.zeros(m)]), np.concatenate([largest, *most])
        A = M[6:] @ T
        A[:, n:] -= edges[6:]
        tau = M[6:] @ t + h[6:]
        known = np.isfinite(self.limits)
        # rows in units of each limit, so that one price fits all joints
        scale = 1.0 / self.limits[known]
        apart = self.keep.distances(self.data, q, v)
        rows = np.vstack([A[known] * scale[:, None], -A[known] * scale[:, None], apart.J @ T])
        b = np.concatenate([-1.0 - tau[known] * scale, tau[known] * scale - 1.0, apart.least - apart.J @ t])
        x, multipliers = np.empty(n + m), np.empty(n + m + len(rows))
        program = BoxQp(np.ascontiguousarray(H), g, low, high, np.ascontiguousarray(rows), b)
        if self._guess.side.shape != x.shape or self._guess.works.shape != b.shape:
            self._guess = Guess.nothing(n + m, len(rows))
        used = solve_box_qp_from(program, len(rows), s.torque * 1e6, x, multipliers, self._guess)
        if used < 0 or not np.isfinite(x).all():
            return None
        self.forces[:], self.acceleration = 0.0, x[:n].copy()
        for k, corner in enumerate(contacts):
            self.forces[corner.foot, corner.corner] = UNIT * self.cone @ x[n + 4 * k : n + 4 * k + 4]
        return A @ x + tau


def foot_share(since: float, time: float) -> float:
    """Return the load share of a foot at a time after touch-down [s]."""
    return min(1.0, since / time)
