"""Whole-body retargeting of a clip in overlapping windows, all frames of a window at once.

The frame-by-frame solution is the initial guess. A contact schedule defines time and place of each stance.
`clip_solver` optimises a window, `feasible_frames` publishes it. Published frames are the fixed start of the next
window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import uniform_filter1d

from humanoid_control.errors import UnknownNameError
from humanoid_control.retargeting.frame_solver import FrameBefore, clearance
from humanoid_control.retargeting.problem import scratch_for
from humanoid_control.retargeting.trajectory import WholeBodyTrajectory
from humanoid_control.retargeting.whole_body.clip_solver import (
    ClipGoal,
    ClipPostures,
    ClipRules,
    ClipWork,
    advance,
    frame_costs,
    newton_step,
    place_corners,
    place_soles,
)
from humanoid_control.retargeting.whole_body.contacts import HEEL, TOE, ContactRules, ContactSoles, runs
from humanoid_control.retargeting.whole_body.feasible_frames import LOST, follow_frames
from humanoid_control.retargeting.whole_body.frames import FrameInputs, FrameResults
from humanoid_control.retargeting.whole_body.retargeter import WholeBodyRetargeter
from humanoid_control.retargeting.whole_body.scaling import WholeBodyTargets

WINDOW, AHEAD = 600, 0.5  # frames optimised together; look-ahead within them [s]
SMOOTHING = 2.0  # [m/rad] cost of a velocity change between frames at 100 Hz
# Penalties (limits, distances, contact places) per step: first while the feet choose their places.
CHOOSING = ((1e2, 1e2, 30.0), (3e2, 1e3, 30.0))
KEEPING = ((3e2, 1e3, 3e2), (1e3, 3e3, 1e3), (1e3, 1e4, 3e3), (1e3, 1e4, 1e4))
MENDING = 4 * ((3e3, 1e4, 1e4),)  # after the release of impossible contacts
EFFORT = 10.0  # penalty of excess acceleration
DAMPING, CAUTION = 1e-2, 1.0  # damping of insensitive coordinates; share of a frame's cost added to it
# halvings of a step that raises the cost; time around a frame over which cost is averaged [s]
HALVINGS, NEARBY = 2, 0.15
LONGEST = 0.5  # longest step of a coordinate [rad, m]
LOW, RAISED = 0.015, 0.1  # [m] height above which an edge is not in contact at the ends of a run; for at most [s]
GAP, SHORTEST = 0.05, 0.05  # [s] longest gap that is closed; shortest contact that is kept
LIFT, GLIDE = 0.1, 0.2  # [s] transition of an edge between floor and free height; of a foot between place and free path
RELEASE = 0.12  # [s] release of a pivoting foot

LIVE, CLIP = "live", "clip"
WHOLE_BODY_METHODS = {
    LIVE: "frame by frame, each from the ones before: what a live robot can do, too",
    CLIP: "all frames at once: smoother, and feet arrive in time",
}


def whole_body_solver(method: str) -> type[WholeBodyRetargeter]:
    """Return the solver class of a method.

    Raises:
        UnknownNameError: if the method is not in WHOLE_BODY_METHODS.
    """
    if method not in WHOLE_BODY_METHODS:
        raise UnknownNameError("method", method, WHOLE_BODY_METHODS, hint="(of the whole body)")
    return ClipRetargeter if method == CLIP else WholeBodyRetargeter


# -------- plan of the contacts


@dataclass
class ContactSchedule:
    """Time and place of each stance.

    Attributes:
        free: (T, 2, 5) poses of free soles, as in `contacts.FootMemory`.
        edge: (T, 4) edges in contact, in the order of `contacts.EDGES`.
        height: (T, 2, 2) of heel and toe edge of both feet [m].
        first: (N,) first frame of each hold.
        end: (N,) frame after the last of each hold.
        place: (N, 3) x, y of the flat sole's heel edge middle [m], and yaw [rad].
        lift: transition frames of an edge between floor and free height.
        glide: transition frames of a foot between place and free path.
    """

    soles: ContactSoles
    free: np.ndarray
    edge: np.ndarray
    height: np.ndarray
    first: np.ndarray
    end: np.ndarray
    foot: np.ndarray
    place: np.ndarray
    lift: int
    glide: int

    @classmethod
    def of(cls, targets: WholeBodyTargets, soles: ContactSoles, rules: ContactRules) -> ContactSchedule:
        """Return the person's contacts without flicker, each hold at the mean of the person's places."""
        rate, free = targets.rate, targets.soles
        edge = np.empty_like(targets.contacts)
        for e in range(4):
            flags = steady(targets.contacts[:, e], round(GAP * rate), round(SHORTEST * rate))
            edge[:, e] = lowered(flags, free[:, e // 2, 3 + e % 2], round(RAISED * rate))
        holds = []
        for f in (0, 1):
            on = edge[:, 2 * f : 2 * f + 2]
            for first, end in runs(np.asarray(on.any(axis=1))):
                holds += [(a, b, f) for a, b in unturned(first, end, free[:, f, 2], on, rules.pivot, rate)]
        first, end, foot = np.array(holds, dtype=np.int64).reshape(-1, 3).T
        held = np.zeros((len(edge), 2), dtype=bool)
        for a, b, f in holds:
            held[a:b, f] = True
        edge &= np.repeat(held, 2, axis=1)
        place, lift, glide = np.zeros((len(holds), 3)), max(1, round(LIFT * rate)), max(1, round(GLIDE * rate))
        plan = cls(soles, free, edge, np.maximum(free[:, :, 3:], 0.0), first, end, foot, place, lift, glide)
        plan.lower(0, len(edge))
        for k, (a, b, f) in enumerate(holds):
            place[k] = plan.mean_place(k, a, free[a:b, f])
        return plan

    def lower(self, first: int, end: int) -> None:
        """Set edge heights of frames first .. end - 1: zero in contact, with smooth transitions."""
        a, b = max(first - self.lift, 0), end + self.lift
        for e in range(4):
            near = frames_from(self.edge[a:b, e])[first - a :][: end - first]
            self.height[first:end, e // 2, e % 2] = np.maximum(self.free[first:end, e // 2, 3 + e % 2], 0.0)
            self.height[first:end, e // 2, e % 2] *= eased(near / self.lift)

    def release(self, first: int, lost: np.ndarray) -> bool:
        """Release edges marked in `lost` (n, 4) from frame `first` on; return True if any was in contact."""
        end = first + len(lost)
        lost = lost & self.edge[first:end]
        self.edge[first:end] &= ~lost
        if lost.any():
            self.lower(first, end)
        return bool(lost.any())

    def mean_place(self, k: int, first: int, poses: np.ndarray) -> np.ndarray:
        """Return the place (3,) of hold k for sole poses (n, 5) from a frame on."""
        f, n = int(self.foot[k]), len(poses)
        yaw = float(np.angle(np.exp(1j * poses[:, 2]).mean()))
        forward, length = np.array([np.cos(yaw), np.sin(yaw)]), self.soles.length[f]
        own = np.stack([np.cos(poses[:, 2]), np.sin(poses[:, 2])], axis=1)
        toe = self.edge[first : first + n, 2 * f + TOE]
        reach = length * cosine((poses[:, 4] - poses[:, 3]) / length)
        heel = np.where(toe[:, None], poses[:, :2] + reach[:, None] * own - length * forward, poses[:, :2])
        return np.array([*heel.mean(axis=0), yaw])

    def poses(self, first: int, end: int) -> np.ndarray:
        """Return poses (n, 2, 5) of both soles at frames first .. end - 1: held, or free with blends to the holds."""
        out = self.free[first:end].copy()
        t = np.arange(first, end)
        for f in (0, 1):
            out[:, f, 3:] = self.height[first:end, f]
            mine = np.flatnonzero(self.foot == f)
            if not len(mine):
                continue
            before = np.searchsorted(self.first[mine], t, side="right") - 1
            held = (before >= 0) & (t < self.end[mine][before])
            out[held, f] = self._held(mine[before[held]], t[held])
            left, coming = ~held & (before >= 0), ~held & (before + 1 < len(mine))
            gap = np.full(len(t), self.glide)
            both = left & coming
            gap[both] = self.first[mine[before[both] + 1]] - self.end[mine[before[both]]] + 1
            gap = np.minimum(gap, self.glide)
            moved = out[:, f, :3].copy()
            for some, k, at in (
                (left, mine[np.maximum(before, 0)], self.end - 1),
                (coming, mine[np.minimum(before + 1, len(mine) - 1)], self.first),
            ):
                k, since = k[some], np.abs(t[some] - at[k[some]]) / gap[some]
                off = self._held(k, at[k])[:, :3] - self.free[at[k], f, :3]
                off[:, 2] = np.angle(np.exp(1j * off[:, 2]))
                moved[some] += (1.0 - eased(since))[:, None] * off
            out[~held, f, :3] = moved[~held]
        return out

    def _held(self, k: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return sole poses (n, 5) of holds k (n,) at frames t (n,)."""
        f = self.foot[k]
        pose = np.hstack([self.place[k], self.height[t, f]])
        length = self.soles.length[f]
        ahead = length * (1.0 - cosine((pose[:, 4] - pose[:, 3]) / length))
        ahead[~self.edge[t, 2 * f + TOE]] = 0.0
        pose[:, 0] += ahead * np.cos(pose[:, 2])
        pose[:, 1] += ahead * np.sin(pose[:, 2])
        return pose

    def choose(self, first: int, corners: np.ndarray) -> None:
        """Move holds that begin in these frames to the robot's soles (n, 8, 3) [m]."""
        end = first + len(corners)
        for k in np.flatnonzero((self.first >= first) & (self.first < end)):
            a, b, f = int(self.first[k]), min(int(self.end[k]), end), int(self.foot[k])
            self.place[k] = self.mean_place(
                int(k), a, self._measured(f, corners[a - first : b - first, 4 * f : 4 * f + 4])
            )

    def _measured(self, f: int, corners: np.ndarray) -> np.ndarray:
        left, right = self.soles.side[f, :2]
        share = left / (left - right)
        heel, toe = ((1 - share) * corners[:, k] + share * corners[:, k + 1] for k in (0, 2))
        yaw = np.arctan2(toe[:, 1] - heel[:, 1], toe[:, 0] - heel[:, 0])
        return np.column_stack([heel[:, :2], yaw, heel[:, 2], toe[:, 2]])


