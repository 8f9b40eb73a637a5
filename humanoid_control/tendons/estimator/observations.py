"""Observation models: measured lengths, eq. (2) of Kawaharazuka 2018, or their changes, its eqs (11) and (12).

A relative observation compares two instants: the angles now, c + d, with those of an earlier instant, c, which stay in
the state. Its measurement is the change of the lengths between them, f(c + d) - f(c).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import F1, F2, F3
from humanoid_control.numerics.packed import Packed, Table, unpack
from humanoid_control.tendons.estimator.kalman import Estimate
from humanoid_control.tendons.estimator.prediction import linearisation_variance, squared_pseudo_inverse
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.mapping import Array, JointMuscleMapping

SAMPLES, SHARE = 8, 0.7  # postures, and share of each range, that the mean squared Hessian is taken over
MOVED = 5.0  # a joint that moved by less than so many deviations of the noise counts as resting; noise hardly ever does
BENT = 0.25  # share of its noise by which a length may bend over the step of an update, or that is made again
CLEAR = 2.0  # by how many deviations of what the motion is uncertain a moment arm must have changed to tell anything


class FilterState(Protocol):
    """The filter of D angles and M lengths that an observation belongs to, as far as the observation needs it.

    Attributes:
        d: D. x: (n,) state, the angles first. P: (n, n) its covariance.
        G: (M, D) moment arms at the last prediction [m/rad]. delta: (D,) change of the angles predicted [rad].
        dz: (M,) change of the lengths since the last step [m]. now: (M,) lengths now [m].
        allowed, use: (M,) 1 where the step may use, the last update used, the tendon.
        since: steps since the state was last started, -1 before the first.
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
        """(M,) lengths now, calibrated [m]."""

    @property
    def theta(self) -> Array:
        """(D,) angles [rad]."""

    @property
    def variance(self) -> Array:
        """(D,) variances of the angles [rad^2]."""


