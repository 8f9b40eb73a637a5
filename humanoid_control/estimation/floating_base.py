"""Where a walking robot is: the pose and velocity of its floating base from joints, an IMU and the soles' forces.

The orientation is the IMU's. Every sole that carries load is taken to stand still since it touched down, so each of
them says where the base is and how fast; their means are weighted by load. The accelerometer carries the velocity on
from tick to tick and the soles lead it back, slowly, and more slowly where they contradict it: a sole that slides or
rocks says nothing true of the base, and in quick steps soles slide for a tenth of a second at a time. A sole that
slides takes its place along.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.jit import inlined, kernel
from humanoid_control.kinematics.joint_state import ImuReading
from humanoid_control.numerics.array_types import F1, F2, F3, I1
from humanoid_control.numerics.packed import Packed, Table, unpack
from humanoid_control.robots.robot import Robot

TOUCHING, LEFT = 0.06, 0.03  # of the weight: force from which a sole touches the ground, and below which it does not
BOUNCE = 0.02  # [s] for which a sole must have been that light: one that bounces has not been lifted
LIGHT, SURE = 0.05, 0.25  # of the weight: force from which a sole begins to count, and counts fully
BELIEF = 60.0  # [1/s] at which the soles lead the velocity of the accelerometer back
PLACED, DRIFT = 0.004, 0.006  # [m] of doubt that each touch-down adds; share of the way
RESTING = 0.004  # [m/s] of doubt of the velocity, at rest
BLIND = 0.06  # [m/s^2] by which the doubt of the velocity grows without a sole
GRAVITY, NOWHERE = np.array([0.0, 0.0, -9.81]), np.zeros(3)
ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


@dataclass
class BaseEstimate:
    """The state of a robot with a floating base, estimated.

    Attributes:
        q: (nq,), v: (nv,) in pinocchio's convention.
        center, center_velocity: (3,) of the centre of mass [m], [m/s].
        soles: poses of the sole frames in the world.
        weights: (F,) how much each sole counted, 0..1 in all.
        airborne: how long none did [s].
        slip: (F,) horizontal speed that each loaded sole seems to have [m/s].
        touches: (F,) which soles are in contact, of those that may be (`ContactStates`).
        turned: (F,) by how much each of these has turned about the vertical since it touched down [rad].
        deviation: (2,) standard deviation of the place and of the velocity, on each axis [m], [m/s].
    """

    q: np.ndarray
    v: np.ndarray
    center: np.ndarray
    center_velocity: np.ndarray
    soles: list[pin.SE3]
    weights: np.ndarray
    airborne: float
    slip: np.ndarray
    touches: np.ndarray = field(default_factory=lambda: np.zeros(2, dtype=bool))
    turned: np.ndarray = field(default_factory=lambda: np.zeros(2))
    deviation: np.ndarray = field(default_factory=lambda: np.zeros(2))


class ContactStates:
    """Which soles touch the ground, by their normal forces, without chatter.

    A sole touches from TOUCHING of the weight on, and no longer once it has carried less than LEFT for BOUNCE.

    Attributes:
        touching: (F,) now.
        changes: how often a sole began or ceased to touch.
    """

    def __init__(self, soles: int, weight: float) -> None:
        """Make them for so many soles, none of which touches; weight of the robot [N]."""
        self._weight = weight
        self.touching, self._light = np.zeros(soles, dtype=bool), np.zeros(soles)
        self.changes = 0

    def begin(self, touching: bool) -> None:
        """All soles touch, or none does."""
        self.touching[:], self._light[:], self.changes = touching, 0.0, 0

    def update(self, forces: np.ndarray, dt: float) -> np.ndarray:
        """Which soles touch (F,), by the normal force on each [N], dt after the last call [s]."""
        rows = zip(np.asarray(forces).tolist(), self.touching.tolist(), self._light.tolist(), strict=True)
        for k, (force, before, light) in enumerate(rows):
            touching, light = before, light + dt if force < LEFT * self._weight else 0.0
            if force > TOUCHING * self._weight:
                touching = True
            elif light >= BOUNCE - 1e-9:
                touching = False
            self.changes += touching != before
            self.touching[k], self._light[k] = touching, light
        return self.touching


class FloatingBaseEstimator:
    """Estimator of the floating base (no ground truth).

    Attributes:
        data: pinocchio's of the last update, with the base at the estimated pose only up to a translation; of the
            frames only those of the soles are placed.
        contacts: of the soles, whether they may stand or not.
        acceleration: (3,) of the trunk in the axes of the world, as the accelerometer has it [m/s^2]; None without one.
        pivots: (F, 3) point of each sole that stands still, in its frame [m]; see `stand_on`.
    """

    def __init__(self, robot: Robot, soles: Sequence[int]) -> None:
        """Create the floating base estimator.

        Args:
            robot: with a floating base.
            soles: ids of the sole frames.
        """
        self.robot, self.frames = robot, tuple(soles)
        self.data = robot.model.createData()
        self.acceleration: np.ndarray | None = None
        self._root = robot.model.getFrameId(robot.root_link, pin.FrameType.BODY)
        self._R_base_root = robot.model.frames[self._root].placement.rotation.copy()
        self._R_root_base = self._R_base_root.T.copy()
        self._weight = robot.mass * 9.81
        self.contacts = ContactStates(len(self.frames), self._weight)
        self._track = Packed(SoleTrack.of(len(self.frames)))
        self.pivots = self._track.record.pivots
        self.reset()

    def reset(self, soles: Sequence[np.ndarray] | None = None) -> None:
        """Begin again; `soles`: places (3,) of the pivots of the soles in the world, where they are known."""
        t = self._track.record
        t.anchors[:] = np.nan if soles is None else soles
        t.headings[:] = np.nan
        t.position[:], t.velocity[:], t.doubt[:], self._airborne = 0.0, 0.0, 0.0, 0.0
        t.counts[:] = soles is not None, False, 0
        self._way = 0.0
        self.contacts.begin(soles is not None)

    def stand_on(self, pivots: np.ndarray) -> None:
        """Let other points of the soles be those that stand still: of a foot that rolls, points of its axis.

        Args:
            pivots: (F, 3) in the frames of the soles [m].
        """
        if (pivots != self.pivots).any():
            for k, frame in enumerate(self.frames):
                self._track.record.anchors[k] += self.data.oMf[frame].rotation @ (pivots[k] - self.pivots[k])
            self.pivots[:] = pivots

    def kinematics(self, q: np.ndarray, v: np.ndarray, imu: ImuReading) -> None:
        """Poses and velocities with the base at the origin, turned as the IMU says, in `data`.

        Args:
            q, v: (n,) of the joints [rad], [rad/s].
            imu: in the root link.
        """
        r = self.robot
        x, y, z, w = imu.orientation
        R = pin.Quaternion(w, x, y, z).normalized().toRotationMatrix() @ self._R_root_base
        self._q = np.concatenate([NOWHERE, pin.Quaternion(R).coeffs(), q])
        self._v = np.concatenate([NOWHERE, self._R_base_root @ imu.angular_velocity, v])
        force = np.asarray(imu.linear_acceleration, dtype=float)
        self.acceleration = R @ self._R_base_root @ force + GRAVITY if force.any() else None
        pin.centerOfMass(r.model, self.data, self._q, self._v, False)
        for frame in self.frames:
            pin.updateFramePlacement(r.model, self.data, frame)

    def update(
        self, forces: np.ndarray, may_stand: Sequence[bool], dt: float, ground: Sequence[float] | None = None
    ) -> BaseEstimate:
        """The estimate, after `kinematics`.

        Args:
            forces: (F,) normal force on each sole [N].
            may_stand: soles that are not expected in the air.
            dt: since the last update [s].
            ground: (F,) height of the ground under each sole, where it is known [m].
        """
        model, data, t = self.robot.model, self.data, self._track.record
        touches = self.contacts.update(forces, dt) & np.asarray(may_stand, dtype=bool)
        t.forces[:], t.touches[:] = forces, touches
        t.ground[:] = np.nan if ground is None else ground
        t.acceleration[:] = np.nan if self.acceleration is None else self.acceleration
        X = [data.oMf[f] for f in self.frames]
        for k, f in enumerate(self.frames):
            v = pin.getFrameVelocity(model, data, f, ALIGNED)
            t.R[k], t.p[k], t.v[k], t.w[k] = X[k].rotation, X[k].translation, v.linear, v.angular
        airborne = not follow_soles(self._track.table, dt, self._weight)
        self._airborne = self._airborne + dt if airborne else 0.0
        position, velocity = t.position.copy(), t.velocity.copy()
        self._way += dt * math.hypot(velocity[0], velocity[1])
        q, v = self._q.copy(), self._v.copy()
        q[:3], v[:3] = position, data.oMi[1].rotation.T @ velocity
        soles = [pin.SE3(sole.rotation, sole.translation + position) for sole in X]
        center, moving = data.com[0] + position, data.vcom[0] + velocity
        slip, weights, turned = t.slip.copy(), t.weights.copy(), t.turned.copy()
        return BaseEstimate(
            q, v, center, moving, soles, weights, self._airborne, slip, touches, turned, self._deviation()
        )

    def _deviation(self) -> np.ndarray:
        """Standard deviations (2,) of place [m] and velocity [m/s]: each touch-down adds to the first, and the way."""
        t = self._track.record
        steps, doubt = int(t.counts[STEPS]), float(t.doubt[0])
        place = math.hypot(PLACED * math.sqrt(max(steps - len(self.frames), 0)), DRIFT * self._way)
        return np.array([place, RESTING + 0.3 * doubt])


STARTED, KNOWN, STEPS = range(3)


class SoleTrack(NamedTuple):
    """Soles (F,) and what is known of the base by them, for a kernel. NaN: not known.

    Attributes:
        forces: (F,) normal to each sole [N].
        touches: (F,) 1 for a sole in contact.
        R: (F, 3, 3), p, v, w: (F, 3) pose and velocity of each as if the base were at rest at the origin.
        pivots: (F, 3) points that stand still, in the frames of the soles.
        ground: (F,) heights there [m].
        anchors: (F, 3) where each pivot stands.
        headings: (F,) at touch-down [rad].
        weights, slip, turned: (F,) as of BaseEstimate.
        position, velocity: (3,) of the base.
        acceleration: (3,) of the accelerometer.
        doubt: (1,) [m/s].
        counts: (3,) whether the position and the velocity are known, and how often a sole touched down.
    """

    forces: F1
    touches: I1
    R: F3
    p: F2
    v: F2
    w: F2
    pivots: F2
    ground: F1
    anchors: F2
    headings: F1
    weights: F1
    slip: F1
    turned: F1
    position: F1
    velocity: F1
    acceleration: F1
    doubt: F1
    counts: I1

    @classmethod
    def of(cls, soles: int) -> SoleTrack:
        """For so many soles."""
        n = soles
        return cls(
            forces=np.zeros(n),
            touches=np.zeros(n, dtype=np.int64),
            R=np.zeros((n, 3, 3)),
            p=np.zeros((n, 3)),
            v=np.zeros((n, 3)),
            w=np.zeros((n, 3)),
            pivots=np.zeros((n, 3)),
            ground=np.zeros(n),
            anchors=np.zeros((n, 3)),
            headings=np.zeros(n),
            weights=np.zeros(n),
            slip=np.zeros(n),
            turned=np.zeros(n),
            position=np.zeros(3),
            velocity=np.zeros(3),
            acceleration=np.zeros(3),
            doubt=np.zeros(1),
            counts=np.zeros(3, dtype=np.int64),
        )


@kernel
def follow_soles(table: Table[SoleTrack], dt: float, weight: float) -> bool:
    """Position and velocity of the base from the soles that carry load, and from the accelerometer.

    Args:
        table: of the packed SoleTrack.
        dt: since the last call [s].
        weight: of the robot [N].

    Returns:
        Whether a sole carries load.
    """
    s = unpack(table, SoleTrack)
    n, total = s.forces.shape[0], 0.0
    places, speeds, arm = np.empty((n, 3)), np.empty((n, 3)), np.empty(3)  # of the pivots
    for k in range(n):
        for i in range(3):
            arm[i] = s.R[k, i, 0] * s.pivots[k, 0] + s.R[k, i, 1] * s.pivots[k, 1] + s.R[k, i, 2] * s.pivots[k, 2]
        for i in range(3):
            a, b = (i + 1) % 3, (i + 2) % 3
            places[k, i] = s.p[k, i] + arm[i]
            speeds[k, i] = s.v[k, i] + s.w[k, a] * arm[b] - s.w[k, b] * arm[a]
        load = min(max((s.forces[k] / weight - LIGHT) / (SURE - LIGHT), 0.0), 1.0)
        s.weights[k] = s.forces[k] * load if s.touches[k] else 0.0
        total += s.weights[k]
    carried = total > 0.0
    seen, lowest = np.zeros(3), np.inf
    for k in range(n):
        if carried:
            s.weights[k] /= total
        seen -= s.weights[k] * speeds[k]
        if s.weights[k] > 0.0:
            lowest = min(lowest, places[k, 2] - s.pivots[k, 2])
    if carried and not s.counts[STARTED]:
        s.position[:] = np.array([0.0, 0.0, -lowest])
        s.counts[STARTED] = True
    believe(s, seen, carried, dt)
    guess, place = s.position + dt * s.velocity, np.zeros(3)
    for k in range(n):
        s.slip[k] = s.turned[k] = 0.0
        if not s.touches[k]:
            s.anchors[k], s.headings[k] = np.nan, np.nan
            continue
        heading = np.arctan2(s.R[k, 1, 0], s.R[k, 0, 0])
        if np.isnan(s.headings[k]):
            s.headings[k] = heading
        turned = heading - s.headings[k]
        s.turned[k] = turned - 2 * np.pi * np.round(turned / (2 * np.pi))
        if s.weights[k] == 0.0:
            continue
        if np.isnan(s.anchors[k, 0]):
            s.anchors[k] = guess + places[k]
            if not np.isnan(s.ground[k]):
                s.anchors[k, 2] = s.ground[k] + s.pivots[k, 2]
            s.counts[STEPS] += 1
        s.slip[k] = np.hypot(speeds[k, 0] + s.velocity[0], speeds[k, 1] + s.velocity[1])
        place += s.weights[k] * (s.anchors[k] - places[k])
    s.position[:] = place if carried else guess
    return carried


@inlined
def believe(s: SoleTrack, seen: F1, carried: bool, dt: float) -> None:
    """Velocity of the base from the one before, the accelerometer, and what the soles say (3,) if they carry."""
    measured = not np.isnan(s.acceleration[0])
    if not s.counts[KNOWN] or (carried and not measured):
        s.velocity[:] = seen if carried else np.zeros(3)
    else:
        if measured:
            s.velocity[:] += dt * s.acceleration
        if carried:
            gain, off = 1.0 - np.exp(-dt * BELIEF), seen - s.velocity
            s.velocity[:] += gain * off
            s.doubt[0] += gain * (np.sqrt(np.sum(off**2)) - s.doubt[0])
        else:
            s.doubt[0] += dt * BLIND
    s.counts[KNOWN] = True
