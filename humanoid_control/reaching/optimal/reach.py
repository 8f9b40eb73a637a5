"""Optimal reaches: least-cost motion of an arm between two postures (after Simonidis et al. 2011).

    from humanoid_control.reaching import person_arm, synthesise

    arm = person_arm(4)
    reach = synthesise(arm, np.zeros(4), np.array([-0.3, -1.2, 0.0, 0.9]), 0.8)
    print(reach.cost, reach.at(np.linspace(0, 0.8, 5))[0])

Squared torque has many optima, so the search races several starts: straight, over an easier posture, and with a folded
arm. Other criteria have one optimum near the straight reach.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from humanoid_control.compiled.packed import Packed
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.reaching.optimal.arm import Arm
from humanoid_control.reaching.optimal.cost import ANGLE, SPEED, TORQUE, CostWeights, Limits, ReachProblem, reach_cost
from humanoid_control.reaching.optimal.inverse_dynamics import arm_motion, move_arm, torque, torque_derivatives
from humanoid_control.reaching.optimal.newton import Minimum, minimise_within
from humanoid_control.reaching.optimal.parametrisation import (
    CUBIC,
    NINTH,
    NINTH_TIME,
    QUINTIC,
    Parametrisation,
)

CRITERIA = {
    "torque": "minimum torque: half the integral of the squared torques [N^2 m^2 s]",
    "mtc": "minimum torque change: of their rates (Uno, Kawato and Suzuki 1989) [N^2 m^2 / s]",
    "maj": "minimum angle jerk: of the joints' jerks [rad^2 / s^5]",
    "mchj": "minimum constrained hand jerk: of the hand's jerk, ends given in the joints [m^2 / s^5]",
}
POINTS = {"torque": 7, "mtc": 5, "maj": 5, "mchj": 5}
"""Quadrature points per segment. With 5, the squared torque of seven joints is a hundred times too small: the search
exploits violent motions between the points."""
FINER, TRUE_WITHIN, MOST_POINTS = 4, 0.01, 19  # points added until the cost is accurate to this fraction
SEGMENTS = {"torque": 8, "mtc": 4, "maj": 4, "mchj": 4}
STRAIGHT, EASY, FOLDED = "straight", "a detour over easier postures", "a detour with the arm folded"
RACE, RACE_TOLERANCE, RACE_POINTS = 20, 1e-3, 5
"""Steps after which only the best start continues, and tolerance and quadrature points until then."""
SAME = 1e-9  # [rad] ends nearer than this are equal
SLACK = np.array([1e-3, 1e-2, 0.05])  # tolerated excess of angles [rad], speeds [rad/s], torques [N m]


@dataclass(frozen=True)
class ReachSettings:
    """Criteria of a reach, and search settings.

    Attributes:
        cost: weight by criterion; several are scaled by their values on the straight minimum-jerk reach.
        parametrisation: one of PARAMETRISATIONS.
        segments: Hermite segments; 0: by criterion.
        gravity: include gravity.
        limits: keep the arm's limits.
        free_acceleration: free end accelerations, else 0.
        starts: 1: straight; 2, 3: with detours.
        iterations: of `minimise`.
        tolerance: of `minimise`.
    """

    cost: Mapping[str, float] = field(default_factory=lambda: {"mtc": 1.0})
    parametrisation: str = QUINTIC
    segments: int = 0
    gravity: bool = True
    limits: bool = True
    free_acceleration: bool = False
    starts: int = 3
    iterations: int = 300
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        for name, weight in self.cost.items():
            if name not in CRITERIA:
                raise UnknownNameError("cost", name, CRITERIA)
            if not (np.isfinite(weight) and weight > 0):
                raise ConfigError(f"the weight of the cost '{name}' must be positive, got {weight:g}")
        if not self.cost:
            raise ConfigError(f"a reach needs a cost: {', '.join(CRITERIA)}")
        blind = [c for c in self.cost if c != "torque"]
        if self.parametrisation == CUBIC and blind:
            raise ConfigError(
                f"the cost '{blind[0]}' needs continuous accelerations: it is meaningless on cubic segments; use "
                f"'{QUINTIC}' or '{NINTH}'"
            )
        if self.starts not in (1, 2, 3):
            raise ConfigError(f"1, 2 or 3 starts can be tried, got {self.starts}")
        if not 0 <= self.segments <= 100:
            raise ConfigError(f"a reach has 1 to 100 segments, got {self.segments}")

    @property
    def points(self) -> int:
        """Quadrature points per segment; 0: by parametrisation."""
        return 0 if self.parametrisation == NINTH else max(POINTS[name] for name in self.cost)

    @property
    def count(self) -> int:
        """Number of segments."""
        return self.segments or max(SEGMENTS[name] for name in self.cost)


@dataclass(frozen=True)
class Reach:
    """Motion of an arm between two postures.

    Attributes:
        parametrisation: of the trajectory.
        x: (G, N) parameters.
        cost: integral of half the squares; dimensionless for several criteria.
        start: start of the best search.
        iterations: of all starts.
        found: final cost by start.
        excess: (3,) excess over limits of angles [rad], speeds [rad/s], torques [N m].
        notes: messages for the user.
    """

    arm: Arm
    settings: ReachSettings
    parametrisation: Parametrisation
    x: np.ndarray
    cost: float
    start: str
    iterations: int
    converged: bool
    found: Mapping[str, float]
    excess: np.ndarray
    notes: tuple[str, ...]

    @cached_property
    def costs(self) -> dict[str, float]:
        """Value of each criterion that the parametrisation supports."""
        return criteria_of(self.arm, self.parametrisation, self.x)

    @property
    def seconds(self) -> float:
        """Duration [s]."""
        return self.parametrisation.seconds

    def at(self, t: np.ndarray) -> np.ndarray:
        """Return position, velocity, acceleration and jerk (4, T, N) at times (T,) [s]."""
        return self.parametrisation.evaluate(self.x, t)

    def torques(self, t: np.ndarray) -> np.ndarray:
        """Return torques (T, N) [N m] at times (T,) [s]."""
        q, v, a, _ = self.at(t)
        return self.arm.torque(q, v, a)


def synthesise(
    arm: Arm, start: np.ndarray, goal: np.ndarray, seconds: float, settings: ReachSettings | None = None
) -> Reach:
    """Return the least-cost motion between two postures at rest.

    Args:
        arm: the arm.
        start: (N,) [rad]; clipped to the range, with a note.
        goal: (N,) [rad]; likewise.
        seconds: duration.

    Raises:
        ConfigError: if the duration is not positive, or a posture is invalid.
    """
    settings = settings or ReachSettings()
    arm = arm if settings.gravity else arm.without_gravity()
    parametrisation = Parametrisation(settings.parametrisation, settings.count, seconds, settings.points)
    notes: list[str] = []
    if settings.parametrisation == NINTH and seconds > NINTH_TIME:
        notes.append(
            f"one polynomial of ninth order is limited to {NINTH_TIME:g} s, this reach takes {seconds:g} s: use "
            f"'{QUINTIC}'"
        )
    ends = [_end(arm, q, what, settings.limits, notes) for q, what in ((start, "start"), (goal, "goal"))]
    problem = reach_problem(arm, parametrisation, settings, *ends)
    first = minimum_jerk_start(parametrisation, *ends)
    if float(np.abs(ends[1] - ends[0]).max()) < SAME:
        notes.append("start and goal are the same posture: the arm does not move")
        total = float(reach_cost(Packed(problem).table, first))
        still = Minimum(first, total, 0, True)
        return _outcome(arm, settings, parametrisation, STRAIGHT, {STRAIGHT: (still, np.zeros(3))}, notes)
    tried = starts(arm, parametrisation, settings, *ends)
    options: dict[str, Any] = {"tolerance": settings.tolerance, "iterations": settings.iterations}
    found = {}
    if len(tried) > 1:
        race = options | {"iterations": min(RACE, settings.iterations), "tolerance": RACE_TOLERANCE}
        coarse = Parametrisation(settings.parametrisation, settings.count, seconds, RACE_POINTS)
        rough = problem_on(problem, coarse) if settings.points > RACE_POINTS else problem
        found = {name: minimise_within(rough, x, SLACK, rounds=1, **race) for name, x in tried.items()}
    name = min(found, key=lambda n: found[n][0].merit) if found else STRAIGHT
    minimum, excess = minimise_within(problem, found[name][0].x if found else tried[name], SLACK, **options)
    steps = sum(one.iterations for one, _ in found.values()) + minimum.iterations
    points = len(parametrisation.quadrature.weight)
    while points < MOST_POINTS:  # refine the quadrature until it sees the motion between its points
        points += FINER
        finer = Parametrisation(settings.parametrisation, settings.count, seconds, points)
        problem = problem_on(problem, finer)
        true = float(reach_cost(Packed(problem).table, minimum.x))
        if abs(true - minimum.cost) <= TRUE_WITHIN * true:
            break
        minimum, excess = minimise_within(problem, minimum.x, SLACK, **options)
        steps += minimum.iterations
    found[name] = replace(minimum, iterations=steps), excess
    return _outcome(arm, settings, parametrisation, name, found, notes)


def _outcome(
    arm: Arm,
    settings: ReachSettings,
    parametrisation: Parametrisation,
    start: str,
    found: Mapping[str, tuple[Minimum, np.ndarray]],
    notes: list[str],
) -> Reach:
    minimum, excess = found[start]
    if (excess > SLACK).any():
        kinds = [name for name, e, s in zip(("angles", "speeds", "torques"), excess, SLACK, strict=True) if e > s]
        notes.append(
            f"no motion of {parametrisation.seconds:g} s respects the limits of {' and '.join(kinds)}: increase the "
            "duration"
        )
    if not minimum.converged:
        notes.append("the search was stopped before it converged")
    return Reach(
        arm,
        settings,
        parametrisation,
        minimum.x,
        minimum.cost,
        start,
        minimum.iterations,
        minimum.converged,
        {name: one.cost for name, (one, _) in found.items()},
        excess,
        tuple(notes),
    )


def _end(arm: Arm, q: np.ndarray, what: str, clip: bool, notes: list[str]) -> np.ndarray:
    q = np.array(q, dtype=float)
    if q.shape != (arm.n,) or not np.isfinite(q).all():
        raise ConfigError(f"the {what} of a reach must be {arm.n} numbers, the angles of {', '.join(arm.joint_names)}")
    inside = np.clip(q, arm.lower, arm.upper)
    if not clip:
        return q
    for k in np.flatnonzero(np.abs(inside - q) > 1e-9):
        angle, limit = np.rad2deg(q[k]), np.rad2deg(inside[k])
        notes.append(
            f"{what}: {arm.joint_names[k]} at {angle:.1f} deg is outside its range: clipped to {limit:.1f} deg"
        )
    return np.asarray(inside)


# -------- Problem


def reach_problem(
    arm: Arm, parametrisation: Parametrisation, settings: ReachSettings, start: np.ndarray, goal: np.ndarray
) -> ReachProblem:
    """Return the cost of a reach over its trajectory parameters."""
    G, N = parametrisation.numbers, arm.n
    fixed = parametrisation.ends(settings.free_acceleration)
    column = np.full((G, N), -1, dtype=np.int64)
    column[~fixed] = np.arange(int((~fixed).sum()) * N).reshape(-1, N)
    quadrature = parametrisation.quadrature
    points = quadrature.segments * len(quadrature.weight)
    low, high = np.full((3, N), -np.inf), np.full((3, N), np.inf)
    if settings.limits:
        low[ANGLE], high[ANGLE] = arm.lower, arm.upper
        low[SPEED], high[SPEED] = -arm.velocity, arm.velocity
        if settings.gravity:
            low[TORQUE], high[TORQUE] = -arm.effort, arm.effort
    limits = Limits(low, high, np.zeros((points, 3, N)), np.zeros((points, 3, N)), np.zeros(3))
    weights = dict(settings.cost)
    if len(weights) > 1:
        scale = criteria_of(arm, parametrisation, minimum_jerk_start(parametrisation, start, goal))
        weights = {name: w / max(scale[name], 1e-12) for name, w in weights.items()}
    else:
        weights = dict.fromkeys(weights, 1.0)
    return ReachProblem(arm.model, quadrature, _weights(weights), limits, column)


def problem_on(problem: ReachProblem, parametrisation: Parametrisation) -> ReachProblem:
    """Return the problem with another quadrature of equal trajectories."""
    quadrature, limits = parametrisation.quadrature, problem.limits
    none = np.zeros((quadrature.segments * len(quadrature.weight), *limits.low.shape))
    limits = Limits(limits.low, limits.high, none, none.copy(), np.zeros(3))
    return problem._replace(quadrature=quadrature, limits=limits)


def _weights(of: Mapping[str, float]) -> CostWeights:
    return CostWeights(of.get("torque", 0.0), of.get("mtc", 0.0), of.get("maj", 0.0), of.get("mchj", 0.0))


def criteria_of(arm: Arm, parametrisation: Parametrisation, x: np.ndarray) -> dict[str, float]:
    """Return each criterion of a trajectory x (G, N); on cubic segments only torque."""
    quadrature, N = parametrisation.quadrature, arm.n
    points = quadrature.segments * len(quadrature.weight)
    endless = np.full((3, N), np.inf)
    limits = Limits(-endless, endless, np.zeros((points, 3, N)), np.zeros((points, 3, N)), np.zeros(3))
    none = np.full(x.shape, -1, dtype=np.int64)
    out = {}
    for name in CRITERIA if parametrisation.has_jerk else ("torque",):
        problem = ReachProblem(arm.model, quadrature, _weights({name: 1.0}), limits, none)
        out[name] = float(reach_cost(Packed(problem).table, np.ascontiguousarray(x)))
    return out


# -------- Starts


def minimum_jerk_start(
    parametrisation: Parametrisation, start: np.ndarray, goal: np.ndarray, detour: np.ndarray | None = None
) -> np.ndarray:
    """Return parameters (G, N) of the straight minimum-jerk reach, plus a smooth mid-way detour (N,)."""
    s = parametrisation.knots() / parametrisation.seconds
    T = parametrisation.seconds
    profile = np.polynomial.Polynomial([0, 0, 0, 10, -15, 6])
    bump = np.polynomial.Polynomial([0, 0, 0, 64, -192, 192, -64])
    way = goal - start
    values = []
    for order in range(3):
        value = np.outer(profile.deriv(order)(s), way) if order else start + np.outer(profile(s), way)
        if detour is not None:
            value = value + np.outer(bump.deriv(order)(s) if order else bump(s), detour)
        values.append(value / T**order)
    return parametrisation.fit(*values)


def starts(
    arm: Arm, parametrisation: Parametrisation, settings: ReachSettings, start: np.ndarray, goal: np.ndarray
) -> dict[str, np.ndarray]:
    """Return initial trajectories (G, N) by name."""
    out = {STRAIGHT: minimum_jerk_start(parametrisation, start, goal)}
    if settings.starts == 1 or "torque" not in settings.cost:
        return out
    half = 0.5 * (start + goal)
    for name, posture in ((EASY, easier_posture), (FOLDED, folded_posture))[: settings.starts - 1]:
        out[name] = minimum_jerk_start(parametrisation, start, goal, posture(arm, half) - half)
    return out


def easier_posture(arm: Arm, q: np.ndarray) -> np.ndarray:
    """Return a posture (N,) near q with less holding torque; without gravity, nearer to 0."""
    if not np.any(arm.model.gravity):
        return np.clip(0.5 * q, arm.lower, arm.upper)
    return _nearer(arm, q, holding_torque)


def folded_posture(arm: Arm, q: np.ndarray) -> np.ndarray:
    """Return a posture (N,) near q with masses nearer to the first joint."""
    return _nearer(arm, q, mass_places)


def _nearer(
    arm: Arm, q: np.ndarray, residual: Callable[[Arm, np.ndarray], tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """Reduce the squares of a residual (K,) with derivatives (K, N), by Levenberg-Marquardt."""
    best, mu = q.copy(), 1.0
    r, J = residual(arm, best)
    scale = max(float(np.abs(J).max()) ** 2, 1e-12)
    for _ in range(20):
        step = np.linalg.solve(J.T @ J + mu * scale * np.eye(arm.n), -J.T @ r)
        trial = np.clip(best + step, arm.lower, arm.upper)
        r_there, J_there = residual(arm, trial)
        if r_there @ r_there < r @ r:
            best, r, J, mu = trial, r_there, J_there, mu / 3
        else:
            mu *= 4
    return best


def mass_places(arm: Arm, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mass-weighted centres of mass (3 N,) from the first joint, and derivatives (3 N, N)."""
    q, still, n = np.ascontiguousarray(q, dtype=float), np.zeros(arm.n), arm.n
    s, root = arm_motion(q), np.sqrt(arm.model.mass)
    move_arm(arm.model, q, still, still, s)
    c = s.o + np.einsum("bij,bj->bi", s.R, arm.model.com)
    J = np.zeros((n, 3, n))
    for i in range(n):  # bodies beyond joint i rotate with it
        J[i:, :, i] = np.cross(s.S[i, :3], c[i:]) + s.S[i, 3:]
    return (root[:, None] * c).ravel(), (root[:, None, None] * J).reshape(3 * n, n)


def holding_torque(arm: Arm, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return static torques (N,) at q (N,), and derivatives (N, N)."""
    q, still = np.ascontiguousarray(q, dtype=float), np.zeros(arm.n)
    memory, tau = arm_motion(q), np.empty(arm.n)
    G, by_v, M = np.empty((arm.n, arm.n)), np.empty((arm.n, arm.n)), np.empty((arm.n, arm.n))
    move_arm(arm.model, q, still, still, memory)
    torque(memory, tau)
    torque_derivatives(memory, G, by_v, M)
    return tau, G
