"""Recovery of a filter that is sure of a wrong posture: a search for the posture that the lengths tell.

An extended Kalman filter that took one linearisation too many at the wrong place can settle where its lengths
contradict it. Its covariance shrinks all the same, and with it what a right length may still move; the gate then calls
the right tendons faulty. Where the innovations are those of no honest filter (`InnovationTest`), or several tendons of
a group are left out, the posture is sought from several starts by the lengths themselves (Levenberg-Marquardt). It is
taken where it explains what is measured and the estimate does not; the lengths then give the covariance as well. Where
tendons do lie, no posture explains them, and the estimate stays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.mapping import Array, JointMuscleMapping

# -------- Posture by lengths

HUBER = 3.0  # standard deviations from which a length pulls no harder, so that a faulty tendon leads nowhere
ITERATIONS, ENOUGH = 15, 1e-3  # of one fit at most; decrease of the cost that is none any more
CAP = 36.0  # squared error of a length that is not explained, however large [variances]
LONGEST_STEP = 0.5  # of any joint in one iteration [rad]


@dataclass(frozen=True)
class MeasuredPosture:
    """Lengths of a posture, and what is known of it beforehand.

    Attributes:
        z: (M,) lengths [m], NaN where missing. noise: [m].
        limits: (D, 2) [rad]. limit_noise: [rad].
        near: (D,) where the posture is about [rad]. start: (D,) deviation from there [rad].
    """

    z: Array
    noise: float
    limits: Array
    limit_noise: float
    near: Array
    start: Array


class PostureFit:
    """Posture of some lengths by Levenberg-Marquardt with Huber's weights.

    Attributes:
        theta: (D,) posture [rad]. cost: with Huber's loss [variances]. done: True where nothing is gained any more.
    """

    def __init__(
        self, mapping: JointMuscleMapping, measured: MeasuredPosture, theta: Array, held: Array | None = None
    ) -> None:
        """Begin at a posture theta (D,) [rad]; held (D, D) is the information that it stays `near`."""
        self._mapping, self.measured = mapping, measured
        self._known = np.isfinite(measured.z)
        self._z = np.where(self._known, measured.z, 0.0)
        self._prior = np.diag(1.0 / np.maximum(measured.start, 1e-9) ** 2)
        if held is not None:
            self._prior += held
        self.theta = np.clip(theta, *measured.limits.T)
        self.done, self._damping, self._count = False, 1e-3, 0
        self._e, self._G = self._evaluated(self.theta)
        self.cost = self._cost(self.theta, self._e)

    def _evaluated(self, theta: Array) -> tuple[Array, Array]:
        """(M,) errors of the lengths and (M, D) moment arms [standard deviations, by rad]."""
        lengths, G = self._mapping.evaluate(theta)
        noise = self.measured.noise
        return np.asarray(np.where(self._known, self._z - lengths, 0.0) / noise), G / noise

    def _beyond(self, theta: Array) -> Array:
        """(D,) how far a posture is beyond the limits [rad]."""
        return np.asarray(theta - np.clip(theta, *self.measured.limits.T))

    def _prior_cost(self, theta: Array) -> float:
        off = theta - self.measured.near
        return float(off @ self._prior @ off + np.sum((self._beyond(theta) / self.measured.limit_noise) ** 2))

    def _cost(self, theta: Array, e: Array) -> float:
        size = np.abs(e)
        huber = np.where(size < HUBER, size**2, 2.0 * HUBER * size - HUBER**2)
        return float(huber.sum()) + self._prior_cost(theta)

    def iterate(self) -> None:
        """One iteration, with one evaluation of the mapping."""
        A, g = self._normal_equations()
        A.flat[:: len(A) + 1] *= 1.0 + self._damping
        step = np.linalg.solve(A, g)
        step *= min(1.0, LONGEST_STEP / max(float(np.abs(step).max()), 1e-12))
        theta = self.theta + step
        e, G = self._evaluated(theta)
        cost = self._cost(theta, e)
        self._count += 1
        if cost < self.cost:
            self.done = self.cost - cost < ENOUGH * (1.0 + cost)
            self.theta, self._e, self._G, self.cost = theta, e, G, cost
            self._damping = max(self._damping / 10.0, 1e-9)
        else:
            self._damping *= 10.0
            self.done = self._damping > 1e6
        self.done |= self._count >= ITERATIONS

    def converge(self) -> Generator[None, None, None]:
        """Iterate until nothing is gained any more; yields after each iteration."""
        while not self.done:
            self.iterate()
            yield

    def _normal_equations(self) -> tuple[Array, Array]:
        """Information (D, D), and right-hand side (D,)."""
        e, m = self._e, self.measured
        weight = self._known * np.minimum(1.0, HUBER / np.maximum(np.abs(e), 1e-12))
        weighted = (weight[:, None] * self._G).T
        beyond, soft = self._beyond(self.theta), 1.0 / m.limit_noise**2
        A = weighted @ self._G + self._prior + np.diag((beyond != 0.0) * soft)
        return A, weighted @ e + self._prior @ (m.near - self.theta) - soft * beyond

    @property
    def squares(self) -> Array:
        """(M,) squared error of each length, counted as `CAP` at most [variances]."""
        return np.asarray(np.minimum(self._e**2, CAP))

    @property
    def prior_cost(self) -> float:
        """Part of the cost that is not the lengths' [variances]."""
        return self._prior_cost(self.theta)

    def covariance(self) -> Array:
        """(D, D) of the posture, by the lengths and by what was known beforehand [rad^2]."""
        P = np.linalg.inv(self._normal_equations()[0])
        return np.asarray(0.5 * (P + P.T))


