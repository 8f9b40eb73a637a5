"""Torque controllers of a joint trajectory: independent PID, computed torque, recursive controller.

The error rate c tunes them: K_p = c^2, K_v = 2 c. Computed torque and the recursive controller follow Simonidis et al.
2011 (section 6, equations 35 to 38), with M q'' + h = T:

    computed torque   T = M^ (q''_d + K_v e' + K_p e) + h^
    recursive         T <- T + alpha M^ (e'' + K_v e' + K_p e), e = q_d - q, within the torque limits

The recursive controller needs the acceleration but no h^. It tolerates a wrong M^ (payload) if the spectral radius of I
- M^ M^-1 is below one. Behind a filter of time constant tau, alpha <= dt / (dt + tau) (empirical).
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, SizeError


class JointMotion(NamedTuple):
    """Desired or measured position, velocity, acceleration of the joints: (n,) each [rad, m; s]."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray


class TorqueController(Protocol):
    """Controller called once per period."""

    def torque(self, wanted: JointMotion, measured: JointMotion) -> np.ndarray:
        """Return torques (n,) within limits [N m]."""


class IndependentPid:
    """PID loop per joint with a constant inertia.

    Args:
        inertia: (n,) at each joint [kg m^2].
        limit: (n,) [N m].
        c: error rate [1/s].
        dt: period [s].

    Raises:
        ConfigError: if one is not positive.
    """

    def __init__(self, inertia: np.ndarray, limit: np.ndarray, c: float, dt: float) -> None:
        _check_positive("PID", inertia=inertia, limit=limit, c=c, dt=dt)
        # All three poles at -c: (s + c)^3.
        self.k_p, self.k_i, self.k_v = 3 * c**2 * inertia, c**3 * inertia, 3 * c * inertia
        self.limit, self.dt = limit, dt
        self.integral = np.zeros(len(inertia))

    def torque(self, wanted: JointMotion, measured: JointMotion) -> np.ndarray:
        e, de = wanted.q - measured.q, wanted.v - measured.v
        integral = self.integral + self.k_i * e * self.dt
        asked = self.k_p * e + integral + self.k_v * de
        # Anti-windup: a joint at its limit does not integrate.
        self.integral = np.where(np.abs(asked) <= self.limit, integral, self.integral)
        return np.clip(asked, -self.limit, self.limit)


class ComputedTorque:
    """Inverse dynamics of the desired acceleration plus error feedback.

    Args:
        model: known model, fixed base.
        limit: (n,) [N m].
        c: error rate [1/s].

    Raises:
        ConfigError: if limit or c is not positive.
    """

    def __init__(self, model: pin.Model, limit: np.ndarray, c: float) -> None:
        _check_positive("computed torque", limit=limit, c=c)
        self.model, self.data, self.limit, self.c = model, model.createData(), limit, c

    def torque(self, wanted: JointMotion, measured: JointMotion) -> np.ndarray:
        a = wanted.a + 2 * self.c * (wanted.v - measured.v) + self.c**2 * (wanted.q - measured.q)
        tau = pin.rnea(self.model, self.data, measured.q, measured.v, a)
        return np.clip(tau, -self.limit, self.limit)


class RecursiveController:
    """Correction of the last torque by the missing acceleration of the error.

    Args:
        model: known model, fixed base.
        limit: (n,) [N m].
        c: error rate [1/s].
        dt: period [s].
        alpha: relaxation, in (0, dt / (dt + filter_time)].
        filter_time: time constant of the acceleration filter [s].

    Raises:
        ConfigError: if a value is out of range.
    """

    def __init__(
        self, model: pin.Model, limit: np.ndarray, c: float, dt: float, alpha: float, filter_time: float = 0.0
    ) -> None:
        _check_positive("recursive controller", limit=limit, c=c, dt=dt)
        if not (np.isfinite(filter_time) and filter_time >= 0):
            raise ConfigError(f"recursive controller: filter_time must not be negative, got {filter_time} s")
        most = largest_step(dt, filter_time)
        if not 0 < alpha <= most:
            raise ConfigError(
                f"recursive controller: alpha is {alpha:g}, with a period of {1e3 * dt:g} ms and a filter of "
                f"{1e3 * filter_time:g} ms it must be above 0 and not above {most:.3g}, or it becomes unstable"
            )
        self.model, self.data = model, model.createData()
        self.limit, self.c, self.alpha = limit, c, alpha
        self.last: np.ndarray | None = None

    def torque(self, wanted: JointMotion, measured: JointMotion) -> np.ndarray:
        if self.last is None:  # first period: torque of the model
            tau = pin.rnea(self.model, self.data, measured.q, measured.v, wanted.a)
        else:
            sigma = wanted.a - measured.a + 2 * self.c * (wanted.v - measured.v) + self.c**2 * (wanted.q - measured.q)
            M = pin.crba(self.model, self.data, measured.q)
            M = np.triu(M) + np.triu(M, 1).T
            tau = self.last + self.alpha * (M @ sigma)
        self.last = np.clip(tau, -self.limit, self.limit)
        return self.last.copy()


