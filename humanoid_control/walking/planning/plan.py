"""Walk plan: timed footsteps, zero-moment point, and references at any time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pinocchio as pin

from humanoid_control.walking.feet import Feet
from humanoid_control.walking.ground.terrain import Terrain
from humanoid_control.walking.planning.lipm import ZmpPath
from humanoid_control.walking.planning.step import Footstep
from humanoid_control.walking.swing_foot import SwingPath

KEPT = 8  # cached references


class Phase(NamedTuple):
    """Footstep with absolute times.

    Attributes:
        end: earliest next lift-off [s].
    """

    step: Footstep
    lift: float
    land: float
    end: float
    swing: SwingPath


class References(NamedTuple):
    """References at one time, in the world of the plan.

    Attributes:
        heading: (3, 3) mean heading of both feet.
        swinging: swing foot, or None.
        dcm: (2,) including the momentum shift [m].
        swing: duration of the swing [s].
    """

    soles: tuple[pin.SE3, pin.SE3]
    heading: np.ndarray
    swinging: int | None
    u: float
    zmp: np.ndarray
    dcm: np.ndarray
    swing: float = 0.0


class CenterPath(Protocol):
    """ZMP over time and its DCM."""

    @property
    def t(self) -> np.ndarray:
        """Times of corners or samples (k,); at rest from the last [s]."""

    @property
    def omega(self) -> float:
        """Natural frequency of the pendulum [1/s]."""

    def zmp(self, t: float) -> np.ndarray:
        """Return the ZMP (2,) [m]."""

    def dcm(self, t: float) -> np.ndarray:
        """Return the DCM (2,) [m]."""


class CenterRequest(NamedTuple):
    """Pendulum state and coming footsteps, the input of a planner.

    Attributes:
        omega: pendulum rate sqrt(g / z) [1/s].
        xi: (2,) initial DCM [m].
        rest: transition time to the middle after the last step [s].
    """

    t: float
    omega: float
    center: np.ndarray
    xi: np.ndarray
    zmp: np.ndarray
    soles: Feet
    feet: Sequence[pin.SE3]
    phases: Sequence[Phase]
    rest: float


class CenterPlanner(Protocol):
    """Planner of the CoM through footsteps."""

    def plan(self, request: CenterRequest) -> tuple[CenterPath, list[Phase]]:
        """Return the path from the requested state, and its phases, possibly with moved footholds."""


class DcmPlanner:
    """Closed-form planner: the ZMP rests under each foot; the initial error fades during a step."""

    def plan(self, request: CenterRequest) -> tuple[ZmpPath, list[Phase]]:
        path, phases = ZmpPath.of(*request_corners(request), request.omega), list(request.phases)
        return (continued(path, request.xi, phases[0].end) if phases else path), phases


@dataclass(frozen=True)
class MomentumShift:
    """Shift (k, 2) of the DCM for angular momentum, every dt from t0 [m]."""

    t0: float
    dt: float
    shift: np.ndarray

    @classmethod
    def none(cls) -> MomentumShift:
        """Return a zero shift."""
        return cls(0.0, 1.0, np.zeros((1, 2)))

    def at(self, t: float) -> np.ndarray:
        """Return the shift (2,) at a time."""
        x = (t - self.t0) / self.dt
        i = int(x)
        if x <= 0 or len(self.shift) == 1:
            return self.shift[0]
        if i >= len(self.shift) - 1:
            return self.shift[-1]
        return self.shift[i] + (x - i) * (self.shift[i + 1] - self.shift[i])


class WalkPlan:
    """Phases of a walk and their ZMP."""

    def __init__(
        self,
        feet: Sequence[pin.SE3],
        phases: Sequence[Phase],
        path: CenterPath,
        momentum: MomentumShift | None = None,
    ) -> None:
        self.feet, self.phases, self.path = (feet[0], feet[1]), list(phases), path
        self.momentum = momentum or MomentumShift.none()
        self._known = dict[float, References]()

    @property
    def end(self) -> float:
        """Time at which the weight is at rest after the last step [s]."""
        return float(self.path.t[-1])

    def index(self, t: float) -> int:
        """Return the last phase that has begun at t; -1 before the first."""
        k = -1
        while k + 1 < len(self.phases) and t >= self.phases[k + 1].lift - 1e-9:
            k += 1
        return k

    def soles(self, t: float) -> tuple[pin.SE3, pin.SE3]:
        """Return poses of both soles at t."""
        out, k = list(self.feet), self.index(t)
        for phase in self.phases[: max(k, 0)]:
            out[phase.step.foot] = phase.step.X
        if k >= 0:
            p = self.phases[k]
            out[p.step.foot] = p.swing.at(t)
        return out[0], out[1]

    def at(self, t: float) -> References:
        """Return the references at a time, cached for repeated calls within a tick."""
        found = self._known.get(t)
        if found is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            found = self._known[t] = self._references(t)
        return found

    def _references(self, t: float) -> References:
        soles, k = self.soles(t), self.index(t)
        swinging, u, swing = None, 1.0, 0.0
        if k >= 0 and t < self.phases[k].land - 1e-9:
            p = self.phases[k]
            swing = p.land - p.lift
            swinging, u = p.step.foot, (t - p.lift) / swing
        dcm = self.path.dcm(t) + self.momentum.at(t)
        return References(soles, mean_heading(soles), swinging, u, self.path.zmp(t), dcm, swing)


def schedule(
    feet: Sequence[pin.SE3], steps: Sequence[Footstep], lift: float, terrain: Terrain | None = None
) -> list[Phase]:
    """Return phases of successive steps, the first lifting off at `lift` [s]."""
    at, out = list(feet), []
    for step in steps:
        land = lift + step.swing
        if terrain is None:
            swing = SwingPath.between(at[step.foot], step.X, lift, land, step.lift, step.style.shape)
        else:
            swing = terrain.swing(at[step.foot], step.X, (lift, land), step.lift, step.foot, step.style.shape)
        out.append(Phase(step, lift, land, land + step.double, swing))
        at[step.foot] = step.X
        lift = land + step.double
    return out


def zmp_corners(
    soles: Feet, feet: Sequence[pin.SE3], phases: Sequence[Phase], t: float, p: np.ndarray, rest: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return corners of the ZMP: constant under the stance foot, linear between feet.

    Returns:
        Times (k,) and corners (k, 2).
    """
    at, times, corners = list(feet), [t], [np.asarray(p, dtype=float)]
    for phase in phases:
        stand = standing_point(soles, at, 1 - phase.step.foot)
        for when in (phase.lift, phase.land):
            if when > times[-1] + 1e-9:
                times.append(when)
                corners.append(stand)
        at[phase.step.foot] = phase.step.X
    end = (phases[-1].land if phases else t) + rest
    times.append(max(end, times[-1] + 1e-3))
    corners.append(0.5 * (standing_point(soles, at, 0) + standing_point(soles, at, 1)))
    return np.array(times), np.array(corners)


