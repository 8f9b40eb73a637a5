"""Mounting offsets of absolute encoders (Schwienbacher 2014, section 3.5).

A jig holds each foot in known poses relative to the pelvis while the encoders are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pinocchio as pin
from scipy.linalg import qr, solve_triangular
from scipy.optimize import least_squares
from scipy.stats import qmc

from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.robots import Robot
from humanoid_control.simulation.sensors.encoders import AbsoluteEncoders

LOW, HIGH = 0.12, 0.88  # of each joint's range that poses use
TRIES = 400


@dataclass(frozen=True)
class JigAccuracy:
    """Standard deviations of a foot pose in the jig per axis [m], [rad], above zero."""

    position: float = 1e-4
    orientation: float = 2e-4


@dataclass(frozen=True)
class LegChain:
    """Chain from the held link, the robot's fixed base, to a foot.

    Attributes:
        joints: leg joints, from the pelvis down.
        index: (k,) in the robot.
        frame: frame of the foot link.
        offset: sole centre in it.
    """

    robot: Robot
    name: str
    joints: tuple[str, ...]
    index: np.ndarray
    frame: int
    offset: pin.SE3

    def pose(self, joints: np.ndarray) -> pin.SE3:
        pin.framesForwardKinematics(self.robot.model, self.robot.data, self.robot.q(joints))
        return self.robot.data.oMf[self.frame] * self.offset

    def jacobian(self, joints: np.ndarray) -> np.ndarray:
        """Return its Jacobian (6, k), linear part first, in its own axes."""
        r = self.robot
        J = pin.computeFrameJacobian(r.model, r.data, r.q(joints), self.frame, pin.ReferenceFrame.LOCAL)
        return self.offset.toActionMatrixInverse() @ J[:, r.iv + self.index]

    @cached_property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Ranges of the leg joints (k,), within +-pi [rad]."""
        lower, upper = self.robot.range_within(np.pi)
        return lower[self.index], upper[self.index]


def legs_of(robot: Robot) -> list[LegChain]:
    """Return the legs of a robot with a fixed base, without toes.

    Raises:
        RobotError: if no joint moves a sole.
    """
    chains = {}
    for foot in robot.feet:
        frame = robot.model.getFrameId(foot.link, pin.FrameType.BODY)
        moved = robot.ancestor_mask[robot.model.frames[frame].parentJoint][robot.iv :]
        chains[foot.name] = (foot, frame, frozenset(np.flatnonzero(moved).tolist()))
    out = []
    for name, (foot, frame, columns) in chains.items():
        if not columns or any(other < columns for _, _, other in chains.values() if other):
            continue
        middle = np.array([(foot.x_min + foot.x_max) / 2, (foot.y_min + foot.y_max) / 2, foot.z])
        index = np.array(sorted(columns))
        joints = tuple(robot.joint_names[k] for k in index)
        out.append(LegChain(robot, name, joints, index, frame, pin.SE3(np.eye(3), middle)))
    if not out:
        raise RobotError(f"{robot.name} has no legs to calibrate: its robot file names no soles that joints move")
    return out


def jig_poses(leg: LegChain, count: int) -> np.ndarray:
    """Return the neutral posture and collision-free Halton samples of the leg's ranges (count, n).

    Raises:
        RobotError: if there are too few.
    """
    robot, neutral = leg.robot, leg.robot.postures["neutral"]
    lower, upper = leg.limits
    out, distance = [neutral.copy()], robot.self_distance()
    shares = qmc.Halton(len(leg.joints), scramble=False).random(TRIES)[1:]
    for share in LOW + (HIGH - LOW) * shares:
        if len(out) >= count:
            break
        posture = neutral.copy()
        posture[leg.index] = lower + share * (upper - lower)
        pin.forwardKinematics(robot.model, robot.data, robot.q(posture))
        apart = distance.all_distances(robot.data)
        if not len(apart) or apart.min() > 0:
            out.append(posture)
    if len(out) < count:
        raise RobotError(f"{robot.name}: only {len(out)} poses of {leg.name} are free of self-collision; request fewer")
    return np.array(out)


