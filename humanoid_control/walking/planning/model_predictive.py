"""Model predictive control of a walk: zero-moment point and footholds from one quadratic program.

After Herdt (2010, footholds as unknowns) and Scianca (2020, bounded divergence). Unknown are the deviations y_k of the
ZMP at nodes, and the moves d_i of each foothold relative to the previous one:

    minimise    sum_k  stay |y_k|^2 h_k + smooth |y_k - y_(k-1)|^2 / h_k  +  step sum_i |d_i|^2
    subject to  y_k inside the support, which moves along with the footholds; d_i within reach;
                xi(now) = w int_0^inf exp(-w s) p(now + s) ds.

The last row selects the bounded future. Nodes include all lift-offs and touch-downs; beyond them, the nominal ZMP moves
with the last foothold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.numerics.box_program import BoxQp
from humanoid_control.numerics.box_qp import solve_box_qp
from humanoid_control.walking.planning.lipm import ZmpPath
from humanoid_control.walking.planning.plan import CenterRequest, Phase, request_corners, schedule
from humanoid_control.walking.planning.step import StepLimits

RHO = 1e9  # penalty of violating the start of the divergent component
FREE_MOVE = 0.3  # [m] foothold move without step limits


@dataclass(frozen=True)
class PredictiveWeights:
    """Weights of the program.

    Attributes:
        stay: weight of a ZMP deviation [1/(m^2 s)].
        smooth: weight of the velocity of the ZMP deviation [s/m^2].
        step: weight of a foothold's displacement [1/m^2].
    """

    stay: float = 1.0
    smooth: float = 0.02
    step: float = 3.0
    margin: float = 0.01


class Nodes(NamedTuple):
    """Nodes of the ZMP.

    Attributes:
        t: (N + 1,) times from now [s].
        p: (N + 1, 2) nominal ZMP [m].
        share: (N + 1, F) share of each foothold's move in the support's move.
        R: (N + 1, 2, 2) axes of the support.
        lower: (N + 1, 2) lower bound of the deviation, in these axes [m].
        upper: (N + 1, 2) upper bound [m].
    """

    t: np.ndarray
    p: np.ndarray
    share: np.ndarray
    R: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


class ModelPredictive:
    """Planner of the CoM and the next footholds by a quadratic program.

    Attributes:
        nodes: number per single and per double support.
        missed: start error of the DCM in the last plan [m]; positive: it cannot be captured.
        unsolved: number of failed programs; their path and footholds stay nominal.
    """

    def __init__(
        self,
        limits: StepLimits | None = None,
        weights: PredictiveWeights | None = None,
        footholds: int = 3,
        nodes: tuple[int, int] = (4, 2),
    ) -> None:
        self.limits, self.weights, self.footholds, self.nodes = limits, weights or PredictiveWeights(), footholds, nodes
        self.missed, self.unsolved = 0.0, 0

    def plan(self, request: CenterRequest) -> tuple[ZmpPath, list[Phase]]:
        """Return the path from the requested state, and the phases with moved footholds."""
        times, corners = request_corners(request)
        phases = list(request.phases)
        free = phases[: self.footholds]
        if not free:
            return ZmpPath.of(times, corners, request.omega), phases
        nodes = self._nodes(request, times, corners, free)
        later = times > nodes.t[-1] + 1e-9
        tail_t, tail_p = times[later], corners[later]
        program = self._program(request, nodes, (tail_t, tail_p), free)
        x, multipliers = np.empty(len(program.g)), np.empty(len(program.g) + len(program.b))
        used = solve_box_qp(program, len(program.b), 2 * RHO, x, multipliers)
        if used < 0 or not np.isfinite(x).all():
            self.unsolved += 1
            self.missed = float(np.abs(program.b[:2]).max())
            return ZmpPath.of(times, corners, request.omega), phases
        self.missed = float(np.abs(program.A[:2] @ x - program.b[:2]).max())
        n = len(nodes.t) - 1
        y = np.zeros((n + 1, 2))
        y[1:] = np.einsum("kij,kj->ki", nodes.R[1:], x[: 2 * n].reshape(-1, 2))
        axes = self._stance_axes(request, free)
        moves = np.cumsum(np.einsum("kij,kj->ki", axes, x[2 * n :].reshape(-1, 2)), axis=0)
        p = nodes.p + y + nodes.share @ moves
        path = ZmpPath.of(np.append(nodes.t, tail_t), np.vstack([p, tail_p + moves[-1]]), request.omega)
        return path, self._moved(request, phases, moves)

    def _nodes(self, r: CenterRequest, times: np.ndarray, corners: np.ndarray, free: Sequence[Phase]) -> Nodes:
        single, double = self.nodes
        lower, upper = r.soles.lower - r.soles.middle, r.soles.upper - r.soles.middle
        feet, margin = list(r.feet), self.weights.margin
        both = np.maximum(*lower) + margin, np.minimum(*upper) - margin
        t, share, R, low, high = [r.t], [np.zeros(len(free))], [np.eye(2)], [both[0]], [both[1]]

        def add(until: float, count: int, frames: tuple[int, int], moved: tuple[int, int]) -> None:
            start = t[-1]
            if until <= start + 1e-9:
                return
            for k in range(1, count + 1):
                s, shares = k / count, np.zeros(len(free))
                for part, i in ((1 - s, moved[0]), (s, moved[1])):
                    if i >= 0:
                        shares[i] += part
                foot = frames[0] if s < 0.5 else frames[1]
                t.append(start + s * (until - start))
                share.append(shares)
                R.append(feet[foot].rotation[:2, :2])
                one = frames[0] == frames[1]
                low.append(lower[foot] + margin if one else both[0])
                high.append(upper[foot] - margin if one else both[1])

        for i, phase in enumerate(free):
            stance, swing = 1 - phase.step.foot, phase.step.foot
            if i == 0:
                add(phase.lift, single, (swing, stance), (-1, -1))
            add(phase.land, single, (stance, stance), (i - 1, i - 1))
            feet[swing] = phase.step.X
            if i + 1 < len(free) or len(r.phases) > len(free):
                add(phase.end, double, (stance, swing), (i - 1, i))
        at = np.array(t)
        p = np.column_stack([np.interp(at, times, c) for c in corners.T])
        return Nodes(at, p, np.array(share), np.array(R), np.array(low), np.array(high))

    def _program(
        self, r: CenterRequest, nodes: Nodes, tail: tuple[np.ndarray, np.ndarray], free: Sequence[Phase]
    ) -> BoxQp:
        """Return the program in x = (y_1 .. y_N in support axes, d_1 .. d_F in stance-foot axes)."""
        w, n, f = self.weights, len(nodes.t) - 1, len(free)
        turn = np.zeros((2 * (n + f), 2 * (n + f)))
        for k in range(n):
            turn[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = nodes.R[k + 1]
        axes = self._stance_axes(r, free)
        for i in range(f):
            for j in range(i + 1):  # a foothold moves with all previous ones
                turn[2 * (n + i) : 2 * (n + i) + 2, 2 * (n + j) : 2 * (n + j) + 2] = axes[j]
        h = np.diff(nodes.t)
        D = np.eye(n) - np.eye(n, k=-1)
        Hy = D.T @ (D * (w.smooth / h)[:, None]) + np.diag(w.stay * h)
        H = np.zeros((2 * (n + f), 2 * (n + f)))
        H[: 2 * n, : 2 * n] = np.kron(Hy, np.eye(2))
        H[: 2 * n, : 2 * n] = turn[: 2 * n, : 2 * n].T @ H[: 2 * n, : 2 * n] @ turn[: 2 * n, : 2 * n]
        H[2 * n :, 2 * n :] = w.step * np.eye(2 * f)
        # Equality rows: the bounded divergent component, linear in y and d.
        hats = hat_integrals(np.append(nodes.t, tail[0]) - r.t, r.omega)
        nominal = hats @ np.vstack([nodes.p, tail[1]])
        moved = hats[: n + 1] @ nodes.share
        moved[-1] += hats[n + 1 :].sum()
        row = np.zeros((2, 2 * (n + f)))
        row[:, : 2 * n] = np.kron(hats[1 : n + 1], np.eye(2))
        row[:, 2 * n :] = np.kron(moved, np.eye(2))
        row, rest = row @ turn, r.xi - nominal
        low, high = self._reach(r, free)
        return BoxQp(
            H,
            np.zeros(2 * (n + f)),
            np.concatenate([nodes.lower[1:].ravel(), low.ravel()]),
            np.concatenate([nodes.upper[1:].ravel(), high.ravel()]),
            np.ascontiguousarray(np.vstack([row, -row])),
            np.concatenate([rest, -rest]),
        )

    def _stance_axes(self, r: CenterRequest, free: Sequence[Phase]) -> np.ndarray:
        feet, out = list(r.feet), []
        for phase in free:
            out.append(feet[1 - phase.step.foot].rotation[:2, :2])
            feet[phase.step.foot] = phase.step.X
        return np.array(out)

    def _reach(self, r: CenterRequest, free: Sequence[Phase]) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds (F, 2) of each foothold's move in stance-foot axes [m]."""
        low, high = np.full((len(free), 2), -FREE_MOVE), np.full((len(free), 2), FREE_MOVE)
        m, feet = self.limits, list(r.feet)
        for i, phase in enumerate(free):
            step, stance = phase.step, feet[1 - phase.step.foot]
            if m is not None:
                X = stance.actInv(step.X)
                side = 1.0 if step.foot == 0 else -1.0
                yaw = float(np.arctan2(X.rotation[1, 0], X.rotation[0, 0]))
                near, far = m.beside(abs(yaw)), m.width + m.spread
                ahead = np.array([-m.backward, m.forward]) - X.translation[0]
                aside = np.sort(side * np.array([near, far])) - X.translation[1]
                low[i] = np.minimum([ahead[0], aside[0]], 0.0)
                high[i] = np.maximum([ahead[1], aside[1]], 0.0)
            feet[step.foot] = step.X
        return low, high

    def _moved(self, r: CenterRequest, phases: list[Phase], moves: np.ndarray) -> list[Phase]:
        if np.abs(moves).max() < 1e-9:
            return phases
        steps = []
        for i, phase in enumerate(phases):
            X = pin.SE3(phase.step.X.rotation, phase.step.X.translation + [*moves[min(i, len(moves) - 1)], 0.0])
            steps.append(replace(phase.step, X=X))
        return schedule(r.feet, steps, phases[0].lift)


def hat_integrals(t: np.ndarray, omega: float) -> np.ndarray:
    """Return weights (k,) of corners at times t (k,) from now in the current DCM.

    w int_0^inf exp(-w s) p(s) ds for p linear between the corners and constant after the last.
    """
    e, out = np.exp(-omega * t), np.zeros(len(t))
    length = np.maximum(np.diff(t), 1e-12)
    area = e[:-1] - e[1:]
    rising = area / (omega * length) - e[1:]
    out[1:] += rising
    out[:-1] += area - rising
    out[-1] += e[-1]
    return out
