"""Forward tracking: motion, moments and plate forces consistent in every frame.

The motion is integrated with (Simonidis et al. 2011, equation 33; the printed signs are unstable)

    a = q''_m - 2 c (q' - q'_m) - c^2 (q - q_m),

corrected by the plates. Fully trusted plates make the motion drift; `plate_variance` lies at the knee of this
trade-off. The root yields along its translations first (Delp et al. 2007). The start of the root is fitted, after mass,
trunk centre of mass and plate zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, F3
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import ConfigError, SizeError
from humanoid_control.human.dynamics import Loads, correction_of, inverse_dynamics
from humanoid_control.human.kinematics import make_pose
from humanoid_control.human.model import Person
from humanoid_control.human.newton_euler import (
    ROOT,
    Correction,
    DynamicsRecord,
    forces_of_frame,
    make_correction_work,
    make_motion,
)

KNEE = 4000.0  # [N^2, N^2 m^2] plate_variance: smaller values let the motion drift, larger ones leave residuals
NUDGE = 1e-3  # [m, m/s] finite difference of the start
LONGEST = 1e-3  # [s] longest integration step
MOST_RATE = 1e3  # [1/s] largest c that is stable with LONGEST
ROUNDS = 4  # Gauss-Newton rounds for the constants
LEAST_FRAMES = 6  # frames of the shortest tracked stretch
LOAD = 20.0  # [N] smallest force of a loaded plate


@dataclass(frozen=True)
class TrackingSettings:
    """Settings of forward tracking.

    Attributes:
        rate: c, decay of deviations, critically damped [1/s].
        plate_variance: W_c [N^2, N^2 m^2].
        sway: factor of the standard deviation of root translations.
        find_start: fit the root's start; else as measured.
    """

    rate: float = 10.0
    plate_variance: float = KNEE
    sway: float = 10.0
    find_start: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.rate <= MOST_RATE:
            raise ConfigError(f"the rate of tracking must be above 0 and at most {MOST_RATE:g}/s, got {self.rate:g}/s")
        if not (np.isfinite(self.plate_variance) and self.plate_variance > 0):
            raise ConfigError(f"the variance of the plates must be positive, got {self.plate_variance:g}")
        if not (np.isfinite(self.sway) and self.sway > 0):
            raise ConfigError(f"the factor sway must be positive, got {self.sway:g}")


@dataclass(frozen=True, eq=False)
class TrackedMotion:
    """Motion that is consistent with its forces.

    Attributes:
        times: (T,) [s].
        q: (T, n) integrated.
        qd: (T, n) integrated.
        qdd: (T, n).
        tau: (T, n) generalised forces [N m, N].
        residual: (T, 6) of the root.
        error: (T, n) q minus measurement [rad, m].
    """

    times: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    residual: np.ndarray
    error: np.ndarray


def track(
    person: Person,
    times: np.ndarray,
    motion: tuple[np.ndarray, np.ndarray, np.ndarray],
    loads: Loads,
    variance: tuple[np.ndarray, np.ndarray | None],
    settings: TrackingSettings | None = None,
) -> TrackedMotion:
    """Integrate a motion that follows the measurement, corrected by plates.

    Args:
        times: (T,) increasing [s].
        motion: q, qd, qdd (T, n).
        variance: W_a, root_variance.

    Raises:
        ConfigError: as `weighted_inverse_dynamics`.
        SizeError: if there are not two increasing times.
    """
    settings = settings or TrackingSettings()
    q, qd, qdd = (person.check(a, name) for a, name in zip(motion, ("q", "qd", "qdd"), strict=True))
    T, n = q.shape
    if T < 2 or len(times) != T or not (np.diff(times) > 0).all():
        raise SizeError(
            f"tracking needs at least two frames with increasing times, got {T} frames and {len(times)} times"
        )
    chain, bodies = person.chain.record, [person.body_index(name) for name in loads]
    wrenches = np.stack([np.asarray(w, dtype=float) for w in loads.values()], axis=1) if loads else np.zeros((T, 0, 6))
    whole = _with_sway(person, correction_of(person, T, variance[0], settings.plate_variance, variance[1]), settings)
    one = whole._replace(W_a=whole.W_a[:1].copy(), W_root=whole.W_root[:1].copy())
    single = [np.zeros((1, n)) for _ in range(5)]
    frame = DynamicsRecord(
        chain, make_pose(chain), make_motion(chain), np.array(bodies, dtype=np.int64),
        np.zeros((1, len(bodies), 6)), one, single[0], single[1], single[2], single[3], single[4], np.zeros((1, ROOT)),
    )  # fmt: skip
    out, start = [np.zeros((T, n)) for _ in range(4)], np.zeros(2 * n)
    record = Packed(
        TrackRecord(
            frame, np.asarray(times, dtype=float).copy(), q, qd, qdd, np.ascontiguousarray(wrenches), whole.W_a,
            whole.W_root, start, settings.rate, LONGEST, out[0], out[1], out[2], out[3],
        )
    )  # fmt: skip
    follow(record.table)
    if settings.find_start:
        _find_start(record, [k for k in whole.root if not person.rotational[k]])
    return TrackedMotion(np.array(times), out[0], out[1], out[2], out[3], out[3][:, whole.root], out[0] - q)


def _with_sway(person: Person, correction: Correction, settings: TrackingSettings) -> Correction:
    """Return variances increased for the root's translations."""
    # Variances of translations grow by sway^2, covariances with angles by sway.
    room = np.where(person.rotational[correction.root], 1.0, settings.sway)
    W_a = correction.W_a.copy()
    W_a[:, correction.root] *= room**2
    return correction._replace(W_a=W_a, W_root=correction.W_root * room[:, None] * room)


