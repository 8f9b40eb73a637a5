"""Live moments of a person, with plate loads assigned to feet.

Coordinates, derivatives and foot loads pass two filters, each with the transfer function w^2 / (s + w)^2, so all have
the delay 4 / w. A filter is twice y += (1 - r) (x - y), r = exp(-w T), T the time since the last sample. Its rate is
the output difference over T; the delay is 2 r T / (1 - r).

Moments are NaN while the root's vertical force exceeds a fifth of the weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import ClipError
from humanoid_control.human.analysis import UNEXPLAINED, feet_of, root_force, root_wrench, upward
from humanoid_control.human.dynamics import PLATE_VARIANCE, correction_of, noise_gain
from humanoid_control.human.forces.plate_assignment import split
from humanoid_control.human.forces.sole_contact import AssignmentSettings, outline_distance, surface_axes
from humanoid_control.human.forces.wrenches import LOADED, UNLOADED
from humanoid_control.human.kinematics import Chain, Pose, make_pose, place
from humanoid_control.human.marker_fit import root_coordinates
from humanoid_control.human.model import Person
from humanoid_control.human.newton_euler import ROOT, DynamicsRecord, generalised_forces, make_motion

SOLE_BANDWIDTH = 10.0  # [Hz] of sole velocities
SETTLED = 1.5  # in filter delays: time until the initial state has decayed
BRIEF = 0.1  # [s] in which a landing or leaving foot may be too fast to rest
LONGEST_STEP = 0.2  # [s] a longer pause restarts the filters


@dataclass(frozen=True, eq=False)
class PlateWrench:
    """Present wrench of a plate, person axes.

    Attributes:
        wrench: (6,) on the person, about the ground origin [N, N m].
        normal: (3,) toward the person.
        surface: (3,) point [m].
    """

    wrench: np.ndarray
    normal: np.ndarray
    surface: np.ndarray

    @property
    def load(self) -> float:
        """Normal force [N]."""
        return float(self.wrench[:3] @ self.normal)

    def center_of_pressure(self) -> np.ndarray:
        """Return the surface point (3,) [m] with moment along the normal."""
        moment = self.wrench[3:] - cross(self.surface, self.wrench[:3])
        return np.asarray(self.surface + cross(self.normal, moment) / self.load)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cross product of vectors (3,), faster than numpy's."""
    (x, y, z), (u, v, w) = a.tolist(), b.tolist()
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u])


def share_of(radians: float) -> float:
    """Return 1 - exp(-w T)."""
    return -math.expm1(-radians)


@kernel(allocates=True)
def two_poles(share: Any, x: Any, half: Any, value: Any) -> Any:
    """Advance the filter; return the state between the poles, and the output."""
    # Exact for an input held constant over the step.
    half = half + share * (x - half)
    return half, value + share * (half - value)


class SoleRecord(NamedTuple):
    """Sole points for kernels.

    Attributes:
        body: (k,).
        place: (k, 3) body frame [m].
        first: (F + 1,) first point of each foot.
        at: (k, 3) ground [m].
        half: (k, 3) filter state.
        value: (k, 3) filter output.
        speed: (F,) of the slowest point [m/s].
        pressure: (3,) centre of pressure [m].
        flat: (3, 2) directions of the plate.
        distance: (F + 1,) from each sole, and from all resting ones together [m].
    """

    chain: Chain
    pose: Pose
    body: I1
    place: F2
    first: I1
    at: F2
    half: F2
    value: F2
    speed: F1
    pressure: F1
    flat: F2
    distance: F1


@kernel
def move_soles(table: Table[SoleRecord], q: np.ndarray, share: float, dt: float) -> None:
    """Update soles at q (n,) after dt [s]; share 1 restarts."""
    s = unpack(table, SoleRecord)
    place(s.chain, q, s.pose)
    for f in range(len(s.speed)):
        least = np.inf
        for k in range(s.first[f], s.first[f + 1]):
            R, p, r, square = s.pose.R[s.body[k]], s.pose.p[s.body[k]], s.place[k], 0.0
            for i in range(3):
                x = p[i] + R[i, 0] * r[0] + R[i, 1] * r[1] + R[i, 2] * r[2]
                s.at[k, i] = x
                # Velocity = difference of the filtered position over dt; the foot takes that of its slowest point.
                before = s.value[k, i]
                # share 1: no velocity, because the last frame is unknown.
                s.half[k, i], s.value[k, i] = two_poles(share, x, s.half[k, i], before) if share < 1.0 else (x, x)
                square += ((s.value[k, i] - before) / dt) ** 2 if share < 1.0 else 0.0
            least = min(least, square)
        s.speed[f] = np.sqrt(least)