def steady(flags: np.ndarray, gap: int, shortest: int) -> np.ndarray:
    """Return contact flags (T,) without short gaps and short runs, except at the ends of the clip."""
    out = flags.copy()
    for a, b in runs(~out):
        if a > 0 and b < len(out) and b - a <= gap:
            out[a:b] = True
    for a, b in runs(out):
        if a > 0 and b < len(out) and b - a <= shortest:
            out[a:b] = False
    return out


def lowered(flags: np.ndarray, height: np.ndarray, most: int) -> np.ndarray:
    """Return contact flags (T,) without up to `most` frames at either end with the edge raised, height (T,) [m]."""
    out = flags.copy()
    for a, b in runs(flags):
        first, end = a, b
        while a > 0 and first < min(a + most, b - 1) and height[first] > LOW:
            first += 1
        while b < len(out) and end > max(b - most, first + 1) and height[end - 1] > LOW:
            end -= 1
        out[a:first], out[end:b] = False, False
    return out


def unturned(first: int, end: int, yaw: np.ndarray, on: np.ndarray, most: float, rate: float) -> list[tuple[int, int]]:
    """Return the parts of a hold within which the foot turns by less than +-`most` [rad]; it pivots between them."""
    parts, a = [], first
    low = high = yaw[first]
    for t in range(first, end):
        if t < a:  # released
            continue
        now = yaw[t] + 2 * np.pi * round((0.5 * (low + high) - yaw[t]) / (2 * np.pi))
        low, high = min(low, now), max(high, now)
        if high - low > 2 * most and on[t, HEEL] != on[t, TOE]:
            parts.append((a, t))
            a = t + max(2, round(RELEASE * rate))
            if a < end:
                low = high = yaw[a]
    parts.append((a, end))
    return [(a, b) for a, b in parts if b - a >= 2]


