"""Path of a swing sole, which may change during the swing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.jit import kernel

STILL = 0.05  # share of the swing at either end with vertical motion only
LAST = 0.02  # [s] before touch-down without changes


@dataclass(frozen=True)
class Quintic:
    """Quintic polynomials between two states, one per column; constant outside.

    Attributes:
        t0: start [s].
        t1: end [s].
        c: (6, m) coefficients of powers of t - t0.
    """

    t0: float
    t1: float
    c: np.ndarray

    @classmethod
    def between(cls, t0: float, t1: float, start: np.ndarray, end: np.ndarray) -> Quintic:
        """Return the polynomial from a state to rest.

        Args:
            start: (3, m) value, velocity, acceleration at t0.
            end: (m,) value at t1.
        """
        D = t1 - t0
        p, v, a = start
        c = np.empty((6, len(p)))
        c[0], c[1], c[2] = p, v, 0.5 * a
        d = end - p
        c[3] = (20 * d - 12 * v * D - 3 * a * D**2) / (2 * D**3)
        c[4] = (-30 * d + 16 * v * D + 3 * a * D**2) / (2 * D**4)
        c[5] = (12 * d - 6 * v * D - a * D**2) / (2 * D**5)
        # boundary conditions: value, velocity, acceleration at t0; value at rest at t1
        return cls(t0, t1, c)

    def at(self, t: float) -> np.ndarray:
        """Return values (m,)."""
        return np.asarray(_powers(self.c, float(min(max(t, self.t0), self.t1) - self.t0)))

    def state(self, t: float) -> np.ndarray:
        """Return value, velocity, acceleration (3, m)."""
        c = self.c
        if not self.t0 < t < self.t1:
            return np.array([self.at(t), np.zeros(c.shape[1]), np.zeros(c.shape[1])])
        s = t - self.t0
        v = c[1] + s * (2 * c[2] + s * (3 * c[3] + s * (4 * c[4] + s * 5 * c[5])))
        a = 2 * c[2] + s * (6 * c[3] + s * (12 * c[4] + s * 20 * c[5]))
        return np.array([self.at(t), v, a])


@kernel(allocates=True)
def _powers(c: np.ndarray, s: float) -> np.ndarray:
    out = np.empty(c.shape[1])
    for k in range(c.shape[1]):
        out[k] = c[0, k] + s * (c[1, k] + s * (c[2, k] + s * (c[3, k] + s * (c[4, k] + s * c[5, k]))))
    return out


@dataclass(frozen=True)
class Cruise:
    """Path between two rests with constant speed and smooth ramps.

    Its peak speed is 1 / (1 - (r0 + r1) / 2) times the mean; a minimum-jerk path has 1.9 times.

    Attributes:
        t0: start [s].
        t1: end [s].
        end: (m,) value.
        ramps: r0, r1, shares of the time in which the speed rises and falls as 3 x^2 - 2 x^3.
    """

    t0: float
    t1: float
    start: np.ndarray
    end: np.ndarray
    ramps: tuple[float, float]

    def _share(self, t: float) -> tuple[float, float, float]:
        """Return share of the path, its rate and acceleration, by the share of the time."""
        D = self.t1 - self.t0
        u = min(max((t - self.t0) / D, 0.0), 1.0)
        a, b = self.ramps
        speed = 1.0 / (1.0 - 0.5 * (a + b))
        # ramp up: the speed 3 x^2 - 2 x^3 integrates to x^3 - x^4 / 2
        if u < a:
            x = u / a
            return speed * a * x**3 * (1 - 0.5 * x), speed * x * x * (3 - 2 * x), speed * 6 * x * (1 - x) / a
        # ramp down: mirror image
        if u > 1.0 - b:
            x = (1.0 - u) / b
            return 1.0 - speed * b * x**3 * (1 - 0.5 * x), speed * x * x * (3 - 2 * x), -speed * 6 * x * (1 - x) / b
        return speed * (u - 0.5 * a), speed, 0.0

    def at(self, t: float) -> np.ndarray:
        return self.start + self._share(t)[0] * (self.end - self.start)

    def state(self, t: float) -> np.ndarray:
        s, v, a = self._share(t)
        way, D = self.end - self.start, self.t1 - self.t0
        return np.array([self.start + s * way, v / D * way, a / D**2 * way])


@dataclass(frozen=True)
class SwingShape:
    """Shares of a swing's time: forward from `begin` to `end`, highest at `top`; `ramps` as in Cruise, or quintic."""

    begin: float = STILL
    end: float = 1.0 - STILL
    top: float = 0.5
    ramps: tuple[float, float] | None = None


