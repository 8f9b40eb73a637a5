"""Integration of joint velocities to configurations: explicit Euler, and a predictor-corrector of fourth order.

Equation and section numbers refer to Schwienbacher 2014.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.array_types import F1
from humanoid_control.compiled.jit import kernel
from humanoid_control.errors import check_time_step
from humanoid_control.kinematics.forward_kinematics import Followers, set_followers
from humanoid_control.robots.robot import Robot

Rate = Callable[[float, np.ndarray], np.ndarray]
"""Velocity (nv,) at a time [s] and a configuration (nq,)."""


def explicit_euler(robot: Robot, q: np.ndarray, v: np.ndarray, dt: float, keep_range: bool = False) -> np.ndarray:
    """Return q after dt at the constant velocity v (4.16)."""
    q_next = pin.integrate(robot.model, q, v * dt)
    if keep_range:
        keep_inside(q[robot.iq :], robot.lower, robot.upper, q_next[robot.iq :])
    robot.follow(q_next[robot.iq :])
    return q_next


@kernel
def keep_inside(joints: np.ndarray, lower: np.ndarray, upper: np.ndarray, after: np.ndarray) -> None:
    """Clamp angles `after` a step (n,) to their range, or to the angle before the step if that was outside."""
    for i in range(joints.shape[0]):
        after[i] = min(max(after[i], min(lower[i], joints[i])), max(upper[i], joints[i]))


@kernel
def integrate_base(q: np.ndarray, v: np.ndarray, dt: float, out: np.ndarray) -> None:
    """Integrate the pose of a floating base at a constant body twist, as `pin.integrate`: X Exp(v dt).

    Args:
        q: configuration, beginning with x, y, z [m] and the quaternion x, y, z, w.
        v: velocity, beginning with the linear [m/s] and angular [rad/s] base velocity, base frame.
    """
    # Exponential of SE(3): translation V u dt with V = I + (1 - cos t)/t^2 [w] + (t - sin t)/t^3 [w]^2, t = |w| dt.
    ux, uy, uz, wx, wy, wz = dt * v[0], dt * v[1], dt * v[2], dt * v[3], dt * v[4], dt * v[5]
    t2 = wx * wx + wy * wy + wz * wz
    if t2 > 1e-8:
        t = np.sqrt(t2)
        sine, half, real = np.sin(t) / t, np.sin(0.5 * t) / t, np.cos(0.5 * t)
        cross, along = (1.0 - np.cos(t)) / t2, (1.0 - sine) / t2
    else:  # series around t = 0; the next terms are below rounding
        sine, half, real = 1.0 - t2 / 6.0, 0.5 - t2 / 48.0, 1.0 - t2 / 8.0 + t2 * t2 / 384.0
        cross, along = 0.5 - t2 / 24.0, 1.0 / 6.0 - t2 / 120.0
    along *= wx * ux + wy * uy + wz * uz
    mx = sine * ux + along * wx + cross * (wy * uz - wz * uy)
    my = sine * uy + along * wy + cross * (wz * ux - wx * uz)
    mz = sine * uz + along * wz + cross * (wx * uy - wy * ux)
    x, y, z, w = q[3], q[4], q[5], q[6]
    # Rotate the translation by the orientation of the base, then multiply the quaternions: q_next = q * dq.
    out[0] = q[0] + (1.0 - 2.0 * (y * y + z * z)) * mx + 2.0 * (x * y - z * w) * my + 2.0 * (x * z + y * w) * mz
    out[1] = q[1] + 2.0 * (x * y + z * w) * mx + (1.0 - 2.0 * (x * x + z * z)) * my + 2.0 * (y * z - x * w) * mz
    out[2] = q[2] + 2.0 * (x * z - y * w) * mx + 2.0 * (y * z + x * w) * my + (1.0 - 2.0 * (x * x + y * y)) * mz
    a, b, c = half * wx, half * wy, half * wz
    out[3] = w * a + x * real + y * c - z * b
    out[4] = w * b + y * real + z * a - x * c
    out[5] = w * c + z * real + x * b - y * a
    out[6] = w * real - x * a - y * b - z * c
    # Renormalise with 1/sqrt(s) = (3 - s)/2, exact to first order: one step adds only rounding to the length.
    size = out[3] * out[3] + out[4] * out[4] + out[5] * out[5] + out[6] * out[6]
    share = 0.5 * (3.0 - size)
    # q and -q are the same rotation; keep the sign that is continuous with the last step.
    if out[3] * x + out[4] * y + out[5] * z + out[6] * w < 0.0:
        share = -share
    for i in range(3, 7):
        out[i] *= share


class Integration(NamedTuple):
    """Joint ranges and mimicking joints of an integration step."""

    lower: F1
    upper: F1
    keep_range: bool
    followers: Followers

    @classmethod
    def of(cls, robot: Robot, keep_range: bool = True) -> Integration:
        """Build the record of a robot."""
        return cls(robot.lower, robot.upper, keep_range, Followers.of(robot.mimic))


@kernel(allocates=True)
def advance(path: Integration, q: np.ndarray, v: np.ndarray, dt: float, out: np.ndarray) -> None:
    """Write q (nq,) after dt at the velocity v (nv,), as `explicit_euler`, and then v into out (nq + nv,)."""
    n, nq, nv = path.lower.shape[0], q.shape[0], v.shape[0]
    iq, iv = nq - n, nv - n
    if iv == 6:
        integrate_base(q, v, dt, out)
    for i in range(n):
        out[iq + i] = q[iq + i] + v[iv + i] * dt
    if path.keep_range:
        keep_inside(q[iq:], path.lower, path.upper, out[iq:nq])
    set_followers(path.followers, out, iq)
    out[nq : nq + nv] = v


class AdamsMoulton:
    """Adams-Bashforth predictor and Adams-Moulton corrector of fourth order for dq/dt = rate(t, q) (4.3.1).

    Velocities of several instants are transformed to the coordinates around the present configuration. The first three
    steps use the Runge-Kutta method of fourth order.
    """

    def __init__(self, robot: Robot, rate: Rate) -> None:
        self.robot, self.rate = robot, rate
        self.reset()

    def reset(self) -> None:
        """Discard earlier steps, as after jumps or changes of the step length."""
        self._past: list[tuple[np.ndarray, np.ndarray]] = []

    def step(self, t: float, q: np.ndarray, dt: float) -> np.ndarray:
        """Return the configuration (nq,) at t + dt from q (nq,) at t [s].

        Raises:
            ConfigError: if dt is not positive and finite.
        """
        check_time_step(dt, "integration")
        v = self.rate(t, q)
        self._past = [*self._past[-3:], (q, v)]
        if len(self._past) < 4:
            return self._runge_kutta(t, q, v, dt)
        f = [self._around(q, q_k, v_k) for q_k, v_k in self._past]
        # Predictor (explicit, four past slopes), then one corrector step (implicit formula) with the slope there.
        predicted = self._at(q, dt / 24 * (55 * f[3] - 59 * f[2] + 37 * f[1] - 9 * f[0]))
        ahead = self._around(q, predicted, self.rate(t + dt, predicted))
        return self._at(q, dt / 24 * (9 * ahead + 19 * f[3] - 5 * f[2] + f[1]))

    def _at(self, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        return pin.integrate(self.robot.model, q, x)

    def _around(self, q: np.ndarray, there: np.ndarray, v: np.ndarray) -> np.ndarray:
        if self.robot.nq == self.robot.nv:
            return v
        return pin.dDifference(self.robot.model, q, there, pin.ArgumentPosition.ARG1) @ v

    def _runge_kutta(self, t: float, q: np.ndarray, v: np.ndarray, dt: float) -> np.ndarray:
        def slope(time: float, x: np.ndarray) -> np.ndarray:
            there = self._at(q, x)
            return self._around(q, there, self.rate(time, there))

        k1 = v
        k2 = slope(t + dt / 2, dt / 2 * k1)
        k3 = slope(t + dt / 2, dt / 2 * k2)
        k4 = slope(t + dt, dt * k3)
        return self._at(q, dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