@kernel(allocates=True)
def measure_soles(table: Table[SoleRecord], slow: float) -> None:
    """Fill distances from soles; feet slower than `slow` [m/s] rest."""
    s = unpack(table, SoleRecord)
    n, count = len(s.speed), 0
    at, points, resting = np.zeros((1, 2)), np.zeros((1, len(s.at), 2)), np.zeros((1, len(s.at), 2))
    # Project the pressure and the sole points onto the plate.
    for j in range(2):
        at[0, j] = s.pressure[0] * s.flat[0, j] + s.pressure[1] * s.flat[1, j] + s.pressure[2] * s.flat[2, j]
        for k in range(len(s.at)):
            points[0, k, j] = s.at[k, 0] * s.flat[0, j] + s.at[k, 1] * s.flat[1, j] + s.at[k, 2] * s.flat[2, j]
    # Outline of each sole, and of the union of all resting soles for a load between two feet.
    for f in range(n):
        own = points[:, s.first[f] : s.first[f + 1]]
        s.distance[f] = outline_distance(at, own)[0]
        if s.speed[f] < slow:
            resting[:, count : count + own.shape[1]] = own
            count += own.shape[1]
    s.distance[n] = outline_distance(at, resting[:, :count])[0] if count else np.inf


class LiveContacts:
    """Causal assignment of plate loads to feet.

    Attributes:
        carriers: foot -> body under load.
        problems: plate -> problem.
        shared: two feet share a plate.
    """

    def __init__(self, person: Person, settings: AssignmentSettings | None = None) -> None:
        """Create live contacts; ClipError if the person has no feet."""
        self.settings = settings or AssignmentSettings()
        feet, self.carriers = feet_of(person)
        self.feet = tuple(feet)
        bodies, places, first = list[int](), list[np.ndarray](), [0]
        for names in feet.values():
            for name in names:
                b = person.body_index(name)
                own = [np.zeros(3), *(np.asarray(m.place, dtype=float) for m in person.markers if m.body == name)]
                bodies += [b] * len(own)
                places += own
            first.append(len(bodies))
        chain, k, n = person.chain.record, len(bodies), len(feet)
        self._rows = {side: slice(*first[f : f + 2]) for f, side in enumerate(self.feet)}
        self._soles = Packed(
            SoleRecord(
                chain, make_pose(chain), np.array(bodies, dtype=np.int64), np.array(places, dtype=float),
                np.array(first, dtype=np.int64), np.zeros((k, 3)), np.zeros((k, 3)), np.zeros((k, 3)), np.zeros(n),
                np.zeros(3), np.zeros((3, 2)), np.zeros(n + 1),
            )
        )  # fmt: skip
        self._flat: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self.restart()

    def restart(self) -> None:
        """Discard the assignment."""
        self._time = float("nan")
        self._loaded: dict[str, bool] = {}
        self._feet_on: dict[str, tuple[str, ...]] = {}
        self._alone: dict[str, float] = {}  # since when a loaded plate has no foot
        self.problems: dict[str, str] = {}
        self.shared = False

    def step(self, q: np.ndarray, time: float, plates: Mapping[str, PlateWrench]) -> np.ndarray:
        """Return foot loads (F, 6) about the ground origin [N, N m].

        Args:
            q: (n,).
            time: [s].
            plates: by name.
        """
        dt, self._time = time - self._time, time
        move_soles(self._soles.table, q, share_of(2 * np.pi * SOLE_BANDWIDTH * dt) if dt > 0 else 1.0, dt)
        out = np.zeros((len(self.feet), 6))
        self.problems, self.shared = {}, False
        for name, plate in plates.items():
            load = plate.load
            # Hysteresis: loaded from LOADED until below UNLOADED.
            self._loaded[name] = load >= (UNLOADED if self._loaded.get(name) else LOADED)
            if load < -LOADED:
                self.problems[name] = f"the force of {name} points down: send the force on the person, not on the plate"
            if not self._loaded[name]:
                self._feet_on[name] = ()
                self._alone.pop(name, None)
                continue
            who = self._standing(name, plate)
            if who:
                self._alone.pop(name, None)
            if not who:
                # A landing foot may be too fast to rest: warn only after BRIEF.
                if time - self._alone.setdefault(name, time) > BRIEF:
                    self.problems[name] = f"{name}: {load:.0f} N with no foot on it: ignored"
            elif len(who) == 1:
                out[self.feet.index(who[0])] += plate.wrench
            else:
                self.shared = True
                at = self._soles.record.at
                middle = [self._middle(at[self._rows[side]], plate) for side in who]
                share = split(plate.wrench[None], middle[0][None], middle[1][None], plate.normal)[0]
                out[self.feet.index(who[0])] += share
                out[self.feet.index(who[1])] += plate.wrench - share
        return out

    def standing(self, name: str) -> tuple[str, ...]:
        """Return the feet on a plate."""
        return self._feet_on.get(name, ())

    def _standing(self, name: str, plate: PlateWrench) -> tuple[str, ...]:
        """Return the feet under or around the pressure, else the previous ones."""
        soles, settings = self._soles.record, self.settings
        soles.pressure[:], soles.flat[:] = plate.center_of_pressure(), self._flat_of(name, plate.normal)
        measure_soles(self._soles.table, settings.speed)
        resting = [k for k, speed in enumerate(soles.speed.tolist()) if speed < settings.speed]
        *each, both = soles.distance.tolist()
        near = [k for k in resting if each[k] <= settings.distance]
        # Pressure outside both soles, but inside their common outline: both feet carry.
        if not near and len(resting) == 2 and both <= settings.distance:
            near = resting
        if near:
            self._feet_on[name] = tuple(self.feet[k] for k in near[:2])
        return self._feet_on.get(name, ())

    def _flat_of(self, name: str, normal: np.ndarray) -> np.ndarray:
        """Return the cached directions (3, 2) along a plate."""
        known, flat = self._flat.get(name, (np.zeros(3), np.zeros((3, 2))))
        if known is not normal and not np.array_equal(known, normal):
            flat = surface_axes(normal)
            self._flat[name] = (normal, flat)
        return flat

    @staticmethod
    def _middle(points: np.ndarray, plate: PlateWrench) -> np.ndarray:
        at = points.mean(axis=0)
        return np.asarray(at - ((at - plate.surface) @ plate.normal) * plate.normal)