@dataclass(frozen=True)
class Fixture:
    """One mounting of a leg in the jig.

    Attributes:
        pose: sole relative to the held link.
        nominal: (n,) joint angles of the jig [rad].
        reading: (n,) encoders [rad]; NaN without one.
    """

    pose: pin.SE3
    nominal: np.ndarray
    reading: np.ndarray


def fixtures(
    leg: LegChain, poses: np.ndarray, encoders: AbsoluteEncoders, accuracy: JigAccuracy, random: np.random.Generator
) -> list[Fixture]:
    """Simulate measurements: each pose (count, n) [rad] is mounted with an error, and encoders are read once."""
    out = []
    for nominal in poses:
        off = random.standard_normal(6) * np.repeat([accuracy.position, accuracy.orientation], 3)
        true = nominal.copy()
        true[leg.index] += np.linalg.lstsq(leg.jacobian(nominal), off, rcond=1e-6)[0]
        out.append(Fixture(leg.pose(nominal), nominal, encoders.read(true)))
    return out


# -------- Offsets

COARSE = np.radians(1.0)  # a direction with a larger standard error counts as not identified
SHARE = 0.1  # joints with at least this part of a direction are named
POSE, POSITION = "pose", "position"


@dataclass(frozen=True)
class UnidentifiedDirection:
    """Combination of offsets that the poses do not identify.

    Attributes:
        parts: joint -> part, largest 1.
        deviation: standard error [rad]; inf: unbounded.
    """

    parts: dict[str, float]
    deviation: float


@dataclass(frozen=True)
class EncoderCalibration:
    """Calibration of one leg.

    Attributes:
        offsets: (k,) excess of the readings [rad].
        covariance: (k, k) [rad^2]; infinite diagonal: unbounded.
        singular: (k,) of the whitened, stacked Jacobian [1/rad], decreasing; 1 / s: error along a direction.
        unidentified: directions with errors beyond `COARSE`.
        spread: (k,) range of single-pose offsets [rad]; NaN if underdetermined.
        residual: whitened RMS, about 1 if accuracies are right.
    """

    joints: tuple[str, ...]
    offsets: np.ndarray
    covariance: np.ndarray
    singular: np.ndarray
    unidentified: tuple[UnidentifiedDirection, ...]
    spread: np.ndarray
    residual: float

    @property
    def standard_error(self) -> np.ndarray:
        """Of each offset (k,) [rad]."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def condition(self) -> float:
        """Largest over smallest singular value, or inf."""
        return float(self.singular[0] / self.singular[-1]) if self.singular[-1] > 0 else float("inf")


def calibrate(
    leg: LegChain,
    measured: Sequence[Fixture],
    encoder_deviation: np.ndarray,
    accuracy: JigAccuracy,
    measure: str = POSE,
) -> EncoderCalibration:
    """Estimate a leg's encoder offsets by least squares on the closure of the loop through the jig.

    Args:
        measured: at least one pose.
        encoder_deviation: (n,) [rad].
        measure: 'pose', or 'position' of the sole centre only.

    Raises:
        ConfigError: without poses, or if an accuracy is not positive.
        RobotError: if a joint has no absolute encoder.
    """
    if not measured or measure not in (POSE, POSITION):
        raise ConfigError(f"calibration needs at least one pose, and '{POSE}' or '{POSITION}' as the measure")
    if not min(accuracy.position, accuracy.orientation) > 0:
        raise ConfigError("the accuracy of the jig must be above zero, in position and in orientation")
    for k in leg.index[~np.isfinite([f.reading for f in measured])[:, leg.index].all(axis=0)]:
        raise RobotError(f"{leg.name}: joint '{leg.robot.joint_names[k]}' has no absolute encoder to calibrate")
    loops = [_Loop(leg, f, encoder_deviation, accuracy, measure) for f in measured]
    offsets, residual = _solve(loops)
    A = np.vstack([loop.jacobian(offsets) for loop in loops])
    k = len(leg.joints)
    _, s, Vt = np.linalg.svd(A, full_matrices=True)
    singular = np.concatenate([s, np.zeros(k - len(s))])
    # Round-off of the SVD: smaller values count as an unbounded direction.
    singular[singular < 1e-9 * singular[0]] = 0.0
    seen, known = singular > 0, singular > 1 / COARSE
    covariance = (Vt[seen].T / singular[seen] ** 2) @ Vt[seen]
    loose = np.linalg.norm(Vt[~seen], axis=0) > 1e-3
    covariance[loose, loose] = np.inf
    unidentified = _directions(Vt[~known], singular[~known], leg.joints)
    spread = np.full(k, np.nan)
    if measure == POSE and k <= 6 and len(loops) > 1:
        spread = np.ptp([_solve([loop])[0] for loop in loops], axis=0)
    return EncoderCalibration(leg.joints, offsets, covariance, singular, unidentified, spread, residual)


def mean_offsets(leg: LegChain, measured: Sequence[Fixture]) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and range of reading minus nominal angle, (k,) each [rad].

    This is -Delta_j of Schwienbacher 2014, section 3.5: the jig is taken as exact.
    """
    each = np.array([(f.reading - f.nominal)[leg.index] for f in measured])
    return each.mean(axis=0), np.ptp(each, axis=0)