def frames_from(flags: np.ndarray) -> np.ndarray:
    """Return the number of frames to the nearest True."""
    t, T = np.arange(len(flags)), len(flags)
    last = np.maximum.accumulate(np.where(flags, t, -2 * T))
    following = np.minimum.accumulate(np.where(flags, t, 3 * T)[::-1])[::-1]
    return np.minimum(t - last, following - t)


def eased(share: np.ndarray) -> np.ndarray:
    """Return the cubic from 0 to 1 with zero slope at both ends."""
    s = np.clip(share, 0.0, 1.0)
    return np.asarray(s * s * (3.0 - 2.0 * s))


def cosine(sine: np.ndarray) -> np.ndarray:
    """Return the cosine of a sole's pitch from its sine."""
    return np.asarray(np.sqrt(1.0 - np.clip(sine, -0.95, 0.95) ** 2))


# -------- the whole clip


class ClipRetargeter(WholeBodyRetargeter):
    """Solver of root and joints for all frames of a clip; arguments as WholeBodyRetargeter."""

    def solve(
        self, targets: WholeBodyTargets, progress: Callable[[int, int], None] | None = None
    ) -> WholeBodyTrajectory:
        """Solve a whole clip.

        Raises:
            ClipError: if the first posture does not converge.
        """
        frames, T, dt = self.inputs(targets), len(targets), 1.0 / targets.rate
        live, out = self._begin(frames, targets), self._results(T)
        windows = _Windows(self, frames, ContactSchedule.of(targets, self.legs.soles, self.rules), dt)
        ahead, solved, first = round(AHEAD * targets.rate), 1, 0
        length = max(WINDOW, 3 * ahead)
        while first < T:
            end = min(first + length, T)
            if end > solved:
                self._solve_part(frames, solved, end, dt, live)
                solved = end
            last = T if end == T else end - ahead
            windows.solve(first, last, end, live, out)
            first = last
            if progress is not None:
                progress(last, T)
        return self._trajectory(targets, out)


