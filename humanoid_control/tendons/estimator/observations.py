"""Observation models: lengths, eq. (2) of Kawaharazuka 2018, or length changes, eqs (11) and (12).

A relative observation f(c + d) - f(c) compares the present angles c + d with those of an earlier instant, c, which stay
in the state.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, F3
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.tendons.estimator.kalman import Estimate
from humanoid_control.tendons.estimator.prediction import linearisation_variance, squared_pseudo_inverse
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.mapping import Array, JointMuscleMapping

SAMPLES, SHARE = 8, 0.7  # postures and fraction of each range for the mean squared Hessian
MOVED = 5.0  # standard deviations of noise below which a joint counts as resting
BENT = 0.25  # admissible curvature error of an update, relative to the length noise
CLEAR = 2.0  # standard deviations by which a moment arm must have changed to be informative


class FilterState(Protocol):
    """Filter of D angles and M lengths, as seen by its observation.

    Attributes:
        x: (n,) state, angles first.
        P: (n, n) covariance.
        G: (M, D) moment arms at the last prediction [m/rad].
        delta: (D,) predicted angle change [rad].
        dz: (M,) length change [m].
        now: (M,) lengths [m].
        allowed: (M,) 1: usable.
        use: (M,) 1: used by the last update.
        since: steps since the start, -1 before the first.
    """

    d: int
    x: Array
    P: Array
    G: Array
    delta: Array
    dz: Array
    now: Array
    allowed: Any
    use: Any
    since: int

    @property
    def measured(self) -> Array:
        """(M,) calibrated lengths [m]."""

    @property
    def theta(self) -> Array:
        """(D,) angles [rad]."""

    @property
    def variance(self) -> Array:
        """(D,) angle variances [rad^2]."""


class Observation:
    """Observation of D angles by M lengths.

    Attributes:
        instants: copies of the angles in the state.
        locates: lengths determine the posture by themselves.
        H: (M, n) Jacobian.
        nu: (M,) innovation [m].
        R: (M,) variance, linearisation error included [m^2].
        lengths: (M,) lengths at the angles [m].
        mean_squared_hessian: (M, D, D) of lengths by angles [m^2/rad^4].
    """

    instants = 1
    locates = False

    def __init__(self, mapping: JointMuscleMapping, settings: EstimatorSettings) -> None:
        m, d = len(mapping.muscle_names), len(mapping.joint_names)
        self.mapping, self.settings = mapping, settings
        self.lengths, self.nu = np.zeros(m), np.zeros(m)
        self.mean_squared_hessian = mean_squared_hessian(mapping)
        self.H = np.zeros((m, self.states(d, m)))
        self.r = np.full(m, settings.length_noise**2 * (1.0 if settings.observation == "absolute" else 2.0))
        self.R = self.r.copy()

    def states(self, d: int, m: int) -> int:
        return self.instants * d

    def restart(self, f: FilterState) -> None:
        """Restart after the filter was set to other angles."""

    def predicted(self, f: FilterState) -> None:
        """Process a prediction `f.delta` for length changes `f.dz`, from angles with f.G."""

    def compare(self, f: FilterState) -> bool:
        """Fill H, nu and R at the predicted angles; return False if no comparison is possible."""
        raise NotImplementedError

    def relinearise(self, f: FilterState, prior: Array) -> bool:
        """Refill H, nu and R at the updated posture if the linearisation was poor; return False if it was good.

        Args:
            f: filter after the update.
            prior: (n,) state before the update.
        """
        return False

    def close(self, f: FilterState) -> None:
        """Process the end of a step."""


def mean_squared_hessian(mapping: JointMuscleMapping) -> Array:
    """Return the mean square (M, D, D) of the second derivatives of lengths over postures [m^2/rad^4]."""
    d = len(mapping.joint_names)
    middle, half = mapping.limits.mean(axis=1), np.ptp(mapping.limits, axis=1) / 2
    rng = np.random.default_rng(0)
    out = np.zeros((len(mapping.muscle_names), d, d))
    for _ in range(SAMPLES):
        theta = middle + SHARE * half * rng.uniform(-1, 1, d)
        for e, along in enumerate(np.eye(d)):
            out[:, :, e] += mapping.jacobian_directional(theta, along) ** 2 / SAMPLES
    return out


class AbsoluteObservation(Observation):
    """z = f(theta), eq. (2)."""

    locates = True

    def __init__(self, mapping: JointMuscleMapping, settings: EstimatorSettings) -> None:
        super().__init__(mapping, settings)
        self._at = np.zeros(len(mapping.joint_names))
        # Longest step with negligible curvature: |K dq dq / 2| <= BENT * noise.
        bend = 0.25 * self.mean_squared_hessian.sum(axis=(1, 2)).max(initial=1e-12)
        self.straight = float((BENT * settings.length_noise) ** 0.5 / bend**0.25)

    def compare(self, f: FilterState) -> bool:
        self._at[:] = f.theta
        self.mapping.evaluate_into(f.theta, self.lengths, self.H)
        np.subtract(f.measured, self.lengths, out=self.nu)
        linearisation_variance(self.mean_squared_hessian, f.variance, f.variance, 0.5, self.r, self.R)
        return True

    def relinearise(self, f: FilterState, prior: Array) -> bool:
        """Fill nu with z - f(at) - H (prior - at)."""
        at = np.clip(f.theta, *self.mapping.limits.T)
        if np.abs(at - self._at).max() <= self.straight:
            return False
        self._at[:] = at
        self.mapping.evaluate_into(at, self.lengths, self.H)
        np.subtract(f.measured, self.lengths, out=self.nu)
        self.nu += self.H @ (at - prior)
        linearisation_variance(self.mean_squared_hessian, f.variance, f.variance, 0.5, self.r, self.R)
        return True


class IncrementObservation(Observation):
    """Changes in one step: "literal" (printed) or "r1" (differentiated mapping).

    The printed dz = G dtheta, eq. (12), is dead reckoning. In dz = G(theta) dtheta changing moment arms reveal the
    angles.
    """

    def predicted(self, f: FilterState) -> None:
        np.subtract(f.dz, f.G @ f.delta, out=self.nu)
        f.allowed *= f.use  # a change that contradicted the others is not a measurement
        if self.settings.observation == "literal":
            self.H[:] = f.G
        else:
            self.mapping.directional_into(f.x - f.delta, f.delta, self.H)
            linearisation_variance(self.mean_squared_hessian, f.variance, f.delta**2, 1.0, self.r, self.R)

    def compare(self, f: FilterState) -> bool:
        return f.since >= 1


# -------- Two instants


class InstantArms(NamedTuple):
    """Moment arms (M, D) [m/rad].

    Attributes:
        now: at the present angles.
        moved: at the angles of `moved_angles`.
        before: at the earlier instant.
    """

    now: F2
    moved: F2
    before: F2


class TwoInstantNoise(NamedTuple):
    """Noise of a comparison of two instants.

    Attributes:
        hessian: (M, D, D) mean squares of second derivatives K [m^2/rad^4].
        r: (M,) variance of the measured change [m^2].
        motion: (D,) variance of the motion d [rad^2].
    """

    hessian: F3
    r: F1
    motion: F1


@kernel
def moved_angles(estimate: Estimate, B: np.ndarray, noise: TwoInstantNoise, least: float, moved: np.ndarray) -> int:
    """Write the present angles, resting joints at c, into moved (D,) [rad]; return the number of moved joints.

    Args:
        estimate: c + d, then c [rad].
        B: (D, D) (G^T G)^+.
        noise: `motion` is output.
        least: threshold [standard deviations].
        moved: output.
    """
    x, P, hessian, r = estimate.x, estimate.P, noise.hessian, noise.r
    m, d = hessian.shape[0], B.shape[0]
    change, arms = 0.0, 0.0  # mean variance of a length change, without and with the moment-arm error K e_c d
    # E[(K e_c d)^2]: independent errors e_c of the angles, motion d known.
    for i in range(m):
        mixed = 0.0
        for a in range(d):
            if hessian[i, a, a] > 0.0:
                move = (x[a] - x[d + a]) ** 2
                for e in range(d):
                    mixed += hessian[i, a, e] * move * P[d + e, d + e]
        change += r[i] / m
        arms += (r[i] + mixed) / m
    count = 0
    for a in range(d):
        moved[a] = x[d + a]
        # Noise at rest moves the estimate with covariance (G^T G)^+ times the length variance.
        if (x[a] - x[d + a]) ** 2 > least * least * B[a, a] * change:
            moved[a] = x[a]
            count += 1
        noise.motion[a] = B[a, a] * arms
    return count


@kernel
def compare_instants(
    estimate: Estimate, arms: InstantArms, noise: TwoInstantNoise, clear: float, H: np.ndarray, R: np.ndarray
) -> None:
    """Fill H (M, 2 D, ...) and R (M,) with Jacobian and variance of f(c + d) - f(c).

    The estimate is c + d, then c [rad]; `clear` is in standard deviations.
    """
    x, P, hessian = estimate.x, estimate.P, noise.hessian
    m, d = arms.now.shape
    # By (d, c) the Jacobian is G(c + d) and G(c + d) - G(c). The second part locates the posture, but errors of d mimic
    # it. So each of its entries is reduced by `clear` standard deviations due to d. The variance adds the linearisation
    # errors e_c K e_d and e_c (K(c + d) - K(c)) e_c / 2, the latter taken as |d| e_c K e_c / 2.
    for i in range(m):
        size, linear, square = 0.0, 0.0, 0.0
        for a in range(d):
            change = arms.moved[i, a] - arms.before[i, a]
            variance = 0.0
            # Tendons that do not cross a joint have a zero Hessian there.
            if hessian[i, a, a] > 0.0:
                error = P[d + a, d + a]
                size += (x[a] - x[d + a]) ** 2
                for e in range(d):
                    variance += hessian[i, a, e] * noise.motion[e]
                    square += hessian[i, a, e] * error * P[d + e, d + e]
                linear += error * variance
            # Soft threshold: keep the part of the change beyond the noise of d.
            left = change * change - clear * clear * variance
            if left > 0.0:
                change = left**0.5 if change > 0.0 else -(left**0.5)
            else:
                change = 0.0
            # By the state (c + d, c) instead of (d, c).
            H[i, a] = arms.now[i, a]
            H[i, d + a] = change - arms.now[i, a]
        R[i] = noise.r[i] + linear + 0.5 * size * square


class TwoInstants(NamedTuple):
    """Kernel arguments of a comparison of two instants.

    Attributes:
        arms: moment arms.
        ends: noise of a change with two new ends.
        noise: noise of the observation.
        A: (D, D) memory.
        B: (D, D) (G^T G)^+.
        L: (D, D) memory.
        angles: (D,) of `moved_angles` [rad].
        H: Jacobian.
        R: variance.
    """

    arms: InstantArms
    ends: TwoInstantNoise
    noise: TwoInstantNoise
    A: F2
    B: F2
    L: F2
    angles: F1
    H: F2
    R: F1


@kernel
def moved_angles_at(table: Table[TwoInstants], x: np.ndarray, P: np.ndarray, use: np.ndarray, cutoff: float) -> int:
    """Run `moved_angles` for the tendons in use (M,)."""
    t = unpack(table, TwoInstants)
    squared_pseudo_inverse(t.arms.now, use, cutoff, t.A, t.B, t.L)
    return moved_angles(Estimate(x, P), t.B, t.ends, MOVED, t.angles)


@kernel
def compare_instants_at(table: Table[TwoInstants], x: np.ndarray, P: np.ndarray, count: int) -> None:
    """Run `compare_instants` with `count` moved joints."""
    # No joint or every joint moved: reuse moment arms instead of evaluating them at the mixed angles.
    t = unpack(table, TwoInstants)
    arms = t.arms
    if count == arms.now.shape[1]:
        arms = InstantArms(arms.now, arms.now, arms.before)
    elif count == 0:
        arms = InstantArms(arms.now, arms.before, arms.before)
    compare_instants(Estimate(x, P), arms, t.noise, CLEAR, t.H, t.R)


class RelativeObservation(Observation):
    """Changes since an earlier instant (r2); each comparison starts a new one with new noise at both ends."""

    instants = 2

    def __init__(self, mapping: JointMuscleMapping, settings: EstimatorSettings) -> None:
        super().__init__(mapping, settings)
        m, d = len(mapping.muscle_names), len(mapping.joint_names)
        self._G, self._before, self._moved_G = np.zeros((m, d)), np.zeros((m, d)), np.zeros((m, d))
        self._f, self._z, self._unused = np.zeros(m), np.full(m, np.nan), np.zeros(m)
        self._angles = np.zeros(d)
        both_ends = np.full(m, 2 * settings.length_noise**2)  # a change has noise at both ends [m^2]
        ends = TwoInstantNoise(self.mean_squared_hessian, both_ends, np.zeros(d))
        arms, memory = (
            InstantArms(self._G, self._moved_G, self._before),
            (np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))),
        )
        self._packed = Packed(TwoInstants(arms, ends, ends._replace(r=self.r), *memory, self._angles, self.H, self.R))

    def restart(self, f: FilterState) -> None:
        """Make the present angles and lengths the earlier instant."""
        d = f.d
        f.x[d : 2 * d] = f.x[:d]
        f.P[: 2 * d, : 2 * d] = np.tile(f.P[:d, :d], (2, 2))
        self.mapping.evaluate_into(f.x[d : 2 * d], self._f, self._before)
        self._z[:] = f.now

    def compare(self, f: FilterState) -> bool:
        if f.since == 0:  # first lengths: no earlier instant yet
            self.restart(f)
        if f.since < self.settings.every:
            return False
        self._compare(f)
        return True

    def _compare(self, f: FilterState) -> None:
        d, table = f.d, self._packed.table
        self.mapping.evaluate_into(f.x[:d], self.lengths, self._G)
        count = moved_angles_at(table, f.x, f.P, f.use, self.settings.cutoff)
        if 0 < count < d:
            self.mapping.evaluate_into(self._angles, self._unused, self._moved_G)
        compare_instants_at(table, f.x, f.P, count)
        np.subtract(f.now, self._z, out=self.nu)
        self.nu -= self.lengths
        self.nu += self._f

    def close(self, f: FilterState) -> None:
        """Make the estimate the earlier instant after `every` steps."""
        if f.since >= self.settings.every:
            self.restart(f)
            f.since = 0


class PowerOnObservation(RelativeObservation):
    """Changes since power-on (r3), at each step: z - z_0 = f(theta) - f(theta_0) + n - n_0.

    The state includes the noise n_0 (M,) of the first lengths, which would otherwise average out and make the filter
    overconfident.
    """

    def __init__(self, mapping: JointMuscleMapping, settings: EstimatorSettings) -> None:
        super().__init__(mapping, settings)
        m, d = len(mapping.muscle_names), len(mapping.joint_names)
        self.r[:] = settings.length_noise**2
        self.H[:, 2 * d :] = -np.eye(m)

    def states(self, d: int, m: int) -> int:
        return 2 * d + m

    def restart(self, f: FilterState) -> None:
        """Make this instant power-on."""
        super().restart(f)
        first = 2 * f.d
        f.x[first:] = 0.0
        f.P[first:], f.P[:, first:] = 0.0, 0.0
        f.P.flat[first * (f.P.shape[1] + 1) :: f.P.shape[1] + 1] = self.settings.length_noise**2

    def compare(self, f: FilterState) -> bool:
        d = f.d
        if f.since == 0:
            self.restart(f)
        if f.since < 1:
            return False
        # updates also correct the angles at power-on
        self.mapping.evaluate_into(f.x[d : 2 * d], self._f, self._before)
        self._compare(f)
        self.nu += f.x[2 * d :]
        return True

    def close(self, f: FilterState) -> None:
        """Keep power-on as the earlier instant."""


KINDS: dict[str, type[Observation]] = {
    "absolute": AbsoluteObservation,
    "literal": IncrementObservation,
    "r1": IncrementObservation,
    "r2": RelativeObservation,
    "r3": PowerOnObservation,
}


def observation_of(mapping: JointMuscleMapping, settings: EstimatorSettings) -> Observation:
    """Return the observation named by the settings."""
    return KINDS[settings.observation](mapping, settings)
