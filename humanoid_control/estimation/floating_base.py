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

import numpy as np
import pinocchio as pin

from humanoid_control.kinematics.joint_state import ImuReading
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
        weights: (F,) how much each sole counted, 0..1 in all. airborne: how long none did [s].
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
        touching: (F,) now. changes: how often a sole began or ceased to touch.
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
        """Make it.

        Args:
            robot: with a floating base. soles: ids of the sole frames.
        """
        self.robot, self.frames = robot, tuple(soles)
        self.data = robot.model.createData()
        self.acceleration: np.ndarray | None = None
        self._root = robot.model.getFrameId(robot.root_link, pin.FrameType.BODY)
        self._R_base_root = robot.model.frames[self._root].placement.rotation.copy()
        self._R_root_base = self._R_base_root.T.copy()
        self._weight = robot.mass * 9.81
        self.contacts = ContactStates(len(self.frames), self._weight)
        self.pivots = np.zeros((len(self.frames), 3))
        self.reset()

    def reset(self, soles: Sequence[np.ndarray] | None = None) -> None:
        """Begin anew; `soles`: places (3,) of the pivots of the soles in the world, where they are known."""
        count = len(self.frames)
        self._anchors = np.full((count, 3), np.nan)  # where each sole stands; NaN: it does not
        if soles is not None:
            self._anchors[:] = soles
        self._headings = [math.nan] * count
        self._places, self._speeds = np.zeros((count, 3)), np.zeros((count, 3))
        self._position, self._airborne = np.zeros(3), 0.0
        self._velocity: np.ndarray | None = None
        self._started = soles is not None
        self._steps, self._way, self._doubt = 0, 0.0, 0.0
        self.contacts.begin(soles is not None)

    def stand_on(self, pivots: np.ndarray) -> None:
        """Let other points of the soles be those that stand still: of a foot that rolls, points of its axis.

        Args:
            pivots: (F, 3) in the frames of the soles [m].
        """
        for k, frame in enumerate(self.frames):
            if (pivots[k] != self.pivots[k]).any():
                self._anchors[k] += self.data.oMf[frame].rotation @ (pivots[k] - self.pivots[k])
        self.pivots = pivots.copy()

    def kinematics(self, q: np.ndarray, v: np.ndarray, imu: ImuReading) -> None:
        """Poses and velocities with the base at the origin, turned as the IMU says, in `data`.

        Args:
            q, v: (n,) of the joints [rad], [rad/s]. imu: in the root link.
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

    def _load(self, force: float) -> float:
        """How much a sole counts, by the normal force on it [N]."""
        return force * min(max((force / self._weight - LIGHT) / (SURE - LIGHT), 0.0), 1.0)

    def update(
        self, forces: np.ndarray, may_stand: Sequence[bool], dt: float, ground: Sequence[float] | None = None
    ) -> BaseEstimate:
        """The estimate, after `kinematics`.

        Args:
            forces: (F,) normal force on each sole [N]. may_stand: soles that are not expected in the air.
            dt: since the last update [s]. ground: (F,) height of the ground under each sole, where it is known [m].
        """
        model, data, frames = self.robot.model, self.data, self.frames
        touches = self.contacts.update(forces, dt) & np.asarray(may_stand, dtype=bool)
        standing = touches.tolist()
        share = [
            self._load(f) if touch else 0.0 for f, touch in zip(np.asarray(forces).tolist(), standing, strict=True)
        ]
        placed = data.oMf
        X = [placed[f] for f in frames]
        places, speeds, rolls = self._places, self._speeds, bool(self.pivots.any())
        for k, f in enumerate(frames):
            v = pin.getFrameVelocity(model, data, f, ALIGNED)
            places[k], speeds[k] = X[k].translation, v.linear
            if rolls:
                arm = X[k].rotation @ self.pivots[k]
                places[k] += arm
                speeds[k] += np.cross(v.angular, arm)
        total = sum(share)
        weights = np.array([s / total if total > 0 else 0.0 for s in share])
        loaded = [k for k, s in enumerate(share) if s > 0]
        if not self._started and loaded:
            lowest = min(places[k, 2] - self.pivots[k, 2] for k in loaded)
            self._position, self._started = np.array([0.0, 0.0, -lowest]), True
        velocity = self._fused(-(weights @ speeds) if loaded else None, dt)
        guess = self._position + dt * velocity
        slip, turned = np.zeros(len(frames)), np.zeros(len(frames))
        for k, touch in enumerate(standing):
            if touch:
                turned[k] = self._turned(k, X[k].rotation)
            else:
                self._anchors[k], self._headings[k] = np.nan, math.nan
        for k in loaded:
            if math.isnan(self._anchors[k, 0]):
                self._anchors[k] = guess + places[k]
                if ground is not None:
                    self._anchors[k, 2] = ground[k] + self.pivots[k, 2]
                self._steps += 1
            x, y, _ = (speeds[k] + velocity).tolist()
            slip[k] = math.hypot(x, y)
        self._position = (
            sum((weights[k] * (self._anchors[k] - places[k]) for k in loaded), NOWHERE) if loaded else guess
        )
        self._airborne = 0.0 if loaded else self._airborne + dt
        self._velocity = velocity
        self._way += dt * math.hypot(velocity[0], velocity[1])
        q, v = self._q.copy(), self._v.copy()
        q[:3] = self._position
        v[:3] = data.oMi[1].rotation.T @ velocity
        soles = [pin.SE3(sole.rotation, sole.translation + self._position) for sole in X]
        return BaseEstimate(
            q,
            v,
            data.com[0] + self._position,
            data.vcom[0] + velocity,
            soles,
            weights,
            self._airborne,
            slip,
            touches,
            turned,
            self._deviation(),
        )

    def _turned(self, sole: int, R: np.ndarray) -> float:
        """Turn about the vertical of a sole, with its axes R, since it touched down, by IMU and joints [rad]."""
        heading = math.atan2(R[1, 0], R[0, 0])
        if math.isnan(self._headings[sole]):
            self._headings[sole] = heading
        return math.remainder(heading - self._headings[sole], 2 * math.pi)

    def _fused(self, soles: np.ndarray | None, dt: float) -> np.ndarray:
        """Velocity (3,) of the base from the one before, the accelerometer and what the soles say; None: nothing."""
        before, a = self._velocity, self.acceleration
        if before is None or (a is None and soles is not None):
            return np.zeros(3) if soles is None else soles
        velocity = before if a is None else before + dt * a
        if soles is not None:
            off = soles - velocity
            far = math.hypot(*off.tolist())
            gain = 1.0 - math.exp(-dt * BELIEF)
            velocity = velocity + gain * off
            self._doubt += gain * (far - self._doubt)
        else:
            self._doubt += dt * BLIND
        return velocity

    def _deviation(self) -> np.ndarray:
        """Standard deviations (2,) of place [m] and velocity [m/s]: each touch-down adds to the first, and the way."""
        place = math.hypot(PLACED * math.sqrt(max(self._steps - len(self.frames), 0)), DRIFT * self._way)
        return np.array([place, RESTING + 0.3 * self._doubt])