def _find_start(record: Packed[TrackRecord], lengths: list[int]) -> None:
    """Fit the start of coordinates to minimise their errors, and track."""
    r, n = record.record, record.record.q.shape[1]
    free = [*lengths, *(n + k for k in lengths)]

    def errors() -> np.ndarray:
        follow(record.table)
        return (r.x - r.q)[:, lengths].ravel()

    # Errors are almost linear in the start: two Gauss-Newton steps with finite differences.
    for _ in range(2):
        e, J = errors(), []
        for k in free:
            r.start[k] += NUDGE
            J.append((errors() - e) / NUDGE)
            r.start[k] -= NUDGE
        r.start[free] -= np.linalg.lstsq(np.stack(J, axis=1), e, rcond=None)[0]
    follow(record.table)


# -------- Constants


@dataclass(frozen=True, eq=False)
class Constants:
    """Fitted constants of person and plates.

    Attributes:
        person: with fitted mass and trunk.
        loads: without plate zeros.
        mass: factor.
        moved: (3,) trunk centre of mass, trunk axes [m].
        zeros: body -> (6,) wrench about the mean point of application.
        before: (6,) RMS root residual.
        after: (6,) RMS root residual.
    """

    person: Person
    loads: dict[str, np.ndarray]
    mass: float
    moved: np.ndarray
    zeros: Mapping[str, np.ndarray]
    before: np.ndarray
    after: np.ndarray


@dataclass(frozen=True)
class ConstantSettings:
    """Standard deviations of the constants.

    Attributes:
        mass: relative.
        com: trunk [m].
        force: plate zero [N].
        moment: plate zero [N m].
        residual: root [N, N m].
        independent: share of independent frames.
    """

    mass: float = 0.02
    com: float = 0.05
    force: float = 2.0
    moment: float = 1.0
    residual: float = 10.0
    independent: float = 0.2


