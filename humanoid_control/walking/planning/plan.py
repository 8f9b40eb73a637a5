"""The plan of a walk: footsteps with absolute times, the zero-moment point through them, and references at any time."""

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

KEPT = 8  # references


class Phase(NamedTuple):
    """One footstep in time.

    Attributes:
        step: which. lift, land, end: when the foot lifts off, touches down, and the next one may lift off [s].
        swing: path of its sole.
    """

    step: Footstep
    lift: float
    land: float
    end: float
    swing: SwingPath


class References(NamedTuple):
    """What the plan asks for at one time, in the world of the plan.

    Attributes:
        soles: poses of both soles. heading: rotation (3, 3) about the vertical, between those of both feet.
        swinging: the foot in the air, or None. u: phase of its swing; swing: how long it takes [s].
        zmp, dcm: (2,) [m]; the latter with the part for the robot's angular momentum.
    """

    soles: tuple[pin.SE3, pin.SE3]
    heading: np.ndarray
    swinging: int | None
    u: float
    zmp: np.ndarray
    dcm: np.ndarray
    swing: float = 0.0


class CenterPath(Protocol):
    """A zero-moment point over time, and the divergent component of motion that belongs to it."""

    @property
    def t(self) -> np.ndarray:
        """Times of its corners or samples (k,); at the last one all is at rest [s]."""

    @property
    def omega(self) -> float:
        """Of the pendulum [1/s]."""

    def zmp(self, t: float) -> np.ndarray:
        """The zero-moment point (2,) [m]."""

    def dcm(self, t: float) -> np.ndarray:
        """The divergent component of motion (2,) [m]."""


class CenterRequest(NamedTuple):
    """The state of the pendulum and the footsteps to come: from these a path is planned.

    Attributes:
        t: now [s]. omega: of the pendulum [1/s].
        center, xi, zmp: (2,) of now: centre of mass, divergent component that the path must start with, where the
            zero-moment point is [m].
        soles: geometry. feet: poses of both soles now. phases: to come.
        rest: time for the way to the middle after the last step [s].
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
    """Plans the motion of the centre of mass through footsteps."""

    def plan(self, request: CenterRequest) -> tuple[CenterPath, list[Phase]]:
        """The path from the state of the request on, and its phases, whose footholds may have moved."""


class DcmPlanner:
    """Plans in closed form: the zero-moment point stands under each foot; a rest fades until the first step ends."""

    def plan(self, request: CenterRequest) -> tuple[ZmpPath, list[Phase]]:
        """The path from the state of the request on, and its phases as they are."""
        path, phases = ZmpPath.of(*request_corners(request), request.omega), list(request.phases)
        return (continued(path, request.xi, phases[0].end) if phases else path), phases


@dataclass(frozen=True)
class MomentumShift:
    """Shift (k, 2) of the divergent component that the robot's angular momentum asks for, each dt from t0 on [m]."""

    t0: float
    dt: float
    shift: np.ndarray

    @classmethod
    def none(cls) -> MomentumShift:
        """No shift."""
        return cls(0.0, 1.0, np.zeros((1, 2)))

    def at(self, t: float) -> np.ndarray:
        """Shift (2,) at a time."""
        x = (t - self.t0) / self.dt
        i = int(x)
        if x <= 0 or len(self.shift) == 1:
            return self.shift[0]
        if i >= len(self.shift) - 1:
            return self.shift[-1]
        return self.shift[i] + (x - i) * (self.shift[i + 1] - self.shift[i])


class WalkPlan:
    """Phases of a walk and the zero-moment point through them.

    Attributes:
        feet: where both soles are planned to be at the start. phases: in time. path: of the zero-moment point.
        momentum: shift of the divergent component.
    """

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
        """When the last foot stands and the weight has come to rest [s]."""
        return float(self.path.t[-1])

    def index(self, t: float) -> int:
        """Which phase counts at t: the last that has begun; -1 before the first."""
        k = -1
        while k + 1 < len(self.phases) and t >= self.phases[k + 1].lift - 1e-9:
            k += 1
        return k

    def soles(self, t: float) -> tuple[pin.SE3, pin.SE3]:
        """Poses of both soles at t."""
        out, k = list(self.feet), self.index(t)
        for phase in self.phases[: max(k, 0)]:
            out[phase.step.foot] = phase.step.X
        if k >= 0:
            p = self.phases[k]
            out[p.step.foot] = p.swing.at(t)
        return out[0], out[1]

    def at(self, t: float) -> References:
        """References at a time; the last few are kept, since several parts of a tick ask for the same ones."""
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
    """Phases of steps one after the other, the first of which lifts off at a time [s]; over the terrain if there is."""
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
    """Corners of the zero-moment point: still under the standing foot, evenly from foot to foot between.

    Args:
        soles: geometry. feet: poses of both soles at t. phases: not over yet. t: now [s]. p: (2,) where it is now.
        rest: time for the way to the middle after the last step [s].

    Returns:
        times (k,), corners (k, 2).
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
    """Times (k,) and corners (k, 2) of the zero-moment point that a request's footsteps ask for, from now on."""
    times, corners = zmp_corners(r.soles, r.feet, r.phases, r.t, r.zmp, r.rest)
    if r.phases and r.phases[0].lift <= r.t + 1e-9:
        corners[0] = corners[1]  # one foot carries it from now on
    return times, corners


def standing_point(soles: Feet, feet: Sequence[pin.SE3], foot: int) -> np.ndarray:
    """Where (2,) the zero-moment point stands when one foot carries the robot."""
    return feet[foot].act(np.array([*soles.middle[foot], 0.0]))[:2]


def continued(path: ZmpPath, xi: np.ndarray, until: float) -> ZmpPath:
    """The path with its zero-moment point moved, less and less until a time [s], such that it starts at xi (2,).

    A shift d (1 - s / D) of p over D moves xi at its start by d (1 - (1 - exp(-w D)) / (w D)).
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
    """Rotation (3, 3) about the vertical, between the forward axes of both soles (added: no branch at 180 deg)."""
    left, right = soles[0].rotation, soles[1].rotation
    x, y = float(left[0, 0] + right[0, 0]), float(left[1, 0] + right[1, 0])
    n = math.hypot(x, y) or 1.0
    return np.array([[x / n, -y / n, 0.0], [y / n, x / n, 0.0], [0.0, 0.0, 1.0]])