class _Windows:
    """Successive windows of a clip."""

    def __init__(self, solver: WholeBodyRetargeter, frames: FrameInputs, plan: ContactSchedule, dt: float) -> None:
        p = solver.problem
        joints = p.tree.joints  # own base frame: the frame-by-frame solver continues from its own
        own = joints._replace(R=joints.R.copy(), p=joints.p.copy())
        self.problem = p._replace(tree=p.tree._replace(joints=own), weight=p.weight.copy())
        self.constants, self.free, self.corners = solver.constants, solver.rules.free, solver.corners
        self.frames, self.plan, self.dt = frames, plan, dt
        n = self.constants
        slow = (0.01 / dt) ** 4
        d = len(p.rest)
        self.rules = ClipRules(
            np.full(d, SMOOTHING**2 * slow),
            n.posture**2,
            DAMPING,
            CAUTION,
            p.velocity * dt,
            n.acceleration * dt**2,
            0.0,
            EFFORT,
            0.0,
            n.margin,
        )
        self.near = max(1, round(NEARBY / dt))
        self.scratch = scratch_for(self.problem)
        self.published: tuple[FrameBefore, np.ndarray, np.ndarray] | None = None
        self.work = ClipWork.room(self.problem, 0)
        self.seen = 0
        self.state = self._room(0)

    def _room(self, frames: int) -> ClipPostures:
        d = len(self.problem.rest)
        return ClipPostures(np.zeros((frames, d)), np.zeros((frames, 3, 3)), np.zeros((frames, 3)))

    def solve(self, first: int, last: int, end: int, live: FrameResults, out: FrameResults) -> None:
        """Optimise frames first .. end - 1, publish those before `last`."""
        fixed = min(2, first)
        state = self._start(first - fixed, first, end, live, out)
        W = end - first + fixed
        if len(self.work.step) < W:
            self.work = ClipWork.room(self.problem, W)
        for *prices, contact in CHOOSING:
            state = self._step(state, self._goal(first - fixed, end, contact), fixed, *prices)
        self._choose(first, fixed, state)
        for *prices, contact in KEEPING:
            goal = self._goal(first - fixed, end, contact)
            state = self._step(state, goal, fixed, *prices)
        if self._release(first, fixed, state, goal):
            for *prices, contact in MENDING:
                goal = self._goal(first - fixed, end, contact)
                state = self._step(state, goal, fixed, *prices)
        self.state, self.seen = ClipPostures(*(a[fixed:] for a in state)), first
        n = last - first
        goal = ClipGoal(*(a[fixed : fixed + n] for a in goal))
        part = FrameResults(*(a[first:last] for a in out))
        self._publish(ClipPostures(*(a[:n] for a in self.state)), goal, part)

    def _start(self, history: int, first: int, end: int, live: FrameResults, out: FrameResults) -> ClipPostures:
        state = self._room(end - history)
        known = self.seen + len(self.state.x)
        for a, published, seen, solved in zip(
            state, (out.x, out.R, out.p), self.state, (live.x, live.R, live.p), strict=True
        ):
            a[: first - history] = published[history:first]
            a[first - history : known - history] = seen[first - self.seen :]
            a[max(known, first) - history :] = solved[max(known, first) : end]
        state.x[:, : self.problem.base] = 0.0
        return state

    def _goal(self, first: int, end: int, lock: float) -> ClipGoal:
        target = self.frames.points[first:end].copy()
        place_corners(self.plan.soles, self.plan.poses(first, end), target[:, self.corners :])
        weight = np.tile(self.problem.weight, (end - first, 1))
        weight[:, self.corners :] = np.where(np.repeat(self.plan.edge[first:end], 2, axis=1), lock, self.free)
        return ClipGoal(target, weight)

    def _choose(self, first: int, fixed: int, state: ClipPostures) -> None:
        corners = np.empty((len(state.x), 8, 3))
        place_soles(self.problem, state, self.scratch, corners)
        self.plan.choose(first, corners[fixed:])

    def _release(self, first: int, fixed: int, state: ClipPostures, goal: ClipGoal) -> bool:
        corners = np.empty((len(state.x), 8, 3))
        place_soles(self.problem, state, self.scratch, corners)
        off = np.abs(corners - goal.target[:, self.corners :])[fixed:].max(axis=2).reshape(-1, 4, 2).max(axis=2)
        return self.plan.release(first, off > LOST)

    def _step(self, state: ClipPostures, goal: ClipGoal, fixed: int, hard: float, apart: float) -> ClipPostures:
        """Return the postures after a Gauss-Newton step, shortened where it raises the cost."""
        p, w, work, W = self.problem, self.scratch, self.work, len(state.x)
        rules = self.rules._replace(hard=hard, apart=apart)
        if not (newton_step(p, rules, state, goal, fixed, w, work) and np.isfinite(work.step[:W]).all()):
            return state
        step, before = work.step[:W].copy(), self._nearby(work.cost[:W])
        size = np.abs(step).max(axis=1)
        share = np.minimum(1.0, LONGEST / np.maximum(size, LONGEST))
        trial = self._room(W)
        for k in range(HALVINGS + 1):
            advance(p, state, step, share, trial)
            if k < HALVINGS:
                frame_costs(p, rules, trial, goal, fixed, w, work)
                worse = self._nearby(work.cost[:W]) > before + 1e-9
                if not worse.any():
                    break
                share *= 1.0 - 0.5 * self._nearby(worse.astype(float))
        return trial

    def _nearby(self, values: np.ndarray) -> np.ndarray:
        n = 2 * self.near + 1
        return np.asarray(uniform_filter1d(values, n, mode="nearest"))

    def _publish(self, state: ClipPostures, goal: ClipGoal, out: FrameResults) -> None:
        p = self.problem
        if self.published is None:
            x = state.x[0].copy()
            p.tree.joints.R[0], p.tree.joints.p[0] = state.R[0], state.p[0]
            v = np.zeros(len(x))
            self.published = FrameBefore(x, v, clearance(p, x, self.scratch)), state.R[0].copy(), state.p[0].copy()
        before, R, at = self.published
        p.tree.joints.R[0], p.tree.joints.p[0] = R, at
        last = follow_frames(p, self.constants, state, goal, before, self.dt, out, self.scratch)
        self.published = before._replace(clearance=last), out.R[-1], out.p[-1]