class _Loop:
    """Whitened closure of one pose: residual and Jacobian for offsets (k,)."""

    def __init__(self, leg: LegChain, f: Fixture, deviation: np.ndarray, accuracy: JigAccuracy, measure: str) -> None:
        self.leg, self.fixture = leg, f
        self.rows = slice(0, 6 if measure == POSE else 3)
        jig = np.repeat([accuracy.position, accuracy.orientation], 3)[self.rows]
        J = leg.jacobian(f.nominal)[self.rows]
        # Covariance of the closure error: encoder noise through J, plus the jig; whitened by its Cholesky factor.
        S = (J * deviation[leg.index] ** 2) @ J.T + np.diag(jig**2)
        self.root = np.linalg.cholesky(S)

    def residual(self, offsets: np.ndarray) -> np.ndarray:
        off = self.fixture.pose.actInv(self.leg.pose(self._joints(offsets)))
        away = pin.log6(off).vector if self.rows.stop == 6 else np.array(off.translation)
        return solve_triangular(self.root, away, lower=True)

    def jacobian(self, offsets: np.ndarray) -> np.ndarray:
        joints = self._joints(offsets)
        off = self.fixture.pose.actInv(self.leg.pose(joints))
        J = self.leg.jacobian(joints)
        J = pin.Jlog6(off) @ J if self.rows.stop == 6 else off.rotation @ J[:3]
        return -solve_triangular(self.root, J, lower=True)

    def _joints(self, offsets: np.ndarray) -> np.ndarray:
        out = self.fixture.nominal.copy()
        out[self.leg.index] = self.fixture.reading[self.leg.index] - offsets
        return out


def _solve(loops: list[_Loop]) -> tuple[np.ndarray, float]:
    def residual(x: np.ndarray) -> np.ndarray:
        return np.concatenate([loop.residual(x) for loop in loops])

    def jacobian(x: np.ndarray) -> np.ndarray:
        return np.vstack([loop.jacobian(x) for loop in loops])

    start = np.zeros(len(loops[0].leg.joints))
    found = least_squares(residual, start, jac=jacobian, xtol=1e-13, ftol=1e-13, gtol=1e-13, max_nfev=40)
    free = max(len(found.fun) - len(start), 1)
    return found.x, float(np.sqrt(found.fun @ found.fun / free))


def _directions(V: np.ndarray, singular: np.ndarray, joints: tuple[str, ...]) -> tuple[UnidentifiedDirection, ...]:
    """Return a basis of the row space of V with few joints per vector."""
    if not len(V):
        return ()
    # Reduced row echelon form by pivoted QR: the pivot joints get unit columns, which makes the basis sparse.
    _, R, order = qr(V, pivoting=True)
    sparse = np.empty_like(V)
    sparse[:, order] = np.linalg.solve(R[:, : len(V)], R)
    out = []
    for row in sparse:
        parts = row / np.abs(row).max()
        weight = V @ (row / np.linalg.norm(row))
        deviation = float(np.sqrt(np.sum((weight / np.where(singular > 0, singular, np.nan)) ** 2)))
        named = {j: float(p) for j, p in zip(joints, parts, strict=True) if abs(p) >= SHARE}
        out.append(UnidentifiedDirection(named, deviation if np.isfinite(deviation) else float("inf")))
    return tuple(out)
