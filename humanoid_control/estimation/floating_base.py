"""Floating-base estimator: base pose and velocity of a walking robot from joints, IMU and sole forces.

The IMU gives the orientation. Loaded soles, assumed at rest since touch-down, give position and velocity, averaged by
load. The accelerometer predicts velocity; the soles correct it slowly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.array_types import F1, F2, F3, I1
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.kinematics.joint_state import ImuReading
from humanoid_control.robots.robot import Robot

TOUCHING, LEFT = 0.06, 0.03  # fraction of the weight: force of touch-down and lift-off
BOUNCE = 0.02  # [s] of low force before lift-off, so that bounces are ignored
LIGHT, SURE = 0.05, 0.25  # fraction of the weight: force at which a sole begins to count, and counts fully
BELIEF = 60.0  # [1/s] correction rate of the accelerometer velocity by the soles
PLACED, DRIFT = 0.004, 0.006  # [m] position error per touch-down; relative error of the distance
RESTING = 0.004  # [m/s] velocity deviation at rest
BLIND = 0.06  # [m/s^2] growth of velocity deviation without a sole
GRAVITY, NOWHERE = np.array([0.0, 0.0, -9.81]), np.zeros(3)
ALIGNED = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


@dataclass
class BaseEstimate:
    """Estimated state of a floating-base robot.

    Attributes:
        q: (nq,) base position in the estimated world [m], its quaternion x y z w, joints [rad].
        v: (nv,) linear [m/s], then angular velocity [rad/s] of the base in its own axes; joints [rad/s].
        center: (3,) centre of mass in the world [m].
        center_velocity: (3,) in world axes [m/s].
        soles: poses in the world.
        weights: (F,), sum 0 or 1.
        airborne: time without a loaded sole [s].
        slip: (F,) apparent horizontal speed of loaded soles [m/s].
        touches: (F,) contact of soles that may stand.
        turned: (F,) yaw since touch-down [rad].
        deviation: (2,) standard deviations of position [m] and velocity [m/s], per axis.
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
    """Ground contact of soles from normal forces, with hysteresis.

    Contact begins above TOUCHING and ends after BOUNCE below LEFT, as fractions of the weight.

    Attributes:
        touching: (F,).
        changes: number of changes.
    """

    def __init__(self, soles: int, weight: float) -> None:
        """Create states without contact; weight of the robot [N]."""
        self._weight = weight
        self.touching, self._light = np.zeros(soles, dtype=bool), np.zeros(soles)
        self.changes = 0

    def begin(self, touching: bool) -> None:
        """Set the contact of all soles."""
        self.touching[:], self._light[:], self.changes = touching, 0.0, 0

    def update(self, forces: np.ndarray, dt: float) -> np.ndarray:
        """Return the contacts (F,) for normal forces (F,) [N], dt [s] after the last call."""
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
    """Floating-base estimator without ground truth.

    Attributes:
        data: pinocchio data of the last update, base at the origin; of frames only the soles.
        contacts: of the soles.
        acceleration: (3,) trunk acceleration in world axes [m/s^2], or None.
        pivots: (F, 3) resting point of each sole, in its frame [m].
    """

    def __init__(self, robot: Robot, soles: Sequence[int]) -> None:
        """Create the estimator for sole frame ids."""
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
        """Restart; `soles` are known world positions (3,) of the pivots."""
        t = self._track.record
        t.anchors[:] = np.nan if soles is None else soles
        t.headings[:] = np.nan
        t.position[:], t.velocity[:], t.disagreement[:], self._airborne = 0.0, 0.0, 0.0, 0.0
        t.counts[:] = soles is not None, False, 0
        self._distance = 0.0
        self.contacts.begin(soles is not None)

    def stand_on(self, pivots: np.ndarray) -> None:
        """Set the resting points (F, 3) of the soles, in sole frames [m], such as the axis of a rolling foot."""
        if (pivots != self.pivots).any():
            for k, frame in enumerate(self.frames):
                self._track.record.anchors[k] += self.data.oMf[frame].rotation @ (pivots[k] - self.pivots[k])
            self.pivots[:] = pivots

    def kinematics(self, q: np.ndarray, v: np.ndarray, imu: ImuReading) -> None:
        """Fill `data` with poses and velocities, base at the origin with the IMU's orientation.

        Args:
            q: (n,) joints [rad].
            v: (n,) joints [rad/s].
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
        """Return the estimate, after `kinematics`.

        Args:
            forces: (F,) normal forces [N].
            may_stand: (F,) soles not expected in the air.
            dt: since the last update [s].
            ground: (F,) known ground heights [m].
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
        self._distance += dt * math.hypot(velocity[0], velocity[1])
        q, v = self._q.copy(), self._v.copy()
        q[:3], v[:3] = position, data.oMi[1].rotation.T @ velocity
        soles = [pin.SE3(sole.rotation, sole.translation + position) for sole in X]
        center, moving = data.com[0] + position, data.vcom[0] + velocity
        slip, weights, turned = t.slip.copy(), t.weights.copy(), t.turned.copy()
        return BaseEstimate(
            q, v, center, moving, soles, weights, self._airborne, slip, touches, turned, self._deviation()
        )

    def _deviation(self) -> np.ndarray:
        t = self._track.record
        steps, disagreement = int(t.counts[STEPS]), float(t.disagreement[0])
        # Position error grows with the square root of touch-downs, and with the distance.
        place = math.hypot(PLACED * math.sqrt(max(steps - len(self.frames), 0)), DRIFT * self._distance)
        return np.array([place, RESTING + 0.3 * disagreement])