def request_corners(r: CenterRequest) -> tuple[np.ndarray, np.ndarray]:
    """Return times (k,) and corners (k, 2) of the ZMP for a request's footsteps."""
    times, corners = zmp_corners(r.soles, r.feet, r.phases, r.t, r.zmp, r.rest)
    if r.phases and r.phases[0].lift <= r.t + 1e-9:
        corners[0] = corners[1]  # single support begins now
    return times, corners


def standing_point(soles: Feet, feet: Sequence[pin.SE3], foot: int) -> np.ndarray:
    """Return the ZMP (2,) in single support."""
    return feet[foot].act(np.array([*soles.middle[foot], 0.0]))[:2]


def continued(path: ZmpPath, xi: np.ndarray, until: float) -> ZmpPath:
    """Return the path with a ZMP shift that decays until a time [s], so that it starts at xi (2,).

    A shift d (1 - s / D) of p over D moves the initial xi by d (1 - (1 - exp(-w D)) / (w D)).
    """
    t, w = path.t, path.omega
    D = until - t[0]
    if D < 1e-3:
        return path
    share = 1.0 - (1.0 - np.exp(-w * D)) / (w * D)
    d = (xi - path.xi[0]) / share
    if until < t[-1] - 1e-9 and np.abs(t - until).min() > 1e-9:
        k = int(np.searchsorted(t, until))
        corner = path.zmp(until)
        t = np.insert(t, k, until)
        p = np.insert(path.p, k, corner, axis=0)
    else:
        p = path.p.copy()
    p = p + d * np.clip(1.0 - (t - t[0]) / D, 0.0, 1.0)[:, None]
    return ZmpPath.of(t, p, w)


def mean_heading(soles: Sequence[pin.SE3]) -> np.ndarray:
    """Return the mean heading (3, 3) of both soles; adding their forward axes avoids a branch at 180 deg."""
    left, right = soles[0].rotation, soles[1].rotation
    x, y = float(left[0, 0] + right[0, 0]), float(left[1, 0] + right[1, 0])
    n = math.hypot(x, y) or 1.0
    return np.array([[x / n, -y / n, 0.0], [y / n, x / n, 0.0], [0.0, 0.0, 1.0]])
