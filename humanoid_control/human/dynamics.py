"""Inverse dynamics of a person, optionally corrected by force plates.

Wrenches are about the ground origin. The weighted least squares of Kuo 1998 and Simonidis et al. 2011 (equations 31 and
32) is the Kalman update of T0 = M q'' + h, covariance M W_a M, by the plates' I_c T = I_c f, covariance W_c. A full
root matrix and a scalar W_c make results independent of the heading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from humanoid_control.compiled.packed import Packed
from humanoid_control.errors import ConfigError, NotANumberError, SizeError
from humanoid_control.human.kinematics import make_pose
from humanoid_control.human.marker_fit import root_coordinates
from humanoid_control.human.model import Person
from humanoid_control.human.newton_euler import ROOT, Correction, DynamicsRecord, generalised_forces, make_motion

Loads = Mapping[str, np.ndarray]
"""Body name -> wrench (T, 6) on it: force and moment about the ground origin [N, N m]."""

PLATE_VARIANCE = 100.0  # [N^2, N^2 m^2]: standard deviations 10 N and 10 N m


@dataclass(frozen=True, eq=False)
class GeneralisedForces:
    """Generalised forces of a motion.

    Attributes:
        tau: (T, n) [N m, N], summed over all joints of a coordinate.
        residual: (T, 6) of the undriven root.
    """

    person: Person
    tau: np.ndarray
    residual: np.ndarray


@dataclass(frozen=True, eq=False)
class WeightedForces(GeneralisedForces):
    """Generalised forces with accelerations corrected by force plates.

    Attributes:
        qdd: (T, n) corrected accelerations.
        residual_before: (T, 6) root residual without the correction.
    """

    qdd: np.ndarray
    residual_before: np.ndarray


def inverse_dynamics(
    person: Person, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, loads: Loads | None = None
) -> GeneralisedForces:
    """Return the generalised forces of a motion beyond gravity and loads.

    Args:
        q: (T, n).
        qd: (T, n).
        qdd: (T, n).

    Raises:
        SizeError: if shapes do not match.
        NotANumberError: if a value is not finite.
        UnknownNameError: if a body is unknown.
    """
    motion = _motion(person, q, qd, qdd)
    tau = np.zeros_like(motion[0])
    _run(person, motion, loads, Correction.none(person.n), (tau, np.zeros((0, 0)), np.zeros((0, 0))))
    return GeneralisedForces(person, tau, tau[:, root_coordinates(person)])


def weighted_inverse_dynamics(
    person: Person,
    motion: tuple[np.ndarray, np.ndarray, np.ndarray],
    loads: Loads,
    acceleration_variance: np.ndarray,
    plate_variance: float | np.ndarray = PLATE_VARIANCE,
    root_variance: np.ndarray | None = None,
) -> WeightedForces:
    """Return generalised forces with the root residual shared between motion and plates.

    Args:
        motion: q, qd, qdd (T, n).
        acceleration_variance: W_a (n,) or (T, n) [rad^2/s^4, m^2/s^4]; 0: exact.
        plate_variance: W_c, scalar for force and moment about the root [N^2, N^2 m^2], or (6,) for generalised root
            forces.
        root_variance: (T, 6, 6) of root accelerations, instead of W_a.

    Raises:
        ConfigError: if a variance is negative or the root has not six coordinates; others as `inverse_dynamics`.
    """
    checked = _motion(person, *motion)
    T, n = checked[0].shape
    correction = correction_of(person, T, acceleration_variance, plate_variance, root_variance)
    tau, qdd, before = np.zeros((T, n)), checked[2].copy(), np.zeros((T, ROOT))
    _run(person, checked, loads, correction, (tau, qdd, before))
    return WeightedForces(person, tau, tau[:, correction.root], qdd, before)


def correction_of(
    person: Person,
    T: int,
    acceleration_variance: np.ndarray,
    plate_variance: float | np.ndarray,
    root_variance: np.ndarray | None,
) -> Correction:
    """Return the correction of T frames for `weighted_inverse_dynamics`."""
    root = root_coordinates(person)
    if len(root) != ROOT:
        raise ConfigError(f"{person.name}: its root has {len(root)} coordinates, the plates' correction takes {ROOT}")
    W_a = np.broadcast_to(np.asarray(acceleration_variance, dtype=float), (T, person.n)).copy()
    W_c = np.atleast_1d(np.asarray(plate_variance, dtype=float)).copy()
    W_root = np.zeros((0, ROOT, ROOT))
    if root_variance is not None:
        W_root = np.broadcast_to(np.asarray(root_variance, dtype=float), (T, ROOT, ROOT)).copy()
        W_a[:, root] = 0.0
    finite = np.isfinite(W_a).all() and np.isfinite(W_c).all() and np.isfinite(W_root).all()
    if not (finite and (W_a >= 0).all() and (W_c > 0).all() and len(W_c) in (1, ROOT)):
        raise ConfigError("variances of accelerations must be finite and 0 or more, those of plates more than 0")
    return Correction(np.array(root, dtype=np.int64), W_a, W_c, W_root)


def noise_gain(rate: float, cutoff: float) -> float:
    """Return variance(q'') / variance(q) of filtered white noise: (2 pi f_c)^4 2 f_c / (5 f_s)."""
    if not 0 < cutoff < rate / 2:
        raise ConfigError(f"the cutoff is {cutoff:g} Hz, but must be above 0 and below {rate / 2:g} Hz, half the rate")
    return (2 * np.pi * cutoff) ** 4 * 2 * cutoff / (5 * rate)


def acceleration_variance(std: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """Return the variance of the second derivative of filtered white noise.

    Args:
        std: infinite values count as the largest finite one.
        rate: f_s [Hz].
        cutoff: f_c < rate / 2 [Hz].
    """
    std = np.asarray(std, dtype=float)
    finite = std[np.isfinite(std)]
    filled = np.where(np.isfinite(std), std, finite.max() if finite.size else 0.0)
    return filled**2 * noise_gain(rate, cutoff)


def _motion(person: Person, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    checked = tuple(person.check(a, name) for a, name in zip(arrays, ("q", "qd", "qdd"), strict=True))
    if len({len(a) for a in checked}) > 1:
        raise SizeError(f"q, qd and qdd have {', '.join(str(len(a)) for a in checked)} frames: give equal numbers")
    for a, name in zip(checked, ("q", "qd", "qdd"), strict=True):
        if not np.isfinite(a).all():
            t, k = np.argwhere(~np.isfinite(a))[0]
            raise NotANumberError(f"{name} of '{person.names[k]}' in frame {t} is not a number")
    return checked


def _run(
    person: Person,
    motion: tuple[np.ndarray, ...],
    loads: Loads | None,
    correction: Correction,
    out: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Fill tau and, with a correction, accelerations and residual before."""
    T = len(motion[0])
    wrenches, bodies = np.zeros((T, len(loads or {}), 6)), []
    for k, (name, wrench) in enumerate((loads or {}).items()):
        bodies.append(person.body_index(name))
        given = np.asarray(wrench, dtype=float)
        if given.shape != (T, 6):
            raise SizeError(f"the load of '{name}' must be ({T} frames, 6), got {given.shape}")
        if not np.isfinite(given).all():
            raise NotANumberError(
                f"the load of '{name}' in frame {np.argwhere(~np.isfinite(given))[0][0]} is non-numeric"
            )
        wrenches[:, k] = given
    chain = person.chain.record
    q, qd, qdd = motion
    loaded = np.array(bodies, dtype=np.int64)
    work = make_pose(chain), make_motion(chain)
    record = DynamicsRecord(chain, *work, loaded, wrenches, correction, q, qd, qdd, *out)
    generalised_forces(Packed(record).table)