class DelayedFilter:
    """Low-pass filter and derivative with equal delay.

    Attributes:
        value: (k,) filtered.
        rate: (k,) derivative.
        delay: at the last sample [s].
    """

    def __init__(self, size: int, bandwidth: float) -> None:
        """Create a filter; bandwidth: w / (2 pi) [Hz]."""
        self._omega, self._half = 2 * np.pi * bandwidth, np.zeros(size)
        self.value, self.rate, self.delay = np.zeros(size), np.zeros(size), 2 / self._omega

    def update(self, dt: float, sample: np.ndarray) -> None:
        """Process a sample (k,), dt [s] after the last; 0: first."""
        if not dt > 0:
            self._half, self.value, self.rate = sample, sample, np.zeros(len(sample))
            self.delay = 2 / self._omega
            return
        share = share_of(self._omega * dt)
        # 2 r T / (1 - r) with r = 1 - share.
        self.delay = 2 * (1 - share) * dt / share
        before = self.value
        self._half, self.value = two_poles(share, sample, self._half, before)
        self.rate = (self.value - before) / dt


@dataclass(frozen=True, eq=False)
class LiveForces:
    """Delayed moments of a person.

    Attributes:
        velocity: (n,) delayed by half of `delay`.
        tau: (n,) [N m, N]; NaN: unexplained.
        explained: moments are known.
        delay: [s].
        left: posture (n,), root residual (6,) before correction, or None.
    """

    velocity: np.ndarray
    tau: np.ndarray
    explained: bool
    delay: float
    left: tuple[np.ndarray, np.ndarray] | None
    person: Person

    @cached_property
    def residual(self) -> np.ndarray:
        """Root residual (6,) about its origin, ground axes [N, N m]; NaN: unknown."""
        if self.left is None:
            return np.full(6, np.nan)
        return root_wrench(self.person, *self.left)[0]