class Observation:
    """Observation of D angles by M lengths.

    Attributes:
        instants: how often the state has the angles. locates: True where lengths tell the posture
            as such; changes do so too weakly to tell a wrong posture from wrong moment arms.
        H: (M, n) Jacobian by the state. nu: (M,) innovation [m].
        R: (M,) variance, of what a linear update neglects too, so that weights and gate are right far from the truth as
            well [m^2]. lengths: (M,) that the angles would have [m]; by changes alone only their changes count.
        mean_squared_hessian: (M, D, D) of the lengths by the angles [m^2/rad^4].
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
        """Size of the state for D angles and M lengths."""
        return self.instants * d

    def restart(self, f: FilterState) -> None:
        """The filter was set to other angles."""

    def predicted(self, f: FilterState) -> None:
        """The filter has moved its angles by `f.delta` for changes `f.dz` of the lengths, from where they had f.G."""

    def compare(self, f: FilterState) -> bool:
        """Fill H, nu and R at the predicted angles; False while there is nothing to compare with."""
        raise NotImplementedError

    def relinearise(self, f: FilterState, prior: Array) -> bool:
        """Where an update led so far that its linearisation was wrong there, fill H, nu and R about that posture.

        Args:
            f: the filter after the update. prior: (n,) its state before.

        Returns:
            False where the update may stand.
        """
        return False

    def close(self, f: FilterState) -> None:
        """The filter has updated its angles."""


def mean_squared_hessian(mapping: JointMuscleMapping) -> Array:
    """(M, D, D) mean square over postures of each second derivative of each length [m^2/rad^4].

    It tells what a linearised filter neglects.
    """
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
        # over a step of no angle longer than this a length bends by a share of its noise: |K dq dq / 2| <= share noise
        bend = 0.25 * self.mean_squared_hessian.sum(axis=(1, 2)).max(initial=1e-12)
        self.straight = float((BENT * settings.length_noise) ** 0.5 / bend**0.25)

    def compare(self, f: FilterState) -> bool:
        """As the interface says."""
        self._at[:] = f.theta
        self.mapping.evaluate_into(f.theta, self.lengths, self.H)
        np.subtract(f.measured, self.lengths, out=self.nu)
        linearisation_variance(self.mean_squared_hessian, f.variance, f.variance, 0.5, self.r, self.R)
        return True

    def relinearise(self, f: FilterState, prior: Array) -> bool:
        """As the interface says: z - f(at) - H (prior - at), with the error of `at` that the update left."""
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
    """Changes in one step: as printed ("literal"), or by the differentiated mapping ("r1").

    As printed dz = G dtheta, eq. (12), is true of any prediction by the same tendons: dead reckoning. With the state in
    G, dz = G(theta) dtheta, the change of the moment arms tells the angles.
    """

    def predicted(self, f: FilterState) -> None:
        """As the interface says; the Jacobian belongs to the estimate before the step, which is at hand here."""
        np.subtract(f.dz, f.G @ f.delta, out=self.nu)
        f.allowed *= f.use  # a change that contradicted the others is no measurement either
        if self.settings.observation == "literal":
            self.H[:] = f.G
        else:
            self.mapping.directional_into(f.x - f.delta, f.delta, self.H)
            linearisation_variance(self.mean_squared_hessian, f.variance, f.delta**2, 1.0, self.r, self.R)

    def compare(self, f: FilterState) -> bool:
        """As the interface says."""
        return f.since >= 1


# -------- Two instants


class InstantArms(NamedTuple):
    """Moment arms (M, D) [m/rad].

    Attributes:
        now: at the angles now. moved: at the angles of `moved_angles`. before: at those of the earlier instant.
    """

    now: F2
    moved: F2
    before: F2


class TwoInstantNoise(NamedTuple):
    """Noise of a comparison of two instants.

    Attributes:
        hessian: (M, D, D) mean squares of the second derivatives K of the lengths [m^2/rad^4].
        r: (M,) variance of the measured change [m^2].
        motion: (D,) variance of d, how far the angles have moved [rad^2].
    """

    hessian: F3
    r: F1
    motion: F1


@kernel
def moved_angles(estimate: Estimate, B: np.ndarray, noise: TwoInstantNoise, least: float, moved: np.ndarray) -> int:
    """The angles now without the motion that noise alone may have made; how many joints moved.

    At rest the noise of the lengths moves the estimate by (G^T G)^+ times its variance. A joint that moved by less than
    some deviations of that counts as resting: one test of all tendons together, which noise hardly ever passes.

    Args:
        estimate: angles now c + d, then those of the earlier instant c [rad].
        B: (D, D) (G^T G)^+ now. least: [standard deviations].
        noise: its `motion` is written, to which the error of the moment arms adds, K e_c d.
        moved: (D,), written: c + d, of resting joints c [rad].
    """
    x, P, hessian, r = estimate.x, estimate.P, noise.hessian, noise.r
    m, d = hessian.shape[0], B.shape[0]
    change, arms = 0.0, 0.0  # mean over the tendons of the variance of a change, without and with wrong moment arms
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
        if (x[a] - x[d + a]) ** 2 > least * least * B[a, a] * change:
            moved[a] = x[a]
            count += 1
        noise.motion[a] = B[a, a] * arms
    return count


@kernel
def compare_instants(
    estimate: Estimate, arms: InstantArms, noise: TwoInstantNoise, clear: float, H: np.ndarray, R: np.ndarray
) -> None:
    """Jacobian and variance of f(c + d) - f(c): c the angles at the earlier instant, d how far they have moved.

    By (d, c) the Jacobian is G(c + d) and G(c + d) - G(c). The second tells where the robot is, and motion makes it.
    But errors of d make it as well, and what a filter learns from that is wrong and never ends. So each entry keeps
    only what exceeds `clear` times the deviation that the variance of d gives it.

    The variance is that of the measurement, and of what a linear update neglects: e_c K e_d and
    e_c (K(c + d) - K(c)) e_c / 2. Derivatives by an angle are of about the same size in each order, so the latter is
    taken as |d| e_c K e_c / 2.

    Args:
        estimate: (2 D, ...) c + d, then c [rad].
        clear: [standard deviations].
        H: (M, 2 D, ...), R: (M,), written: Jacobian by the state, and variance.
    """
    x, P, hessian = estimate.x, estimate.P, noise.hessian
    m, d = arms.now.shape
    for i in range(m):
        size, linear, square = 0.0, 0.0, 0.0
        for a in range(d):
            change = arms.moved[i, a] - arms.before[i, a]
            variance = 0.0
            if hessian[i, a, a] > 0.0:
                error = P[d + a, d + a]
                size += (x[a] - x[d + a]) ** 2
                for e in range(d):
                    variance += hessian[i, a, e] * noise.motion[e]
                    square += hessian[i, a, e] * error * P[d + e, d + e]
                linear += error * variance
            left = change * change - clear * clear * variance
            if left > 0.0:
                change = left**0.5 if change > 0.0 else -(left**0.5)
            else:
                change = 0.0
            H[i, a] = arms.now[i, a]
            H[i, d + a] = change - arms.now[i, a]
        R[i] = noise.r[i] + linear + 0.5 * size * square


class TwoInstants(NamedTuple):
    """Arguments of the kernels of a comparison of two instants, except for the filter's state.

    Attributes:
        arms: moment arms; `moved` is for where some joints moved and others did not.
        ends, noise: with the variance of a change of which both ends are new, and with that of the observation.
        A, B, L: (D, D) memory, B (G^T G)^+ now. angles: (D,) of `moved_angles` [rad].
        H, R: Jacobian and variance, written.
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
    """`moved_angles` of packed `TwoInstants` with the tendons in use (M,); how many joints moved."""
    t = unpack(table, TwoInstants)
    squared_pseudo_inverse(t.arms.now, use, cutoff, t.A, t.B, t.L)
    return moved_angles(Estimate(x, P), t.B, t.ends, MOVED, t.angles)