def largest_step(dt: float, filter_time: float) -> float:
    """Return the largest stable relaxation alpha behind a first-order filter."""
    return dt / (dt + filter_time)


def contraction(known: pin.Model, true: pin.Model, q: np.ndarray) -> float:
    """Return the spectral radius of I - M^ M^-1; the recursion converges below one."""
    M = [pin.crba(model, model.createData(), q) for model in (known, true)]
    known_M, true_M = (np.triu(m) + np.triu(m, 1).T for m in M)
    return float(np.abs(np.linalg.eigvals(np.eye(len(q)) - known_M @ np.linalg.inv(true_M))).max())


# -------- Controlled system


class PayloadPlant:
    """Robot with a payload unknown to its controller.

    Args:
        model: fixed base, without payload.
        payload: point mass [kg].
        joint: carrying joint.
        at: (3,) in its frame [m].
        q: (n,) initial, at rest.
        dt: period [s].

    Raises:
        ConfigError: if payload or dt is out of range.
        SizeError: if q does not fit.
    """

    def __init__(self, model: pin.Model, payload: float, joint: int, at: np.ndarray, q: np.ndarray, dt: float) -> None:
        if not (np.isfinite(payload) and payload >= 0):
            raise ConfigError(f"plant: the payload must not be negative, got {payload} kg")
        _check_positive("plant", dt=dt)
        if np.shape(q) != (model.nq,):
            raise SizeError(f"plant: expected q of shape ({model.nq},), got {np.shape(q)}")
        self.model = model.copy()
        if payload > 0:
            mass = pin.Inertia(payload, np.zeros(3), np.zeros((3, 3)))
            self.model.appendBodyToJoint(joint, mass, pin.SE3(np.eye(3), np.asarray(at, dtype=float)))
        self.data, self.dt = self.model.createData(), dt
        self.q, self.v, self.a = np.array(q, dtype=float), np.zeros(model.nv), np.zeros(model.nv)

    def step(self, tau: np.ndarray) -> None:
        """Advance by one period under constant torques (n,) [N m] (Runge-Kutta 4)."""
        h, q, v = self.dt, self.q, self.v
        k1 = self._acceleration(q, v, tau)
        k2 = self._acceleration(q + h / 2 * v, v + h / 2 * k1, tau)
        k3 = self._acceleration(q + h / 2 * v + h**2 / 4 * k1, v + h / 2 * k2, tau)
        k4 = self._acceleration(q + h * v + h**2 / 2 * k2, v + h * k3, tau)
        self.q = q + h * v + h**2 / 6 * (k1 + k2 + k3)
        self.v = v + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        self.a = self._acceleration(self.q, self.v, tau)

    def _acceleration(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return pin.aba(self.model, self.data, q, v, tau).copy()

    def exact(self) -> JointMotion:
        return JointMotion(self.q.copy(), self.v.copy(), self.a.copy())


class EncoderMotion:
    """Filtered differences of encoder readings.

    Args:
        resolution: [rad].
        filter_time: time constant of each first-order filter [s].
        dt: period [s].

    Raises:
        ConfigError: if a value is out of range.
    """

    def __init__(self, resolution: float, filter_time: float, dt: float) -> None:
        _check_positive("encoders", resolution=resolution, dt=dt)
        if not (np.isfinite(filter_time) and filter_time >= 0):
            raise ConfigError(f"encoders: filter_time must not be negative, got {filter_time} s")
        self.resolution, self.dt, self.blend = resolution, dt, largest_step(dt, filter_time)
        self.last: JointMotion | None = None

    def read(self, q: np.ndarray) -> JointMotion:
        """Return the motion one period later at q (n,) [rad]."""
        counted = np.round(q / self.resolution) * self.resolution
        if self.last is None:
            self.last = JointMotion(counted, np.zeros_like(q), np.zeros_like(q))
            return self.last
        before = self.last
        v = before.v + self.blend * ((counted - before.q) / self.dt - before.v)
        a = before.a + self.blend * ((v - before.v) / self.dt - before.a)
        self.last = JointMotion(counted, v, a)
        return self.last


def _check_positive(who: str, **values: float | np.ndarray) -> None:
    for name, value in values.items():
        if not (np.isfinite(value).all() and np.all(np.asarray(value) > 0)):
            raise ConfigError(f"{who}: {name} must be positive, got {np.asarray(value).tolist()}")