STARTED, KNOWN, STEPS = range(3)


class SoleTrack(NamedTuple):
    """Soles (F,) and base state for a kernel; NaN: unknown.

    Attributes:
        forces: (F,) normal [N].
        touches: (F,) 1: contact.
        R: (F, 3, 3) relative to a resting base at the origin, as p, v, w.
        p: (F, 3).
        v: (F, 3).
        w: (F, 3).
        pivots: (F, 3) in sole frames.
        ground: (F,) heights [m].
        anchors: (F, 3) world positions of the pivots.
        headings: (F,) at touch-down [rad].
        weights: (F,).
        slip: (F,).
        turned: (F,).
        position: (3,) base.
        velocity: (3,) base.
        acceleration: (3,) accelerometer.
        disagreement: (1,) [m/s].
        counts: (3,) position known, velocity known, touch-downs.
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
    disagreement: F1
    counts: I1

    @classmethod
    def of(cls, soles: int) -> SoleTrack:
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
            disagreement=np.zeros(1),
            counts=np.zeros(3, dtype=np.int64),
        )


@kernel(allocates=True)
def follow_soles(table: Table[SoleTrack], dt: float, weight: float) -> bool:
    """Update base position and velocity from loaded soles and accelerometer; return True if a sole is loaded.

    Args:
        dt: period [s].
        weight: of the robot [N].
    """
    s = unpack(table, SoleTrack)
    n, total = s.forces.shape[0], 0.0
    places, speeds, arm = np.empty((n, 3)), np.empty((n, 3)), np.empty(3)  # of the pivots
    # Position and velocity of each pivot, for a resting base at the origin.
    for k in range(n):
        for i in range(3):
            arm[i] = s.R[k, i, 0] * s.pivots[k, 0] + s.R[k, i, 1] * s.pivots[k, 1] + s.R[k, i, 2] * s.pivots[k, 2]
        for i in range(3):
            a, b = (i + 1) % 3, (i + 2) % 3
            places[k, i] = s.p[k, i] + arm[i]
            speeds[k, i] = s.v[k, i] + s.w[k, a] * arm[b] - s.w[k, b] * arm[a]
        # Light contacts slip easily, so their weight fades in with the load.
        load = min(max((s.forces[k] / weight - LIGHT) / (SURE - LIGHT), 0.0), 1.0)
        s.weights[k] = s.forces[k] * load if s.touches[k] else 0.0
        total += s.weights[k]
    carried = total > 0.0
    seen, lowest = np.zeros(3), np.inf
    for k in range(n):
        if carried:
            s.weights[k] /= total
        # A resting pivot moves with -v of the base: each loaded sole sees the base velocity.
        seen -= s.weights[k] * speeds[k]
        if s.weights[k] > 0.0:
            lowest = min(lowest, places[k, 2] - s.pivots[k, 2])
    # The first load defines the height: the lowest sole is on the ground.
    if carried and not s.counts[STARTED]:
        s.position[:] = np.array([0.0, 0.0, -lowest])
        s.counts[STARTED] = True
    update_velocity(s, seen, carried, dt)
    # Dead reckoning serves for flight and for anchoring new contacts.
    guess, place = s.position + dt * s.velocity, np.zeros(3)
    for k in range(n):
        s.slip[k] = s.turned[k] = 0.0
        # Lift-off discards the anchor: the next contact is a new one.
        if not s.touches[k]:
            s.anchors[k], s.headings[k] = np.nan, np.nan
            continue
        heading = np.arctan2(s.R[k, 1, 0], s.R[k, 0, 0])
        if np.isnan(s.headings[k]):
            s.headings[k] = heading
        turned = heading - s.headings[k]
        # Wrap the yaw difference to half a turn.
        s.turned[k] = turned - 2 * np.pi * np.round(turned / (2 * np.pi))
        if s.weights[k] == 0.0:
            continue
        # A new contact anchors the pivot where the base estimate places it.
        if np.isnan(s.anchors[k, 0]):
            s.anchors[k] = guess + places[k]
            if not np.isnan(s.ground[k]):
                s.anchors[k, 2] = s.ground[k] + s.pivots[k, 2]
            s.counts[STEPS] += 1
        # Anchor - place is the base position that this sole implies.
        s.slip[k] = np.hypot(speeds[k, 0] + s.velocity[0], speeds[k, 1] + s.velocity[1])
        place += s.weights[k] * (s.anchors[k] - places[k])
    s.position[:] = place if carried else guess
    return carried


@inlined(allocates=True)
def update_velocity(s: SoleTrack, seen: F1, carried: bool, dt: float) -> None:
    """Update the base velocity from accelerometer and sole velocity (3,), if loaded."""
    measured = not np.isnan(s.acceleration[0])
    # Without an accelerometer, or at the start, the soles give the velocity directly.
    if not s.counts[KNOWN] or (carried and not measured):
        s.velocity[:] = seen if carried else np.zeros(3)
    else:
        if measured:
            s.velocity[:] += dt * s.acceleration
        # The doubt tracks the disagreement of soles and accelerometer, and grows in flight.
        if carried:
            # First-order correction with rate BELIEF.
            gain, off = 1.0 - np.exp(-dt * BELIEF), seen - s.velocity
            s.velocity[:] += gain * off
            s.disagreement[0] += gain * (np.sqrt(np.sum(off**2)) - s.disagreement[0])
        else:
            s.disagreement[0] += dt * BLIND
    s.counts[KNOWN] = True