@kernel
def compare_instants_at(table: Table[TwoInstants], x: np.ndarray, P: np.ndarray, count: int) -> None:
    """`compare_instants` of packed `TwoInstants`, of whose joints so many have moved."""
    t = unpack(table, TwoInstants)
    arms = t.arms
    if count == arms.now.shape[1]:
        arms = InstantArms(arms.now, arms.now, arms.before)
    elif count == 0:
        arms = InstantArms(arms.now, arms.before, arms.before)
    compare_instants(Estimate(x, P), arms, t.noise, CLEAR, t.H, t.R)


class RelativeObservation(Observation):
    """Changes since some steps ago (r2): each comparison begins a new one, with the noise of both its ends for new."""

    instants = 2

    def __init__(self, mapping: JointMuscleMapping, settings: EstimatorSettings) -> None:
        super().__init__(mapping, settings)
        m, d = len(mapping.muscle_names), len(mapping.joint_names)
        self._G, self._before, self._moved_G = np.zeros((m, d)), np.zeros((m, d)), np.zeros((m, d))
        self._f, self._z, self._unused = np.zeros(m), np.full(m, np.nan), np.zeros(m)
        self._angles = np.zeros(d)
        both_ends = np.full(m, 2 * settings.length_noise**2)  # of a change: both its ends are measured [m^2]
        ends = TwoInstantNoise(self.mean_squared_hessian, both_ends, np.zeros(d))
        arms, memory = (
            InstantArms(self._G, self._moved_G, self._before),
            (np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))),
        )
        self._packed = Packed(TwoInstants(arms, ends, ends._replace(r=self.r), *memory, self._angles, self.H, self.R))

    def restart(self, f: FilterState) -> None:
        """The angles now become those of the earlier instant, and so do the lengths if there are any yet."""
        d = f.d
        f.x[d : 2 * d] = f.x[:d]
        f.P[: 2 * d, : 2 * d] = np.tile(f.P[:d, :d], (2, 2))
        self.mapping.evaluate_into(f.x[d : 2 * d], self._f, self._before)
        self._z[:] = f.now

    def compare(self, f: FilterState) -> bool:
        """As the interface says."""
        if f.since == 0:  # the first lengths: nothing to compare with yet
            self.restart(f)
        if f.since < self.settings.every:
            return False
        self._compare(f)
        return True

    def _compare(self, f: FilterState) -> None:
        """H, nu and R of the change since the earlier instant, whose lengths and Jacobian are at hand."""
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
        """After `every` steps the estimate becomes the earlier instant to compare with."""
        if f.since >= self.settings.every:
            self.restart(f)
            f.since = 0


class PowerOnObservation(RelativeObservation):
    """Changes since power-on (r3), compared in every step: z - z_0 = f(theta) - f(theta_0) + n - n_0.

    The noise n_0 of the first lengths is the same in all of them. Taken for new each time it would average out, and the
    filter become too sure without end. So n_0 is in the state, as what is wrong with each first length, (M,) after the
    angles of both instants; then only n is new, and the update is exact for a linear mapping.
    """

    def __init__(self, mapping: JointMuscleMapping, settings: EstimatorSettings) -> None:
        super().__init__(mapping, settings)
        m, d = len(mapping.muscle_names), len(mapping.joint_names)
        self.r[:] = settings.length_noise**2
        self.H[:, 2 * d :] = -np.eye(m)

    def states(self, d: int, m: int) -> int:
        """As the interface says."""
        return 2 * d + m

    def restart(self, f: FilterState) -> None:
        """As the interface says: power-on is now."""
        super().restart(f)
        first = 2 * f.d
        f.x[first:] = 0.0
        f.P[first:], f.P[:, first:] = 0.0, 0.0
        f.P.flat[first * (f.P.shape[1] + 1) :: f.P.shape[1] + 1] = self.settings.length_noise**2

    def compare(self, f: FilterState) -> bool:
        """As the interface says."""
        d = f.d
        if f.since == 0:
            self.restart(f)
        if f.since < 1:
            return False
        # the angles at power-on are corrected with every update
        self.mapping.evaluate_into(f.x[d : 2 * d], self._f, self._before)
        self._compare(f)
        self.nu += f.x[2 * d :]
        return True

    def close(self, f: FilterState) -> None:
        """Power-on stays the earlier instant."""


KINDS: dict[str, type[Observation]] = {
    "absolute": AbsoluteObservation,
    "literal": IncrementObservation,
    "r1": IncrementObservation,
    "r2": RelativeObservation,
    "r3": PowerOnObservation,
}


def observation_of(mapping: JointMuscleMapping, settings: EstimatorSettings) -> Observation:
    """The observation that the settings name."""
    return KINDS[settings.observation](mapping, settings)
