"""Feasibility pass: a retargeted motion becomes one that contacts and drives can carry.

    contact plan -> footholds within reach -> paths of the soles
        -> [ program of the centre of mass -> whole-body inverse kinematics -> momentum, torques ], a few passes
        -> forces and torques

Between passes a dial eases the posture near torque limits. Where that is insufficient, the pelvis turns too fast, a
flight was filled or a step lacks time, the clip is slowed down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from scipy.ndimage import maximum_filter1d, minimum_filter1d

from humanoid_control.errors import ClipError
from humanoid_control.performing import turning_moment
from humanoid_control.performing.center_program import CenterMotion, CenterProgram, CenterReference, free_motion
from humanoid_control.performing.clip_dynamics import Loads, center_and_momentum, loads_of, torque_limits, velocities
from humanoid_control.performing.clip_ik import ClipIk
from humanoid_control.performing.contact_plan import Change, ContactPlan
from humanoid_control.performing.dynamic_motion import DynamicMotion
from humanoid_control.performing.foot_paths import SolePaths
from humanoid_control.performing.footholds import reachable_footholds, way_kept
from humanoid_control.performing.local_pace import PACE_STEP, pace_for_speed, pace_for_torque, slowed, yaw_rate
from humanoid_control.performing.settings import FeasibilitySettings
from humanoid_control.performing.source_motion import (
    SourceMotion,
    continuous_quaternions,
    quaternion_product,
    rotations_z,
    smoothed,
    wrapped,
    yaw_of,
)
from humanoid_control.retargeting import WholeBodyTrajectory
from humanoid_control.retargeting.problem import Followed, imitation_points
from humanoid_control.robots import Robot
from humanoid_control.walking.gait import GRAVITY

HEADING_CUTOFF, PLACE_CUTOFF = 2.0, 3.0  # [Hz] filters of how root and trunk follow the feet
CENTER_CUTOFF, HEIGHT_CUTOFF = 3.0, 2.0  # [Hz] filters of the reference of the centre of mass
STRETCH = 0.975  # usable share of the leg length
# [s], [Hz] leg reach: minimum over a window, then smoothed; faster, and the vertical acceleration of a walk would
# double the knee load
REACH_WINDOW, REACH_CUTOFF = 0.3, 1.8
RESULT_CUTOFF, RESULT_WEIGHT = 8.0, 30.0  # [Hz] filter of the result; weight of its centre of mass in the last program
DIAL_GAIN, DIAL_STEP, DIAL_MOST, DIAL_WINDOW, DIAL_CUTOFF = 1.2, 0.5, 0.9, 0.5, 1.5  # [-, -, -, s, Hz]
STAND_SHARE = 0.985  # share of the standing height to which the dial raises the centre of mass
ERRORS = 20  # points of `WholeBodyTrajectory.point_names`
EACH_TORQUE = 5  # frames between evaluated torques
UPRIGHT = 0.7  # cosine to the vertical above which a waist axis does not lean the trunk
SETTLE = 10.0  # joint weight when the result returns to its soles
PACE_ROUNDS = 3
EXACT_TURN = 0.01  # [rad] rotation errors of a swing that are left to the controller
SHORTER_ROUNDS = 2  # of steps whose turning moment is not held at the slowest pace
PACE_FLIGHT, LEAST_GAIN = 0.7, 0.97  # pace of filled flights; ratio above which a pace counts as unchanged


def make_feasible(
    trajectory: WholeBodyTrajectory, robot: Robot, settings: FeasibilitySettings | None = None
) -> DynamicMotion:
    """Make a retargeted motion feasible.

    Args:
        robot: floating base.

    Raises:
        ClipError: if the motion is invalid, of another robot, or mostly flight.
        RobotError: if soles or masses are missing.
    """
    s = settings or FeasibilitySettings()
    source = SourceMotion.of(trajectory, robot, s)
    if source.flight > s.most_flight:
        raise ClipError(
            f"{100 * source.flight:.0f} % of the clip is in flight, at most {100 * s.most_flight:.0f} % can be "
            "filled: check its ground, or leave out --feasible"
        )
    run, pace = _Run(source, s), np.ones(max(2, round(source.clock[-1] * s.rate) + 1))
    severe = run.severe_parts(len(pace))
    for _ in range(0 if s.pace else PACE_ROUNDS):
        slower = run.required_pace(pace, severe)
        if slower.min() > LEAST_GAIN * pace.min() and np.allclose(slower, pace, rtol=1 - LEAST_GAIN):
            break
        pace = slower
        run = _Run(SourceMotion.of(trajectory, robot, s, pace), s)
    for _ in range(SHORTER_ROUNDS):
        shares = run.shorter_steps(severe)
        if shares == run.shares:
            break
        run = _Run(run.source, s, shares=shares)
    motion = run.result(trajectory, s.pace or float(pace.min()))
    if motion.center_error > s.lost_center:
        return run.retargeted(trajectory, motion.center_error)
    return motion


def feasible_source(source: SourceMotion, settings: FeasibilitySettings) -> DynamicMotion:
    """Make a motion feasible with given frames, contacts and soles.

    Args:
        source: its soles are targets, independent of q.

    Raises:
        ClipError: as `make_feasible`.
        RobotError: as `make_feasible`.
    """
    joints = source.q[:, source.robot.iq :]
    T = len(source)
    as_it_is = WholeBodyTrajectory(
        tuple(source.robot.joint_names),
        source.rate,
        joints,
        np.gradient(joints, 1.0 / source.rate, axis=0),
        np.zeros((T, ERRORS)),
        np.zeros(T),
        np.zeros(T),
        np.zeros(T, dtype=np.int64),
        source.q[:, :3],
        source.q[:, 3:7],
        source.edges,
    )
    return _Run(source, settings, keep_places=True).result(as_it_is, 1.0)


def retargeted_motion(
    trajectory: WholeBodyTrajectory, robot: Robot, settings: FeasibilitySettings | None = None
) -> DynamicMotion:
    """Return the retargeted motion with its missing contact wrench, as a baseline."""
    s = replace(settings or FeasibilitySettings(), passes=1)
    s = replace(s, pace=s.pace or 1.0)
    run = _Run(SourceMotion.of(trajectory, robot, s), s)
    motion = run.retargeted(trajectory, 0.0)
    return replace(motion, fallback="the retargeted motion")


@dataclass
class _Pass:
    """Result of one pass."""

    q: np.ndarray
    planned: CenterMotion
    center: np.ndarray
    momentum: np.ndarray
    clearance: np.ndarray


class _Run:
    """Pipeline for one pace."""

    def __init__(
        self,
        source: SourceMotion,
        settings: FeasibilitySettings,
        keep_places: bool = False,
        shares: dict[tuple[int, int], float] | None = None,
    ) -> None:
        self.source, self.settings, self.robot, self.shares = source, settings, source.robot, shares or {}
        self.own = ContactPlan.of(source, settings)
        self.plan = self.own if keep_places else reachable_footholds(self.own, source.soles, settings, self.shares)
        self.paths = SolePaths.of(source, self.plan)
        self.reference = self._follow_feet()
        moving = np.flatnonzero(np.ptp(source.q[:, self.robot.iq :], axis=0) > 0)
        self.ik = ClipIk(self.robot, source.soles, moving)
        self.program = CenterProgram(source.soles, self.plan, self.paths, settings)
        self.limits = torque_limits(self.robot)
        self.dial = np.zeros(len(source))
        self.last = self._passes()

    # -- references -----------------------------------------------------------------------------------------------

    def _follow_feet(self) -> np.ndarray:
        """Return q (T, nq) with the root following the moved feet."""
        source, rate = self.source, self.source.rate
        turn = wrapped(yaw_of(self.paths.R) - yaw_of(source.sole_R))
        dv = smoothed(np.unwrap(turn, axis=0).mean(axis=1), HEADING_CUTOFF, rate)
        theirs = smoothed(source.sole_p[..., :2].mean(axis=1), PLACE_CUTOFF, rate)
        ours = smoothed(self.paths.p[..., :2].mean(axis=1), PLACE_CUTOFF, rate)
        q, Rz = source.q.copy(), rotations_z(dv)
        q[:, :2] = ours + np.einsum("tij,tj->ti", Rz[:, :2, :2], source.q[:, :2] - theirs)
        half = np.stack([0 * dv, 0 * dv, np.sin(0.5 * dv), np.cos(0.5 * dv)], axis=1)
        q[:, 3:7] = quaternion_product(half, source.q[:, 3:7])
        return q

    def _height(self, reference: np.ndarray, center: np.ndarray, hips: np.ndarray) -> np.ndarray:
        """Return a height (T,) of the centre of mass within reach of legs and drives."""
        soles, rate, lam = self.source.soles, self.settings.rate, self.dial
        z = (1 - lam) * reference + lam * np.maximum(reference, STAND_SHARE * self._standing)
        up = np.array([0.0, 0.0, soles.legs.ankle_height])
        ankle = self.paths.p + self.paths.R @ up
        flat = np.linalg.norm((center[:, None, :2] + hips[..., :2] - ankle[..., :2]), axis=2)
        leg = STRETCH * soles.length
        reach = ankle[..., 2] + np.sqrt(np.maximum(leg**2 - flat**2, (0.3 * leg) ** 2)) - hips[..., 2]
        window = max(1, round(REACH_WINDOW * rate))
        most = smoothed(minimum_filter1d(reach.min(axis=1), 2 * window + 1, mode="nearest"), REACH_CUTOFF, rate)
        return np.minimum(z, most)

    @property
    def _standing(self) -> float:
        """Height of the centre of mass in the neutral posture [m]."""
        return float(self.robot.center_of_mass(self.robot.q("neutral"))[2])

    def _hips(self, q: np.ndarray, center: np.ndarray) -> np.ndarray:
        """Return both hips (T, 2, 3) from the centre of mass (T, 3) [m]."""
        model, data, legs = self.robot.model, self.robot.data, self.source.soles.legs
        pin.forwardKinematics(model, data, self.robot.q("neutral"))
        pelvis = legs.joints[0]
        own = np.array([data.oMi[pelvis].actInv(h) for h in legs.hips])
        out = np.empty((len(q), 2, 3))
        for k, row in enumerate(q):
            pin.forwardKinematics(model, data, row)
            out[k] = own @ data.oMi[pelvis].rotation.T + data.oMi[pelvis].translation - center[k]
        return out

    def _eased(self) -> np.ndarray:
        """Draw root and waist upright by the dial."""
        lam, q = self.dial, self.reference
        if not lam.any():
            return q
        q = q.copy()
        R = np.array([pin.Quaternion(x).toRotationMatrix() for x in q[:, 3:7]])
        Rz = rotations_z(yaw_of(R))
        for k in np.flatnonzero(lam):
            lean = pin.log3(Rz[k].T @ R[k])
            q[k, 3:7] = pin.Quaternion(Rz[k] @ pin.exp3((1 - lam[k]) * lean)).coeffs()
        iq, neutral = self.robot.iq, self.robot.postures["neutral"]
        for j in _leaning_waist(self.robot):
            q[:, iq + j] += lam * (neutral[j] - q[:, iq + j])
        return q

    # -- passes -----------------------------------------------------------------------------------------------------

    def _passes(self) -> _Pass:
        s, rate = self.settings, self.settings.rate
        q = self.reference
        center, L = center_and_momentum(self.robot, q, rate)
        wanted, z = smoothed(center[:, :2], CENTER_CUTOFF, rate), smoothed(center[:, 2], HEIGHT_CUTOFF, rate)
        hips, last = self._hips(q, center), None
        for k in range(s.passes):
            at = np.column_stack([wanted if last is None else last.planned.center[:, :2], z])
            height = self._height(z, at, hips)
            planned = self.program.solve(CenterReference(np.column_stack([wanted, height]), L, self.robot.mass))
            q, center, clearance = self.ik.solve(self.paths, self.plan.stands, planned.center, self._eased(), rate)
            _, L = center_and_momentum(self.robot, q, rate)
            hips = self._hips(q, center)
            last = _Pass(q, planned, center, L, clearance)
            if k < s.passes - 1:
                self._turn_dial(last)
        assert last is not None
        return self._settled(last)

    def _turn_dial(self, last: _Pass) -> None:
        s, rate = self.settings, self.settings.rate
        groups = self.source.soles.legs.moving
        v, a = velocities(self.robot, last.q, rate)
        loads = self._loads(last, (last.q, v, a), EACH_TORQUE)
        share = (np.abs(loads.torque) / self.limits)[:, groups].max(axis=1)
        share = np.interp(np.arange(len(last.q)), loads.frames, share)
        lam = self.dial + np.clip(DIAL_GAIN * (share - s.torque_share), 0.0, DIAL_STEP)
        lam = maximum_filter1d(lam, 2 * s.frames(DIAL_WINDOW) + 1, mode="nearest")
        self.dial = np.clip(smoothed(lam, DIAL_CUTOFF, rate), 0.0, DIAL_MOST)

    def _loads(
        self, last: _Pass, motion: tuple[np.ndarray, np.ndarray, np.ndarray], step: int = 1, friction: float = 0.0
    ) -> Loads:
        friction = friction or self.settings.friction
        return loads_of(self.robot, self.source.soles, self.plan, last.planned, motion, friction, step)

    def _settled(self, last: _Pass) -> _Pass:
        """Low-pass the last pass, return its soles to their paths, and solve the program again."""
        rate = self.settings.rate
        q = last.q.copy()
        q[:, 3:7] = continuous_quaternions(q[:, 3:7])
        q = smoothed(q, RESULT_CUTOFF, rate)
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
        center = smoothed(last.center, RESULT_CUTOFF, rate)
        own = np.full(len(self.ik.problem.rest), SETTLE)
        q, center, clearance = self.ik.solve(self.paths, self.plan.stands, center, q, rate, own)
        _, L = center_and_momentum(self.robot, q, rate)
        reference = CenterReference(
            np.column_stack([center[:, :2], smoothed(center[:, 2], RESULT_CUTOFF, rate)]),
            L,
            self.robot.mass,
            RESULT_WEIGHT,
        )
        return _Pass(q, self.program.solve(reference), center, L, clearance)

    # -- pace -------------------------------------------------------------------------------------------------------

    def required_pace(self, pace: np.ndarray, severe: np.ndarray) -> np.ndarray:
        """Return a slowed pace (P,); `severe`: parts of the clip with a severe lack of turning moment (P,)."""
        s, rate, q = self.settings, self.settings.rate, self.last.q
        v, a = velocities(self.robot, q, rate)
        loads = self._loads(self.last, (q, v, a), EACH_TORQUE)
        torque = np.interp(np.arange(len(q)), loads.frames, (np.abs(loads.torque) / self.limits).max(axis=1))
        missing = np.interp(np.arange(len(q)), loads.frames, np.linalg.norm(loads.missing[:, :3], axis=1))
        required = np.minimum(
            pace_for_torque(torque), pace_for_speed(yaw_rate(self.reference[:, 3:7], rate), s.yaw_rate)
        )
        lost = np.linalg.norm(self.source.soles.poses(self.robot, q)[1] - self.paths.p, axis=2).max(axis=1) > 5e-3
        lost |= self.last.planned.infeasible > 1e-3
        lost |= missing > 0.05 * self.robot.mass * 9.81
        required = np.where(lost, np.minimum(required, PACE_STEP), required)
        for change in self.own.changes:
            first = round(change.time * rate)
            if change.what.startswith("flight"):
                required[first : first + s.frames(change.amount) + 1] = np.minimum(PACE_FLIGHT, required[first])
            elif change.what.endswith("left out"):
                short = max(change.amount / s.shortest_swing, s.least_pace)
                last = first + s.frames(change.amount) + 1
                required[first:last] = np.minimum(short, required[first:last])
        slower = np.maximum(self._slowed(pace, required), np.minimum(pace, s.least_pace))
        # a turning moment that no sole holds takes the friction of the balance
        return np.maximum(np.minimum(slower, self._slowed(pace, np.sqrt(self._turning(severe)))), s.turning_pace)

    def _slowed(self, pace: np.ndarray, required: np.ndarray) -> np.ndarray:
        """Return a pace (P,) slowed to the required paces of the frames (T,)."""
        return slowed(pace, required, self._clip_frames(len(pace)), self.settings.rate)

    def _turning_loads(self) -> Loads:
        last, rate = self.last, self.settings.rate
        return self._loads(last, (last.q, *velocities(self.robot, last.q, rate)), EACH_TORQUE, turning_moment.FRICTION)

    def _turning(self, severe: np.ndarray) -> np.ndarray:
        """Return the held share (T,) of the turning moment in severe parts of the clip (P,), else 1."""
        loads, weight = self._turning_loads(), self.robot.mass * GRAVITY
        held = turning_moment.held_share(loads, self.last.planned.momentum_rate, weight)
        held = np.interp(np.arange(len(self.last.q)), loads.frames, held)
        return np.where(severe[self._clip_frames(len(severe))], held, 1.0)

    def severe_parts(self, count: int) -> np.ndarray:
        """Return the parts of the clip (P,) with a severe lack of turning moment."""
        loads, out = self._turning_loads(), np.zeros(count, dtype=bool)
        severe = turning_moment.severe_lacks(loads, self.settings.rate / EACH_TORQUE, self.robot.mass * GRAVITY)
        out[self._clip_frames(count)] = np.repeat(severe, EACH_TORQUE)[: len(self.last.q)]
        return out

    def shorter_steps(self, severe: np.ndarray) -> dict[tuple[int, int], float]:
        """Return shares of the way of steps, by foot and stance, smaller where the turning moment is not held."""
        held, rate = self._turning(severe), self.settings.rate
        return turning_moment.shorter_steps(held, rate, self.plan.stances, self.shares)

    def _clip_frames(self, count: int) -> np.ndarray:
        """Return the part (T,) of the clip, of `count`, that each frame shows."""
        return np.minimum(np.round(self.source.clock * self.settings.rate).astype(int), count - 1)

    def retargeted(self, trajectory: WholeBodyTrajectory, lost: float) -> DynamicMotion:
        """Return the retargeted motion with its missing contact wrench.

        Args:
            lost: error of the centre of mass [m].
        """
        rate, source = self.settings.rate, self.source
        center, L = center_and_momentum(self.robot, source.q, rate)
        paths = SolePaths(source.sole_R, source.sole_p)
        edges = source.edges.reshape(-1, 2, 2)
        stands = np.asarray(edges.any(axis=2))
        self.plan = replace(self.own, stands=stands, toe_only=np.asarray(stands & ~edges[..., 0]))
        self.paths, self.reference = paths, source.q
        self.last = _Pass(source.q, free_motion(center, L, self.robot.mass, rate), center, L, self.last.clearance)
        clock = np.clip(np.round(source.clock * trajectory.rate).astype(int), 0, len(trajectory.clearance) - 1)
        self.last.clearance = trajectory.clearance[clock]
        word = f"the retargeted motion: the centre of mass is missed by {1000 * lost:.0f} mm"
        return replace(self.result(trajectory, 1.0), fallback=word, center_error=lost, changes=(), way=1.0, filled=0.0)

    # -- result -------------------------------------------------------------------------------------------------------

    def result(self, trajectory: WholeBodyTrajectory, pace: float) -> DynamicMotion:
        """Return the motion with forces and torques."""
        rate, last, robot = self.settings.rate, self.last, self.robot
        v, a = velocities(robot, last.q, rate)
        loads = self._loads(last, (last.q, v, a))
        speed = np.abs(np.diff(last.q[:, robot.iq :], axis=0, prepend=last.q[:1, robot.iq :])) * rate / robot.velocity
        moved, errors = self._moved(trajectory)
        changes = list(self.plan.changes)
        if pace < 1.0:
            changes.append(Change(0.0, "slowest pace", pace, ""))
        if self.dial.max() > 0.02:
            k = int(np.argmax(self.dial))
            changes.append(Change(k / rate, "posture eased for torque", 100 * float(self.dial[k]), "%"))
        off = float(np.percentile(np.linalg.norm(last.center - last.planned.center, axis=1), 95))
        paths = self._reached_paths()
        twist, acceleration = _sole_twists(paths, rate)
        return DynamicMotion(
            robot=robot.name,
            joint_names=tuple(robot.joint_names),
            rate=rate,
            clock=self.source.clock,
            q=last.q,
            v=v,
            a=loads.acceleration,
            center=last.planned.center,
            center_velocity=last.planned.velocity,
            center_acceleration=last.planned.acceleration,
            momentum=last.planned.momentum,
            momentum_rate=last.planned.momentum_rate,
            zmp=last.planned.zmp,
            stands=self.plan.stands,
            toe_only=self.plan.toe_only,
            sole_rotation=paths.R,
            sole_position=paths.p,
            sole_twist=twist,
            sole_acceleration=acceleration,
            forces=loads.forces,
            torque=loads.torque,
            infeasible=last.planned.infeasible,
            missing=loads.missing,
            moved=moved,
            clearance=last.clearance,
            errors=errors,
            speed_share=speed.max(axis=1),
            torque_share=(np.abs(loads.torque) / self.limits).max(axis=1),
            changes=tuple(sorted(changes, key=lambda c: c.time)),
            way=way_kept(self.own, self.plan),
            filled=self.plan.filled,
            center_error=off,
        )

    def _reached_paths(self) -> SolePaths:
        """Return the paths, with the rotations of swings as far as the joints reach them.

        A controller that follows an ankle beyond its range moves the trunk instead: G1 fell as a swing lacked 0.2 rad.
        """
        R, _ = self.source.soles.poses(self.robot, self.last.q)
        out = self.paths.R.copy()
        for k, f in np.argwhere(~self.plan.stands):
            e = pin.log3(self.paths.R[k, f].T @ R[k, f])
            out[k, f] = self.paths.R[k, f] @ pin.exp3(
                e * max(0.0, 1.0 - EXACT_TURN / max(float(np.linalg.norm(e)), 1e-9))
            )
        return SolePaths(out, self.paths.p)

    def _moved(self, trajectory: WholeBodyTrajectory) -> tuple[np.ndarray, np.ndarray]:
        """Return distances of seven points (T, 2) and bounds of all point errors (T, 20) [m]."""
        robot, legs = self.robot, self.source.soles.legs
        points = [*imitation_points(robot, 0.0), *legs.points(robot)]
        ours, root = _points_of(robot, points, self.last.q)
        theirs, their_root = _points_of(robot, points, self.source.q)
        world = np.linalg.norm(ours - theirs, axis=2)[:, :7].mean(axis=1)
        local = np.linalg.norm(root - their_root, axis=2)
        frames = np.round(self.source.clock * trajectory.rate).astype(int)
        errors = trajectory.errors[np.clip(frames, 0, len(trajectory.errors) - 1)].copy()
        errors[:, :12] += local[:, :12]
        corners = np.einsum("tfij,fkj->tfki", self.paths.R, self.source.soles.corners) + self.paths.p[:, :, None]
        errors[:, 12:] = np.linalg.norm(ours[:, 12:] - corners.reshape(-1, 8, 3), axis=2)
        return np.stack([world, local[:, :7].mean(axis=1)], axis=1), errors


def _points_of(robot: Robot, points: list[Followed], q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return points (T, K, 3) in world and root axes [m]."""
    world, local = np.empty((len(q), len(points), 3)), np.empty((len(q), len(points), 3))
    for k, row in enumerate(q):
        pin.forwardKinematics(robot.model, robot.data, row)
        world[k] = [robot.data.oMi[x.joint].act(x.point) for x in points]
        local[k] = (world[k] - robot.data.oMi[1].translation) @ robot.data.oMi[1].rotation
    return world, local


def _leaning_waist(robot: Robot) -> list[int]:
    from humanoid_control.kinematics.forward_kinematics import joint_axis
    from humanoid_control.robots.joint_groups import JointGroups

    pin.forwardKinematics(robot.model, robot.data, robot.q("neutral"))
    waist = JointGroups.of(robot).waist.tolist()
    axes = [robot.data.oMi[k + 2].rotation @ joint_axis(robot.model, k + 2)[0] for k in waist]
    return [k for k, axis in zip(waist, axes, strict=True) if abs(float(axis[2])) < UPRIGHT]


def _sole_twists(paths: SolePaths, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return sole twists and accelerations (T, 2, 6) in the world."""
    T = len(paths.p)
    turn = np.zeros((T, 2, 3))
    for f in (0, 1):
        steps = np.array([a @ pin.log3(a.T @ b) for a, b in zip(paths.R[:-1, f], paths.R[1:, f], strict=True)]).reshape(
            -1, 3
        )
        turn[1:-1, f] = 0.5 * rate * (steps[1:] + steps[:-1])
    twist = np.concatenate([np.gradient(paths.p, 1.0 / rate, axis=0), turn], axis=2)
    return twist, np.gradient(twist, 1.0 / rate, axis=0)