def find_constants(
    person: Person,
    motion: tuple[np.ndarray, np.ndarray, np.ndarray],
    loads: Loads,
    settings: ConstantSettings | None = None,
) -> Constants:
    """Fit mass, trunk centre of mass and plate zeros by least squares.

    Args:
        motion: q, qd, qdd (T, n), with known forces.
    """
    s = settings or ConstantSettings()
    trunk, names = trunk_of(person), list(loads)
    middle = {name: _mean_point(np.asarray(w, dtype=float)) for name, w in loads.items()}
    sigma = np.array([s.mass, *[s.com] * 3, *([s.force] * 3 + [s.moment] * 3) * len(names)])

    def applied(theta: np.ndarray) -> tuple[Person, dict[str, np.ndarray]]:
        bodies = [
            replace(b, mass=b.mass * (1 + theta[0]), inertia=b.inertia * (1 + theta[0]),
                    com=b.com + (theta[1:4] if b.name == trunk else 0.0))
            for b in person.bodies
        ]  # fmt: skip
        given = {}
        for k, name in enumerate(names):
            zero = theta[4 + 6 * k : 10 + 6 * k]
            # Zero about the mean point of application, moved to the ground origin.
            about = np.concatenate([zero[:3], zero[3:] + np.cross(middle[name], zero[:3])])
            w = np.asarray(loads[name], dtype=float)
            given[name] = w - about * (np.linalg.norm(w[:, :3], axis=1) > LOAD)[:, None]
        return replace(person, bodies=tuple(bodies)), given

    def residual(theta: np.ndarray) -> np.ndarray:
        someone, given = applied(theta)
        return inverse_dynamics(someone, *motion, given).residual

    theta, first = np.zeros(len(sigma)), residual(np.zeros(len(sigma)))
    for _ in range(ROUNDS):  # linear except for the nearly linear centre of mass
        e = residual(theta)
        J = np.stack([(residual(theta + d) - e).ravel() / d.sum() for d in np.diag(1e-4 * sigma)], axis=1)
        trust = np.sqrt(s.independent) / s.residual
        # Rows of the residual, and rows of the priors theta / sigma.
        A = np.vstack([trust * J, np.diag(1 / sigma)])
        b = np.concatenate([-trust * e.ravel(), -theta / sigma])
        theta = theta + np.linalg.lstsq(A, b, rcond=None)[0]
    someone, given = applied(theta)
    rms = [np.sqrt((r**2).mean(axis=0)) for r in (first, residual(theta))]
    zeros = {name: theta[4 + 6 * k : 10 + 6 * k] for k, name in enumerate(names)}
    return Constants(someone, given, 1 + float(theta[0]), theta[1:4], zeros, rms[0], rms[1])


def trunk_of(person: Person) -> str:
    """Return the heaviest body other than the root."""
    others = list(person.bodies[1:]) or list(person.bodies)
    return max(others, key=lambda b: b.mass).name


def _mean_point(wrench: np.ndarray) -> np.ndarray:
    """Return the point (3,) [m] of least moment of the mean loaded wrench (T, 6)."""
    loaded = wrench[np.linalg.norm(wrench[:, :3], axis=1) > LOAD]
    if not len(loaded):
        return np.zeros(3)
    F, M = loaded[:, :3].mean(axis=0), loaded[:, 3:].mean(axis=0)
    # Foot of the perpendicular from the origin onto the line of action.
    return np.asarray(np.cross(F, M) / (F @ F))


# -------- Recordings


@dataclass(frozen=True, eq=False)
class Tracking:
    """Forward tracking of a recording.

    Attributes:
        constants: over all known frames.
        motion: NaN in frames not tracked.
    """

    constants: Constants
    motion: TrackedMotion


def track_recording(
    person: Person,
    times: np.ndarray,
    motion: tuple[np.ndarray, np.ndarray, np.ndarray],
    loads: Loads,
    variance: tuple[np.ndarray, np.ndarray],
    known: np.ndarray,
    settings: TrackingSettings,
) -> Tracking | None:
    """Fit constants and track each stretch of known forces, or return None.

    Args:
        times: (T,) [s].
        motion: q, qd, qdd (T, n).
        loads: body -> (T, 6).
        variance: W_a (T, n), root_variance (T, 6, 6).
        known: (T,); other frames are not read.
    """
    runs = np.split(np.flatnonzero(known), np.flatnonzero(np.diff(np.flatnonzero(known)) > 1) + 1)
    runs = [rows for rows in runs if len(rows) >= LEAST_FRAMES]
    if not runs:
        return None
    rows = np.concatenate(runs)
    constants = find_constants(person, cut(motion, rows), {b: w[rows] for b, w in loads.items()})
    T, n = motion[0].shape
    out = TrackedMotion(np.array(times), *(np.full((T, k), np.nan) for k in (n, n, n, n, ROOT, n)))
    for rows in runs:
        given = {body: w[np.searchsorted(np.concatenate(runs), rows)] for body, w in constants.loads.items()}
        parts = variance[0][rows], variance[1][rows]
        found = track(constants.person, times[rows], cut(motion, rows), given, parts, settings)
        for name in ("q", "qd", "qdd", "tau", "residual", "error"):
            getattr(out, name)[rows] = getattr(found, name)
    return Tracking(constants, out)