LEVEL = SwingShape()


@dataclass(frozen=True)
class SwingPath:
    """Swing from one sole pose to another.

    Horizontal motion and rotation follow one quintic or Cruise, at rest near both ends. Vertically, two quintics meet
    `lift` above the higher end. Changes keep position and velocity continuous.

    Attributes:
        across: x, y and rotation vector from `start`.
        up: height until the top.
        down: height after the top.
    """

    start: pin.SE3
    end: pin.SE3
    lift_off: float
    land: float
    across: Quintic | Cruise
    up: Quintic
    down: Quintic

    @classmethod
    def between(
        cls, start: pin.SE3, end: pin.SE3, lift_off: float, land: float, lift: float, shape: SwingShape = LEVEL
    ) -> SwingPath:
        """Return a swing from rest to rest."""
        D, rest = land - lift_off, np.zeros((3, 5))
        rest[0] = _across(start, start)
        across: Quintic | Cruise
        first, last = lift_off + shape.begin * D, lift_off + shape.end * D
        if shape.ramps is None:
            across = Quintic.between(first, last, rest, _across(start, end))
        else:
            across = Cruise(first, last, rest[0], _across(start, end), shape.ramps)
        low, high = float(start.translation[2]), float(end.translation[2])
        top, half = max(low, high) + lift, lift_off + shape.top * D
        up = Quintic.between(lift_off, half, np.array([[low], [0.0], [0.0]]), np.array([top]))
        down = Quintic.between(half, land, np.array([[top], [0.0], [0.0]]), np.array([high]))
        return cls(start, end, lift_off, land, across, up, down)

    def phase(self, t: float) -> float:
        """Return the share of the time, 0 at lift-off to 1 at touch-down."""
        return min(max((t - self.lift_off) / (self.land - self.lift_off), 0.0), 1.0)

    def at(self, t: float) -> pin.SE3:
        """Return the pose at a time [s]."""
        a = self.across.at(t)
        z = self.up.at(t)[0] if t < self.up.t1 else self.down.at(t)[0]
        return pin.SE3(self.start.rotation @ pin.exp3(a[2:]), np.array([a[0], a[1], z]))

    def changed(self, t: float, end: pin.SE3, land: float) -> SwingPath:
        """Return the swing with another end and landing time from t on, or unchanged if too late."""
        if land - t < LAST or self.land - t < LAST:
            return self
        across = Quintic.between(
            t, land - min(STILL * (land - t), LAST), self.across.state(t), _across(self.start, end)
        )
        high, half = float(end.translation[2]), self.up.t1 + 0.5 * (land - self.land)
        if t < self.up.t1 and half > t + LAST:
            half, top = min(half, t + 0.5 * (land - t)), self.up.at(self.up.t1)
            up = Quintic.between(t, half, self.up.state(t), top)
            down = Quintic.between(half, land, np.array([top, [0.0], [0.0]]), np.array([high]))
        else:
            # Close to its top the foot descends at once: a top that repeated changes keep ahead would leave the whole
            # descent to the last moment.
            height = self.up if t < self.up.t1 else self.down
            down = Quintic.between(t, land, height.state(t), np.array([high]))
            up = replace(self.up, t1=min(self.up.t1, t))
        return SwingPath(self.start, end, self.lift_off, land, across, up, down)


def _across(start: pin.SE3, X: pin.SE3) -> np.ndarray:
    return np.concatenate([X.translation[:2], pin.log3(start.rotation.T @ X.rotation)])