class LiveDynamics:
    """Live velocities and moments of a person.

    Attributes:
        contacts: None without feet: moments only in the air.
    """

    def __init__(self, person: Person, bandwidth: float, plate_variance: float = PLATE_VARIANCE) -> None:
        """Create live dynamics; ConfigError unless the root has six coordinates.

        Args:
            bandwidth: of each filter [Hz].
        """
        self.person, self.bandwidth, self.plate_variance = person, bandwidth, plate_variance
        try:
            self.contacts: LiveContacts | None = LiveContacts(person)
        except ClipError:
            self.contacts = None
        # The root's translation axes are fixed in the ground, so rest gives the vertical for all postures.
        self._vertical = root_force(person, person.rest[None], np.eye(6)) @ upward(person)
        self._weight = person.mass * float(np.linalg.norm(person.gravity))
        self._root = root_coordinates(person)
        self._record = self._make_record()
        self.restart()

    def restart(self) -> None:
        """Restart with the next frame."""
        self._time = self._started_at = float("nan")
        self._usual_step = 0.0
        feet = len(self.contacts.feet) if self.contacts is not None else 0
        n = self.person.n
        self._first = DelayedFilter(n + 6 * feet, self.bandwidth)
        self._second = DelayedFilter(2 * n + 6 * feet, self.bandwidth)
        if self.contacts is not None:
            self.contacts.restart()

    def step(
        self, q: np.ndarray, time: float, certainty: tuple[np.ndarray, np.ndarray], plates: Mapping[str, PlateWrench],
        heard: bool = True,
    ) -> LiveForces:  # fmt: skip
        """Process one frame.

        Args:
            q: (n,) without jumps.
            time: increasing [s].
            certainty: standard deviations (n,), root covariance (6, 6).
            heard: False if a plate is silent: no moments.
        """
        n, dt = self.person.n, time - self._time
        if not 0 < dt < LONGEST_STEP:
            self.restart()
            self._started_at, dt = time, 0.0
        if dt > 0:
            self._usual_step += 0.05 * (dt - self._usual_step) if self._usual_step > 0 else dt
        self._time = time
        loads = np.zeros(0) if self.contacts is None else self.contacts.step(q, time, plates).ravel()
        first, second = self._first, self._second
        first.update(dt, np.concatenate([q, loads]))
        # The first filter gives velocities, the second accelerations; all outputs have the same delay.
        second.update(dt, np.concatenate([first.value[:n], first.rate[:n], first.value[n:]]))
        delay = first.delay + second.delay
        nothing, velocity = np.full(n, np.nan), first.rate[:n]
        if time - self._started_at < SETTLED * delay or not heard:
            return LiveForces(velocity, nothing, False, delay, None, self.person)
        self._solve(
            (second.value[:n], second.value[n : 2 * n], second.rate[n : 2 * n]), second.value[2 * n :], certainty
        )
        record = self._record.record
        left = record.q[0].copy(), record.before[0].copy()
        # A larger vertical root force belongs to a contact without a plate.
        explained = bool(abs(self._vertical @ record.before[0]) < UNEXPLAINED * self._weight)
        return LiveForces(velocity, record.tau[0].copy() if explained else nothing, explained, delay, left, self.person)

    def _solve(
        self, motion: tuple[np.ndarray, ...], loads: np.ndarray, certainty: tuple[np.ndarray, np.ndarray]
    ) -> None:
        """Fill corrected moments, and the residual before correction."""
        record, (std, root) = self._record.record, certainty
        record.q[0], record.qd[0], record.qdd[0] = motion
        record.corrected[0] = motion[2]
        record.wrenches[0] = loads.reshape(-1, 6)
        gain, correction = self._gain(), record.correction
        if not np.isfinite(std).all():  # undetermined coordinates are as uncertain as the worst determined one
            std = np.where(np.isfinite(std), std, np.max(std, initial=0.0, where=np.isfinite(std)))
        correction.W_a[0] = gain * (std * std)
        correction.W_a[0, self._root] = 0.0
        # An undetermined root gets variance 0, so no correction.
        correction.W_root[0] = gain * root if np.isfinite(root).all() else 0.0
        generalised_forces(self._record.table)

    def _gain(self) -> float:
        """Return the variance gain of accelerations; 0 at too low a rate."""
        return noise_gain(1 / self._usual_step, self.bandwidth) if self.bandwidth < 0.5 / self._usual_step else 0.0

    def _make_record(self) -> Packed[DynamicsRecord]:
        """Create arrays of a single frame."""
        person, n, chain = self.person, self.person.n, self.person.chain.record
        carriers = [] if self.contacts is None else [self.contacts.carriers[side] for side in self.contacts.feet]
        loaded = np.array([person.body_index(body) for body in carriers], dtype=np.int64)
        correction = correction_of(person, 1, np.zeros(n), self.plate_variance, np.zeros((1, ROOT, ROOT)))
        q, qd, qdd, tau, corrected = (np.zeros((1, n)) for _ in range(5))
        work = make_pose(chain), make_motion(chain)
        return Packed(
            DynamicsRecord(
                chain, *work, loaded, np.zeros((1, len(loaded), 6)), correction, q, qd, qdd, tau, corrected,
                np.zeros((1, ROOT)),
            )
        )  # fmt: skip