def cut(
    motion: tuple[np.ndarray, np.ndarray, np.ndarray], rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return some frames of q, qd, qdd."""
    q, qd, qdd = motion
    return q[rows], qd[rows], qdd[rows]


# -------- Compiled


class TrackRecord(NamedTuple):
    """Inputs, outputs and work memory of tracking.

    Attributes:
        frame: single frame.
        times: (T,) [s].
        q: (T, n) measured.
        qd: (T, n).
        qdd: (T, n).
        wrenches: (T, k, 6).
        W_a: (T, n).
        W_root: (T or 0, 6, 6).
        start: (2 n,) change of the start.
        rate: c [1/s].
        longest: step [s].
        x: (T, n) tracked q.
        v: (T, n).
        a: (T, n).
        tau: (T, n).
    """

    frame: DynamicsRecord
    times: F1
    q: F2
    qd: F2
    qdd: F2
    wrenches: F3
    W_a: F2
    W_root: F3
    start: F1
    rate: float
    longest: float
    x: F2
    v: F2
    a: F2
    tau: F2


@kernel
def measured_at(record: TrackRecord, t: int, u: float, out: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    """Interpolate at share u after frame t by the quintic through q, q', q''."""
    last = min(t + 1, len(record.times) - 1)
    h = max(record.times[last] - record.times[t], 1e-9)
    for c in range(record.q.shape[1]):
        q0, q1 = record.q[t, c], record.q[last, c]
        v0, v1, a0, a1 = h * record.qd[t, c], h * record.qd[last, c], h * h * record.qdd[t, c], 0.0
        a1 = h * h * record.qdd[last, c]
        d = q1 - q0
        # Coefficients of u^3, u^4, u^5 of the quintic Hermite polynomial. Derivatives are by u, hence h and h^2.
        c3 = 10.0 * d - 6.0 * v0 - 4.0 * v1 - 1.5 * a0 + 0.5 * a1
        c4 = -15.0 * d + 8.0 * v0 + 7.0 * v1 + 1.5 * a0 - a1
        c5 = 6.0 * d - 3.0 * (v0 + v1) - 0.5 * (a0 - a1)
        out[0][c] = q0 + u * (v0 + u * (0.5 * a0 + u * (c3 + u * (c4 + u * c5))))
        out[1][c] = (v0 + u * (a0 + u * (3.0 * c3 + u * (4.0 * c4 + u * 5.0 * c5)))) / h
        out[2][c] = (a0 + u * (6.0 * c3 + u * (12.0 * c4 + u * 20.0 * c5))) / (h * h)


@kernel(allocates=True)
def follow(table: Table[TrackRecord]) -> None:
    """Integrate a `TrackRecord` from its first to its last frame."""
    record = unpack(table, TrackRecord)
    frame, n, c = record.frame, record.q.shape[1], record.rate
    work = make_correction_work(n)
    measured = (np.zeros(n), np.zeros(n), np.zeros(n))
    x, v = record.q[0] + record.start[:n], record.qd[0] + record.start[n:]
    T = len(record.times)
    for t in range(T):
        last = min(t + 1, T - 1)
        h = record.times[last] - record.times[t]
        # Equal steps within the frame, none longer than `longest`.
        steps = max(1, int(np.ceil(h / record.longest)))
        # Variances are piecewise constant over a frame; motion and wrenches are interpolated at each step.
        frame.correction.W_a[0] = record.W_a[t]
        if len(record.W_root):
            frame.correction.W_root[0] = record.W_root[t]
        for k in range(steps):
            u = k / steps
            measured_at(record, t, u, measured)
            frame.wrenches[0] = (1.0 - u) * record.wrenches[t] + u * record.wrenches[last]
            frame.q[0], frame.qd[0] = x, v
            # Critically damped return to the measurement, then corrected by the plates in `forces_of_frame`.
            for i in range(n):
                frame.qdd[0, i] = measured[2][i] - 2.0 * c * (v[i] - measured[1][i]) - c * c * (x[i] - measured[0][i])
            frame.corrected[0] = frame.qdd[0]
            forces_of_frame(frame, np.int64(0), work)  # np.int64: a literal would compile another version
            if k == 0:
                record.x[t], record.v[t] = x, v
                record.a[t], record.tau[t] = frame.corrected[0], frame.tau[0]
            dt = h / steps
            for i in range(n):
                # Second-order step: x += dt v + dt^2 a / 2.
                x[i] += dt * (v[i] + 0.5 * dt * frame.corrected[0, i])
                v[i] += dt * frame.corrected[0, i]