# -------- Search

STARTS = 12  # of the search
BUDGET = 8  # iterations in one step while a search goes on
MARGIN = 1.5 * CAP  # gain of a posture that explains the lengths better: more than one length can say [variances]
PAUSE, LONGEST_PAUSE = 20, 2000  # steps until another search after one that found nothing; doubled every time, and
# halved every `SPACING` steps without a doubt: a hard moment is no reason to look away in the next one
SPACING = 10  # steps between estimates that are kept while they are not doubted
EXPLAINED = 2.5  # mean squared error of lengths that are explained, at most [variances]


class Found(NamedTuple):
    """Posture theta (D,) [rad] that a search found, and its covariance P (D, D) [rad^2]."""

    theta: Array
    P: Array


class PostureSearch:
    """Search for the posture of a group from several starts, a few iterations in every step of its filter.

    Args:
        mapping: of the group, of whose D joints the first `own` are its own.
        start: (D,) deviation of the first estimate [rad].

    Attributes:
        alarms: how often a search began.
    """

    def __init__(self, mapping: JointMuscleMapping, settings: EstimatorSettings, own: int, start: Array) -> None:
        self._mapping, self._settings, self._own, self._start = mapping, settings, own, np.asarray(start, float)
        self.alarms = 0
        self.reset()

    def reset(self) -> None:
        """Forget what was seen and sought before."""
        self._now, self._next, self._pause = 0, 0, PAUSE
        self._passed: deque[Array] = deque()
        self._rng = np.random.default_rng(0)
        self._trusted: Array | None = None
        self.stop()

    def stop(self) -> None:
        """End the search."""
        self._work: Generator[None, None, Found | None] | None = None

    @property
    def running(self) -> bool:
        """True while a search goes on."""
        return self._work is not None

    @property
    def due(self) -> bool:
        """True where a doubt is to begin a search now."""
        return self._work is None and self._now >= self._next

    def watch(self, step: int, z: Array, theta: Array, doubted: bool) -> None:
        """Take in a step by its number: lengths (M,) [m], estimate (D,) [rad], whether it is doubted.

        Needed while a search goes on or an estimate is doubted, and of every `SPACING`-th step.
        """
        self._now = step
        if self._work is not None:
            self._passed.append(z.copy())
        if step % SPACING == 0 and not doubted:
            self._trusted, self._pause = theta.copy(), max(self._pause // 2, PAUSE)
            self._next = min(self._next, step + self._pause)

    def begin(self, z: Array, theta: Array, P: Array, suspects: NDArray[np.bool_]) -> None:
        """Begin a search.

        Args:
            z: (M,) lengths now [m]. theta, P: (D,), (D, D) the estimate now [rad, rad^2].
            suspects: (M,) True for tendons that contradict it.
        """
        self.alarms += 1
        measured = self._measured(z, theta)
        own = np.arange(len(theta)) < self._own
        free = own & (np.abs(self._mapping.jacobian(theta)[suspects]).max(axis=0, initial=0.0) > 0.0)
        held = np.asarray(np.linalg.pinv(P, hermitian=True), np.float64)
        self._passed.clear()
        self._work = self._sought(measured, held, free if free.any() else own)

    def _measured(self, z: Array, near: Array) -> MeasuredPosture:
        s = self._settings
        return MeasuredPosture(z.copy(), s.length_noise, self._mapping.limits, s.limit_noise, near.copy(), self._start)

    def advance(self) -> Found | None:
        """Some iterations; what is found when the search ends with a better posture."""
        if self._work is None:
            return None
        try:
            for _ in range(BUDGET):
                next(self._work)
        except StopIteration as end:
            self.stop()
            found: Found | None = end.value
            if found is None:
                self._next, self._pause = self._now + self._pause, min(2 * self._pause, LONGEST_PAUSE)
            else:
                self._next, self._pause, self._trusted = self._now, PAUSE, found.theta.copy()
            return found
        return None

    def _sought(
        self, measured: MeasuredPosture, held: Array, free: NDArray[np.bool_]
    ) -> Generator[None, None, Found | None]:
        """The first posture that explains the lengths better than the estimate, which is held by information (D, D)."""
        estimate = PostureFit(self._mapping, measured, measured.near, held)
        yield from estimate.converge()
        for k in range(STARTS):
            fit = PostureFit(self._mapping, measured, self._start_of(k, measured.near, free))
            yield from fit.converge()
            if is_better(fit, estimate):
                return (yield from self._followed(fit))
        return None

    def _start_of(self, k: int, near: Array, free: NDArray[np.bool_]) -> Array:
        """(D,) the k-th start: the estimate, the last one not doubted, then the free joints (D,) drawn anew."""
        if k == 0:
            return near
        if k == 1 and self._trusted is not None:
            return self._trusted
        low, high = self._mapping.limits.T
        return np.asarray(np.where(free, self._rng.uniform(low, high), near))

    def _followed(self, fit: PostureFit) -> Generator[None, None, Found | None]:
        """The posture found, led along the lengths that came since the search began; None where they contradict it."""
        P, theta = fit.covariance(), fit.theta
        while self._passed:
            step = PostureFit(self._mapping, self._measured(self._passed.popleft(), theta), theta)
            yield from step.converge()
            theta = step.theta
            if not _explained(step.squares):
                return None
        return Found(theta, P)


def is_better(found: PostureFit, estimate: PostureFit) -> bool:
    """True where a fit explains the lengths, and another one does not: by half, and by more than one tendon says."""
    gain = estimate.squares - found.squares
    better = float(gain.sum()) + estimate.prior_cost - found.prior_cost
    alone = better - max(float(gain.max()), 0.0)
    cost = float(estimate.squares.sum()) + estimate.prior_cost
    return better > max(MARGIN, 0.5 * cost) and alone > 0.5 * MARGIN and _explained(found.squares)


def _explained(squares: Array) -> bool:
    """True where squares (M,) are those of noise, but for a third of the tendons, which may be faulty."""
    order = np.sort(squares)
    return bool(order[: len(order) - len(order) // 3].mean() < EXPLAINED)
