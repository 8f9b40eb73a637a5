"""Recovery of a filter that is confident of a wrong posture, by a global search.

In doubt (`InnovationTest`, several excluded tendons) the search fits the posture to the lengths from several starts. A
posture is adopted if it explains the lengths and the estimate does not.
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

HUBER = 3.0  # [standard deviations] Huber threshold, to bound the influence of faulty tendons
ITERATIONS, ENOUGH = 15, 1e-3  # maximum iterations of a fit; relative decrease of cost at convergence
CAP = 36.0  # [variances] maximum squared error of a length
LONGEST_STEP = 0.5  # [rad] maximum joint step of an iteration


@dataclass(frozen=True)
class MeasuredPosture:
    """Lengths at a posture, and prior knowledge of it.

    Attributes:
        z: (M,) lengths [m], NaN if missing.
        noise: [m].
        limits: (D, 2) [rad].
        limit_noise: [rad].
        near: (D,) prior mean [rad].
        start: (D,) prior deviation [rad].
    """

    z: Array
    noise: float
    limits: Array
    limit_noise: float
    near: Array
    start: Array


class PostureFit:
    """Levenberg-Marquardt fit of a posture to lengths, with Huber weights.

    Attributes:
        theta: (D,) [rad].
        cost: Huber cost [variances].
        done: converged.
    """

    def __init__(
        self, mapping: JointMuscleMapping, measured: MeasuredPosture, theta: Array, held: Array | None = None
    ) -> None:
        """Start at theta (D,) [rad]; `held` (D, D) is prior information about `near`."""
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
        lengths, G = self._mapping.evaluate(theta)
        noise = self.measured.noise
        return np.asarray(np.where(self._known, self._z - lengths, 0.0) / noise), G / noise

    def _beyond(self, theta: Array) -> Array:
        return np.asarray(theta - np.clip(theta, *self.measured.limits.T))

    def _prior_cost(self, theta: Array) -> float:
        off = theta - self.measured.near
        return float(off @ self._prior @ off + np.sum((self._beyond(theta) / self.measured.limit_noise) ** 2))

    def _cost(self, theta: Array, e: Array) -> float:
        size = np.abs(e)
        huber = np.where(size < HUBER, size**2, 2.0 * HUBER * size - HUBER**2)
        return float(huber.sum()) + self._prior_cost(theta)

    def iterate(self) -> None:
        """Run one iteration, with one evaluation of the mapping."""
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
        """Iterate until convergence; yield after each iteration."""
        while not self.done:
            self.iterate()
            yield

    def _normal_equations(self) -> tuple[Array, Array]:
        e, m = self._e, self.measured
        weight = self._known * np.minimum(1.0, HUBER / np.maximum(np.abs(e), 1e-12))
        weighted = (weight[:, None] * self._G).T
        beyond, soft = self._beyond(self.theta), 1.0 / m.limit_noise**2
        A = weighted @ self._G + self._prior + np.diag((beyond != 0.0) * soft)
        return A, weighted @ e + self._prior @ (m.near - self.theta) - soft * beyond

    @property
    def squares(self) -> Array:
        """(M,) squared errors, at most `CAP` [variances]."""
        return np.asarray(np.minimum(self._e**2, CAP))

    @property
    def prior_cost(self) -> float:
        """Cost of prior and limits [variances]."""
        return self._prior_cost(self.theta)

    def covariance(self) -> Array:
        """Return the posterior covariance (D, D) [rad^2]."""
        P = np.linalg.inv(self._normal_equations()[0])
        return np.asarray(0.5 * (P + P.T))


# -------- Search

STARTS = 12  # number of starts
BUDGET = 8  # iterations per filter step
MARGIN = 1.5 * CAP  # [variances] minimum gain: more than one length can give
# The pause doubles after a failure and halves every `SPACING` undoubted steps, so that one hard moment does not delay
# later searches.
PAUSE, LONGEST_PAUSE = 20, 2000  # steps before the next search
SPACING = 10  # steps between stored undoubted estimates
EXPLAINED = 2.5  # [variances] maximum mean squared error of explained lengths


class Found(NamedTuple):
    """Posture theta (D,) [rad] and its covariance P (D, D) [rad^2]."""

    theta: Array
    P: Array


class PostureSearch:
    """Search for a group's posture from several starts, spread over filter steps.

    Args:
        mapping: of the group.
        own: number of own joints, which come first.
        start: (D,) initial deviation [rad].

    Attributes:
        alarms: number of searches.
    """

    def __init__(self, mapping: JointMuscleMapping, settings: EstimatorSettings, own: int, start: Array) -> None:
        self._mapping, self._settings, self._own, self._start = mapping, settings, own, np.asarray(start, float)
        self.alarms = 0
        self.reset()

    def reset(self) -> None:
        self._now, self._next, self._pause = 0, 0, PAUSE
        self._passed: deque[Array] = deque()
        self._rng = np.random.default_rng(0)
        self._trusted: Array | None = None
        self.stop()

    def stop(self) -> None:
        self._work: Generator[None, None, Found | None] | None = None

    @property
    def running(self) -> bool:
        return self._work is not None

    @property
    def due(self) -> bool:
        """True if a doubt may start a search."""
        return self._work is None and self._now >= self._next

    def watch(self, step: int, z: Array, theta: Array, doubted: bool) -> None:
        """Observe a step: lengths (M,) [m], estimate (D,) [rad], doubt.

        Required in a search, in doubt, and at each `SPACING`-th step.
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
            z: (M,) lengths [m].
            theta: (D,) estimate [rad].
            P: (D, D) covariance [rad^2].
            suspects: (M,) contradicting tendons.
        """
        self.alarms += 1
        measured = self._measured(z, theta)
        own = np.arange(len(theta)) < self._own
        # Random starts vary only own joints that the suspect tendons cross.
        free = own & (np.abs(self._mapping.jacobian(theta)[suspects]).max(axis=0, initial=0.0) > 0.0)
        held = np.asarray(np.linalg.pinv(P, hermitian=True), np.float64)
        self._passed.clear()
        self._work = self._sought(measured, held, free if free.any() else own)

    def _measured(self, z: Array, near: Array) -> MeasuredPosture:
        s = self._settings
        return MeasuredPosture(z.copy(), s.length_noise, self._mapping.limits, s.limit_noise, near.copy(), self._start)

    def advance(self) -> Found | None:
        """Run some iterations; return a better posture when found."""
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
        """Find the first posture with a better fit than the estimate, which has prior information (D, D)."""
        estimate = PostureFit(self._mapping, measured, measured.near, held)
        yield from estimate.converge()
        for k in range(STARTS):
            fit = PostureFit(self._mapping, measured, self._start_of(k, measured.near, free))
            yield from fit.converge()
            if is_better(fit, estimate):
                return (yield from self._followed(fit))
        return None

    def _start_of(self, k: int, near: Array, free: NDArray[np.bool_]) -> Array:
        if k == 0:
            return near
        if k == 1 and self._trusted is not None:
            return self._trusted
        low, high = self._mapping.limits.T
        return np.asarray(np.where(free, self._rng.uniform(low, high), near))

    def _followed(self, fit: PostureFit) -> Generator[None, None, Found | None]:
        """Track the found posture along lengths since the search began; return None if they contradict it."""
        P, theta = fit.covariance(), fit.theta
        while self._passed:
            step = PostureFit(self._mapping, self._measured(self._passed.popleft(), theta), theta)
            yield from step.converge()
            theta = step.theta
            if not _explained(step.squares):
                return None
        return Found(theta, P)


def is_better(found: PostureFit, estimate: PostureFit) -> bool:
    """Return True if a fit explains the lengths, and the estimate fails by more than one tendon."""
    gain = estimate.squares - found.squares
    better = float(gain.sum()) + estimate.prior_cost - found.prior_cost
    alone = better - max(float(gain.max()), 0.0)
    cost = float(estimate.squares.sum()) + estimate.prior_cost
    return better > max(MARGIN, 0.5 * cost) and alone > 0.5 * MARGIN and _explained(found.squares)


def _explained(squares: Array) -> bool:
    """Return True if all but a third of squares (M,) are noise."""
    order = np.sort(squares)
    return bool(order[: len(order) - len(order) // 3].mean() < EXPLAINED)
