"""Torque controllers of a joint trajectory: independent PID, computed torque, and the recursive controller.

All three are tuned by one number c, the speed of a critically damped error: K_p = c^2, K_v = 2 c. Computed torque and
the recursive controller are those of Simonidis et al. 2011 (section 6, equations 35 to 38), with the signs of their
equation of motion M q'' + h = T, where h holds gravity and velocity terms:

    computed torque   T = M^ (q''_d + K_v e' + K_p e) + h^
    recursive         T <- T + alpha M^ (e'' + K_v e' + K_p e), e = q_d - q, within the limits of the torque

The recursive one needs no h^ and forgives a wrong M^ while the spectral radius of I - M^ M^-1 is below one: a payload
that the model does not know. It needs the acceleration, and with it from encoders the step has to be relaxed, for the
filter's delay enters the recursion: alpha <= dt / (dt + tau) for a filter of time constant tau. This bound is a rule
that told stable from unstable runs, not a proof.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, SizeError


class JointMotion(NamedTuple):
    """Position, velocity and acceleration of the joints, asked for or measured: (n,) each [rad, m; s]."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray


class TorqueController(Protocol):
    """Controller that is asked once every step of its period."""

    def torque(self, wanted: JointMotion, measured: JointMotion) -> np.ndarray:
        """(n,) torques until the next step, within their limits [N m]."""


class IndependentPid:
    """A PID loop at each joint, that knows only one inertia of it.

    Args:
        inertia: (n,) seen by each joint [kg m^2].
        limit: (n,) greatest torque [N m].
        c: speed of the error [1/s].
        dt: period [s].

    Raises:
        ConfigError: one of them is not positive.
    """

    def __init__(self, inertia: np.ndarray, limit: np.ndarray, c: float, dt: float) -> None:
        _check_positive("PID", inertia=inertia, limit=limit, c=c, dt=dt)
        # All three poles at c: (s + c)^3.
        self.k_p, self.k_i, self.k_v = 3 * c**2 * inertia, c**3 * inertia, 3 * c * inertia
        self.limit, self.dt = limit, dt
        self.integral = np.zeros(len(inertia))

    def torque(self, wanted: JointMotion, measured: JointMotion) -> np.ndarray:
        e, de = wanted.q - measured.q, wanted.v - measured.v
        integral = self.integral + self.k_i * e * self.dt
        asked = self.k_p * e + integral + self.k_v * de
        # A joint at its limit does not continue integrating.
        self.integral = np.where(np.abs(asked) <= self.limit, integral, self.integral)
        return np.clip(asked, -self.limit, self.limit)


class ComputedTorque:
    """Inverse dynamics of the asked acceleration, corrected by the error.

    Args:
        model: of the robot with a fixed base, as the controller knows it.
        limit: (n,) greatest torque [N m].
        c: speed of the error [1/s].

    Raises:
        ConfigError: limit or c is not positive.
    """

    def __init__(self, model: pin.Model, limit: np.ndarray, c: float) -> None:
        _check_positive("computed torque", limit=limit, c=c)
        self.model, self.data, self.limit, self.c = model, model.createData(), limit, c

    def torque(self, wanted: JointMotion, measured: JointMotion) -> np.ndarray:
        a = wanted.a + 2 * self.c * (wanted.v - measured.v) + self.c**2 * (wanted.q - measured.q)
        tau = pin.rnea(self.model, self.data, measured.q, measured.v, a)
        return np.clip(tau, -self.limit, self.limit)


class RecursiveController:
    """Corrects the torque of the last step by what the error's acceleration lacks.

    Args:
        model: of the robot with a fixed base, as the controller knows it.
        limit: (n,) greatest torque [N m].
        c: speed of the error [1/s].
        dt: period [s].
        alpha: relaxation of the step.
        filter_time: time constant of the filter behind the measured acceleration [s]; 0 where it is exact.

    Raises:
        ConfigError: limit, c or dt is not positive, or alpha is not above 0 and up to dt / (dt + filter_time).
    """

    def __init__(
        self, model: pin.Model, limit: np.ndarray, c: float, dt: float, alpha: float, filter_time: float = 0.0
    ) -> None:
        _check_positive("recursive controller", limit=limit, c=c, dt=dt)
        if not (np.isfinite(filter_time) and filter_time >= 0):
            raise ConfigError(f"recursive controller: filter_time is {filter_time} s, it must not be negative")
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
        if self.last is None:  # nothing to correct yet: what the model thinks
            tau = pin.rnea(self.model, self.data, measured.q, measured.v, wanted.a)
        else:
            sigma = wanted.a - measured.a + 2 * self.c * (wanted.v - measured.v) + self.c**2 * (wanted.q - measured.q)
            M = pin.crba(self.model, self.data, measured.q)
            M = np.triu(M) + np.triu(M, 1).T
            tau = self.last + self.alpha * (M @ sigma)
        self.last = np.clip(tau, -self.limit, self.limit)
        return self.last.copy()


def largest_step(dt: float, filter_time: float) -> float:
    """Relaxation up to which the recursive controller is stable behind a filter of first order."""
    return dt / (dt + filter_time)


def contraction(known: pin.Model, true: pin.Model, q: np.ndarray) -> float:
    """Spectral radius of I - M^ M^-1: below one the recursion converges although the model is wrong."""
    M = [pin.crba(model, model.createData(), q) for model in (known, true)]
    known_M, true_M = (np.triu(m) + np.triu(m, 1).T for m in M)
    return float(np.abs(np.linalg.eigvals(np.eye(len(q)) - known_M @ np.linalg.inv(true_M))).max())


# -------- what is controlled


class PayloadPlant:
    """A robot that carries a mass its controller's model does not know, integrated with the torque held.

    Args:
        model: with a fixed base, without the payload.
        payload: point mass [kg] at the origin of a joint's frame, moved by `at`.
        joint: index of that joint in the model.
        at: (3,) in its frame [m].
        q: (n,) at rest there at the start.
        dt: period [s].

    Raises:
        ConfigError: the payload is negative or dt not positive.
        SizeError: q does not fit the model.
    """

    def __init__(self, model: pin.Model, payload: float, joint: int, at: np.ndarray, q: np.ndarray, dt: float) -> None:
        if not (np.isfinite(payload) and payload >= 0):
            raise ConfigError(f"plant: the payload is {payload} kg, it must not be negative")
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
        """Go on by one period under constant torques (n,) [N m]: Runge-Kutta of fourth order."""
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
        """Motion as it is."""
        return JointMotion(self.q.copy(), self.v.copy(), self.a.copy())


class EncoderMotion:
    """Velocity and acceleration from encoders alone: differences, each behind a filter of first order.

    Args:
        resolution: step of the encoders [rad].
        filter_time: of each filter [s].
        dt: period [s].

    Raises:
        ConfigError: resolution or dt is not positive, or filter_time negative.
    """

    def __init__(self, resolution: float, filter_time: float, dt: float) -> None:
        _check_positive("encoders", resolution=resolution, dt=dt)
        if not (np.isfinite(filter_time) and filter_time >= 0):
            raise ConfigError(f"encoders: filter_time is {filter_time} s, it must not be negative")
        self.resolution, self.dt, self.blend = resolution, dt, largest_step(dt, filter_time)
        self.last: JointMotion | None = None

    def read(self, q: np.ndarray) -> JointMotion:
        """The motion after a period in which the joints came to q (n,) [rad]."""
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
            raise ConfigError(f"{who}: {name} is {np.asarray(value).tolist()}, it must be positive")
