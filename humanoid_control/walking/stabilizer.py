"""Balance by feedback: where the zero-moment point must be, what each foot must press, how the soles turn for it.

Three loops, each slower than what it acts through:

* the divergent component: p = p_ref + (1 + k / w)(xi - xi_ref) + integral, held inside the support polygon;
* the force of each foot: its sole turns against the body until it has the moment that puts the pressure there, and one
  foot reaches down and the other one draws up until each carries its share (Kajita 2010);
* the place of each foot: a robot that leans does not stand where its model believes, so the swinging foot is led to
  where the plan wants it in the world, and keeps that correction while it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.estimation.floating_base import BaseEstimate
from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.walking.feet import Feet, convex_hull, edge_distance, nearest_in_polygon
from humanoid_control.walking.plan import References

GRAVITY = 9.81
SHARES = np.array([0.0, *(s * k / 50 for k in range(1, 51) for s in (1, -1))])  # changes that are tried in turn


@dataclass(frozen=True)
class StabilizerGains:
    """Gains of the loops.

    Attributes:
        dcm: k of the divergent component [1/s]. integral: [1/s]; at most `integral_limit` [m].
        margin: that the zero-moment point keeps from the edge of the support [m].
        ankle: turn of a sole for a missing moment [rad/(N m s)]; ankle_leak, ankle_return: how fast it goes back under
            load, and in the air [1/s]; at most `ankle_limit` [rad].
        height: for a missing difference of forces [m/(N s)]; height_leak, height_return: as of the ankles;
            at most `height_limit` [m].
        landing: time constant with which a swinging foot is led to its place [s].
        upright: how fast a standing foot's correction in orientation goes back, which brings the trunk upright [1/s].
        force_cutoff: of the measured forces [Hz].
    """

    dcm: float = 3.0
    integral: float = 0.3
    integral_limit: float = 0.03
    margin: float = 0.01
    ankle: float = 0.006
    ankle_leak: float = 0.2
    ankle_return: float = 12.0
    ankle_limit: float = 0.15
    height: float = 4e-5
    height_leak: float = 0.5
    height_return: float = 6.0
    height_limit: float = 0.04
    landing: float = 0.03
    upright: float = 4.0
    force_cutoff: float = 50.0


@dataclass
class Balance:
    """What the stabilizer saw and did in a tick.

    Attributes:
        error: (2,) xi - xi_ref [m]. zmp: (2,) that is asked for [m].
        cut: how far it had to be moved into the support [m].
        margin: of the zero-moment point that is asked for, from the edge of the support [m].
        wrenches: (2, 3) desired normal force [N] and moments about x, y of the sole frames [N m].
    """

    error: np.ndarray
    zmp: np.ndarray
    cut: float
    margin: float
    wrenches: np.ndarray


class Stabilizer:
    """The feedback of a walk.

    Attributes:
        gains: of the loops. integral: (2,) [m].
        ankles: (2, 2) turn of each sole about its x and y [rad]. height: half of it the left foot is lower [m].
        offsets: (2, 3) how far each sole is commanded off its plan [m].
        turns: (2, 3) the same as rotation vectors [rad].
    """

    def __init__(self, feet: Feet, mass: float, gains: StabilizerGains | None = None) -> None:
        """Make it.

        Args:
            feet: geometry. mass: of the robot [kg].
        """
        self.feet, self.weight, self.gains = feet, mass * GRAVITY, gains or StabilizerGains()
        self.reset()

    def reset(self) -> None:
        """Forget everything: the robot stands as it is commanded."""
        self.integral, self.ankles, self.height = np.zeros(2), np.zeros((2, 2)), 0.0
        self.offsets, self.turns = np.zeros((2, 3)), np.zeros((2, 3))
        self._start_offset, self._start_turn = np.zeros(3), np.zeros(3)
        self._swinging: int | None = None
        self._forces = np.zeros((2, 6))
        self._filtered = False

    # -- divergent component of motion --------------------------------------------------------------------------

    def balance(self, ref: References, now: BaseEstimate, omega: float, dt: float) -> Balance:
        """The zero-moment point and the wrenches of the feet that lead back to the plan.

        Args:
            ref: of the plan. now: the robot. omega: of the pendulum [1/s]. dt: of the ticks [s].
        """
        g = self.gains
        xi = now.center[:2] + now.center_velocity[:2] / omega
        e = xi - ref.dcm
        wanted = ref.zmp + (1 + g.dcm / omega) * e + self.integral
        polygon = self.polygon(ref)
        inside = nearest_in_polygon(polygon, wanted)
        cut = float(np.linalg.norm(wanted - inside))
        if cut < 1e-9:
            self.integral = np.clip(self.integral + dt * g.integral * e, -g.integral_limit, g.integral_limit)
        return Balance(e, inside, cut, edge_distance(polygon, inside) + g.margin, self._distribute(ref, inside))

    def polygon(self, ref: References) -> np.ndarray:
        """Corners (k, 2) of where the zero-moment point may be: the hull of the standing soles, less the margin."""
        corners, m = [], self.gains.margin
        for k in (0, 1):
            if k != ref.swinging:
                (x0, y0), (x1, y1) = self.feet.lower[k] + m, self.feet.upper[k] - m
                box = np.array([[x0, y0, 0], [x1, y0, 0], [x1, y1, 0], [x0, y1, 0]])
                X = ref.soles[k]
                corners.append((box @ X.rotation.T + X.translation)[:, :2])
        return corners[0] if len(corners) == 1 else convex_hull(np.vstack(corners))

    def _distribute(self, ref: References, zmp: np.ndarray) -> np.ndarray:
        """Normal force and moments (2, 3) of both feet: shares by where the point lies between them."""
        out, g = np.zeros((2, 3)), self.gains
        left, rest, middles = self._share(ref, zmp)
        if ref.swinging is not None:
            shares, points = (left, 1.0 - left), [zmp, zmp]
        else:
            shares, points = self._both(ref, zmp, left, [m + rest for m in middles])
        for k in (0, 1):
            local = ref.soles[k].actInv(np.array([*points[k], ref.soles[k].translation[2]]))[:2]
            x, y = np.clip(local, self.feet.lower[k] + g.margin, self.feet.upper[k] - g.margin)
            f = shares[k] * self.weight
            out[k] = f, y * f, -x * f
        return out

    def _both(
        self, ref: References, zmp: np.ndarray, left: float, points: list[np.ndarray]
    ) -> tuple[tuple[float, float], list[np.ndarray]]:
        """Shares and pressure points of both feet whose mean is zmp (2,), near those given.

        Each point is moved into its sole and the other one takes up the rest; where both are at an edge, the share
        changes, in steps of a fiftieth, until there is a way.
        """
        best: tuple[float, tuple[float, float], list[np.ndarray]] = (np.inf, (left, 1.0 - left), points)
        for change in SHARES:
            share = min(max(left + change, 0.0), 1.0)
            a, b = points
            for _ in range(4):
                a = self._inside(ref, 0, a)
                if share < 1.0:
                    b = self._inside(ref, 1, (zmp - share * a) / (1.0 - share))
                if share > 0.0:
                    a = self._inside(ref, 0, (zmp - (1.0 - share) * b) / share)
            missing = float(np.abs(share * a + (1.0 - share) * b - zmp).max())
            if missing < best[0] - 1e-9:
                best = missing, (share, 1.0 - share), [a, b]
            if missing < 1e-6:
                break
        return best[1], best[2]

    def _inside(self, ref: References, k: int, p: np.ndarray) -> np.ndarray:
        """The point (2,) of a sole, less the margin, that is nearest to p along its axes."""
        X, m = ref.soles[k], self.gains.margin
        local = X.actInv(np.array([*p, X.translation[2]]))
        local[:2] = np.clip(local[:2], self.feet.lower[k] + m, self.feet.upper[k] - m)
        return X.act(local)[:2]

    def _share(self, ref: References, zmp: np.ndarray) -> tuple[float, np.ndarray, list[np.ndarray]]:
        """Share of the weight on the left foot, what is left of zmp off the line of both feet (2,), their middles."""
        middles = [X.act(np.array([*m, 0.0]))[:2] for X, m in zip(ref.soles, self.feet.middle, strict=True)]
        if ref.swinging is not None:
            return float(ref.swinging == 1), np.zeros(2), middles
        d = middles[0] - middles[1]
        share = float(np.clip((zmp - middles[1]) @ d / (d @ d), 0.0, 1.0))
        return share, zmp - middles[1] - share * d, middles

    # -- forces of the feet -------------------------------------------------------------------------------------

    def press(self, desired: np.ndarray, measured: np.ndarray, swinging: int | None, dt: float) -> None:
        """Turn the soles and shift their heights toward the desired forces.

        Args:
            desired: (2, 3) of `Balance`. measured: (2, 6) of `Feet.wrenches`. swinging: the foot in the air. dt: [s].
        """
        g = self.gains
        a = 1.0 - np.exp(-2 * np.pi * g.force_cutoff * dt) if self._filtered else 1.0
        self._forces, self._filtered = self._forces + a * (measured - self._forces), True
        for k in (0, 1):
            if k == swinging:
                self.ankles[k] *= np.exp(-g.ankle_return * dt)
                continue
            missing = desired[k, 1:] - self._forces[k, 3:5]
            turn = self.ankles[k] - dt * (g.ankle * missing + g.ankle_leak * self.ankles[k])
            self.ankles[k] = np.clip(turn, -g.ankle_limit, g.ankle_limit)
        if swinging is None:
            missing = (desired[0, 0] - desired[1, 0]) - (self._forces[0, 2] - self._forces[1, 2])
            self.height += dt * (g.height * missing - g.height_leak * self.height)
            self.height = float(np.clip(self.height, -g.height_limit, g.height_limit))
        else:
            self.height *= np.exp(-g.height_return * dt)

    # -- places of the feet -------------------------------------------------------------------------------------

    def lead(self, ref: References, now: BaseEstimate, X_world_command: pin.SE3, dt: float) -> None:
        """Lead the swinging foot to its planned place in the world, and let standing feet bring the trunk upright.

        Args:
            ref: of the plan. now: the robot. dt: of the ticks [s].
            X_world_command: pose, in the estimated world, of the world of the commands.
        """
        g, k = self.gains, ref.swinging
        if k is not None:
            if self._swinging != k:
                self._start_offset, self._start_turn = self.offsets[k].copy(), self.turns[k].copy()
            planned = ref.soles[k]
            X = X_world_command.actInv(planned)
            s = minimum_jerk(min(ref.u / 0.6, 1.0))
            place = X.translation - planned.translation
            place[2] = 0.0
            turn = pin.log3(X.rotation @ planned.rotation.T)
            a = 1.0 - np.exp(-dt / g.landing)
            start, begin = self._start_offset * np.array([1, 1, 1 - s]), self._start_turn
            goal, goal_turn = start + s * (place - start * [1, 1, 0]), begin + s * (turn - begin)
            self.offsets[k] += a * (goal - self.offsets[k])
            self.turns[k] += a * (goal_turn - self.turns[k])
        for j in (0, 1):
            if j != k:
                self.turns[j] *= np.exp(-g.upright * dt)
                self.offsets[j][2] *= np.exp(-g.upright * dt)
        self._swinging = k

    def commanded(self, ref: References) -> tuple[list[pin.SE3], np.ndarray]:
        """Poses of both soles for the inverse kinematics, and how far the centre of mass moves along (3,) [m]."""
        out = []
        for k, (X, sign) in enumerate(zip(ref.soles, (-1.0, 1.0), strict=True)):
            p = X.translation + self.offsets[k] + np.array([0.0, 0.0, sign * 0.5 * self.height])
            R = pin.exp3(self.turns[k]) @ X.rotation @ pin.exp3(np.array([*self.ankles[k], 0.0]))
            out.append(pin.SE3(R, p))
        left = self._share(ref, ref.zmp)[0]
        return out, left * self.offsets[0] + (1.0 - left) * self.offsets[1]
