"""Contact plan of a motion: when each foot stands, flat or on its toes.

Human contacts flicker, hover and fly. A feasible plan always has a standing foot, double support around changes of
support, and swings of sufficient duration.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from humanoid_control.performing.settings import FeasibilitySettings
from humanoid_control.performing.source_motion import SourceMotion, wrapped, yaw_of
from humanoid_control.retargeting.whole_body.contacts import HEEL, TOE, runs

ROUNDS = 2  # the rules hardly change anything afterwards
LONG_SWING, CALM = 0.7, 0.12  # [s] swing after which a hovering foot is put down; [s] it must be low and slow
PUT_DOWN = 0.2  # [s] of an inserted contact within a long stance on the other leg


class Change(NamedTuple):
    """Reported change: time [s], kind, amount and unit."""

    time: float
    what: str
    amount: float
    unit: str


class FootMotion(NamedTuple):
    """Sole paths: place (T, 2, 2) [m], height [m] and yaw [rad] (T, 2), pace of the clip (T,)."""

    place: np.ndarray
    height: np.ndarray
    yaw: np.ndarray
    tempo: np.ndarray

    @classmethod
    def of(cls, source: SourceMotion) -> FootMotion:
        """Read sole paths; height of the lowest corner."""
        corners = np.einsum("tfij,fkj->tfki", source.sole_R, source.soles.corners) + source.sole_p[:, :, None]
        height = np.maximum(corners[..., 2].min(axis=2), 0.0)
        return cls(source.sole_p[..., :2], height, np.unwrap(yaw_of(source.sole_R), axis=0), source.tempo)

    @property
    def speed(self) -> np.ndarray:
        """Speeds (T, 2) in the clip [m per frame]: a slowed step is not a hovering foot."""
        along = np.linalg.norm(np.gradient(self.place, axis=0), axis=2)
        return np.asarray(np.hypot(along, np.gradient(self.height, axis=0)) / self.tempo[:, None])


@dataclass(frozen=True)
class Stance:
    """Contact of one foot.

    Attributes:
        end: frame after the last.
        place: position of the sole on the ground (2,) [m].
        yaw: yaw of the flat sole [rad].
        rolls: first frame of the roll over the toe edge; `end`: none.
        pitch: final pitch of the roll, heel up [rad].
    """

    foot: int
    first: int
    end: int
    place: np.ndarray
    yaw: float
    rolls: int
    pitch: float


@dataclass
class ContactPlan:
    """Stances of both feet.

    Attributes:
        stands: (T, 2).
        toe_only: True where a foot stands on its toe edge only (T, 2).
        filled: filled flight [s].
    """

    stands: np.ndarray
    toe_only: np.ndarray
    stances: tuple[list[Stance], list[Stance]]
    changes: list[Change] = field(default_factory=list)
    filled: float = 0.0

    @classmethod
    def of(cls, source: SourceMotion, settings: FeasibilitySettings) -> ContactPlan:
        """Plan the contacts of a motion, with stances at its feet."""
        edges = source.edges.reshape(-1, 2, 2)
        feet, changes = FootMotion.of(source), list[Change]()
        stands = steady_stands(np.asarray(edges.any(axis=2)), feet, settings, changes)
        stances: tuple[list[Stance], list[Stance]] = ([], [])
        toe_only = np.zeros_like(stands)
        for f in (0, 1):
            for a, b in runs(stands[:, f]):
                place, yaw = stance_pose(source, feet, f, a, b)
                rolls, pitch = toe_roll(source, stands, f, (a, b), settings)
                toe_only[rolls:b, f] = True
                stances[f].append(Stance(f, a, b, place, yaw, rolls, pitch))
        filled = sum(c.amount for c in changes if c.what.startswith("flight"))
        return cls(stands, toe_only, stances, changes, filled)

    def stance_at(self, foot: int, frame: int) -> Stance | None:
        """Return the stance of a foot at a frame; None in a swing."""
        return next((s for s in self.stances[foot] if s.first <= frame < s.end), None)

    def swings(self) -> list[tuple[Stance, Stance]]:
        """Return stances before and after each swing, in landing order."""
        pairs = [pair for own in self.stances for pair in pairwise(own)]
        return sorted(pairs, key=lambda pair: pair[1].first)


# -------- Rules


def steady_stands(
    stands: np.ndarray, feet: FootMotion, settings: FeasibilitySettings, changes: list[Change] | None = None
) -> np.ndarray:
    """Return contacts (T, 2) that can be carried.

    One foot always stands, both for `slow_double_support` around changes of support. Swings last at least
    `shortest_swing`.

    Args:
        stands: (T, 2).
        changes: extended.
    """
    s, out = settings, stands.copy()
    told = [] if changes is None else changes
    put_down(out, feet, s)
    flights = []
    for _ in range(ROUNDS):
        close_creeps(out, feet, s)
        drop_brushes(out, s)
        flights += fill_flights(out)
        support_changes(out, s)
        lengthen_swings(out, s, feet.tempo)
    told += [Change(a / s.rate, "flight filled", (b - a) / s.rate, "s") for a, b in flights]
    shortest = s.frames(s.shortest_swing)
    for f in (0, 1):
        for a, b in runs(~out[:, f]):
            if b - a < shortest:
                told.append(Change(a / s.rate, f"step of the {_SIDE[f]} foot left out", (b - a) / s.rate, "s"))
                out[a:b, f] = True
    return out


_SIDE = ("left", "right")


def put_down(stands: np.ndarray, feet: FootMotion, s: FeasibilitySettings) -> None:
    """Put down a foot that hovers in a long swing or leaves the other alone too long."""
    speed, clip = feet.speed * s.rate, np.concatenate([[0.0], np.cumsum(feet.tempo)])
    low = feet.height < s.hover_height
    for f in (0, 1):
        for a, b in runs(~stands[:, f]):
            if clip[b] - clip[a] <= s.frames(LONG_SWING):
                continue
            for c, d in runs(low[a:b, f] & (speed[a:b, f] < s.hover_speed)):
                if d - c >= s.frames(CALM):
                    stands[a + c : a + d, f] = True
        if np.isfinite(s.hover_time):
            for a, b in runs(~stands[:, f] & low[:, f]):
                _interrupt(stands[:, f], speed[:, f], clip, (a, b), s)


def _interrupt(
    stands: np.ndarray, speed: np.ndarray, clip: np.ndarray, swing_of: tuple[int, int], s: FeasibilitySettings
) -> None:
    """Insert contacts where the foot is slowest until the swing [a, b) is short enough, in frames of the clip."""
    (a, b), half = swing_of, max(1, s.frames(0.5 * PUT_DOWN))
    swing = s.frames(s.shortest_swing) + half
    if clip[b] - clip[a] <= s.frames(s.hover_time) + 1e-6 or b - a < 2 * swing + 1:
        return
    middle = a + swing + int(np.argmin(speed[a + swing : b - swing]))
    stands[middle - half : middle + half] = True
    _interrupt(stands, speed, clip, (a, middle - half), s)
    _interrupt(stands, speed, clip, (middle + half, b), s)


def close_creeps(stands: np.ndarray, feet: FootMotion, s: FeasibilitySettings) -> None:
    """Close gaps with little foot motion."""
    T = len(stands)
    for f in (0, 1):
        for a, b in runs(~stands[:, f]):
            if a == 0 or b == T:
                continue
            moved = np.linalg.norm(feet.place[b, f] - feet.place[a - 1, f])
            turned = abs(float(wrapped(feet.yaw[b, f] - feet.yaw[a - 1, f])))
            rose = feet.height[a:b, f].max() - min(feet.height[a - 1, f], feet.height[b, f])
            brief = b - a < s.frames(s.shortest_gap) or rose < s.creep_rise
            if brief and moved < s.creep and turned < s.creep_turn:
                stands[a:b, f] = True


def drop_brushes(stands: np.ndarray, s: FeasibilitySettings) -> None:
    """Drop short contacts while the other foot stands."""
    T, before = len(stands), stands.copy()
    for f in (0, 1):
        for a, b in runs(before[:, f]):
            if a > 0 and b < T and b - a < s.frames(s.shortest_support) and before[a:b, 1 - f].all():
                stands[a:b, f] = not (before[a - 1, 1 - f] or before[b, 1 - f])


def fill_flights(stands: np.ndarray) -> list[tuple[int, int]]:
    """Fill flights: first half by the lifting foot, second half by the landing foot."""
    T, found = len(stands), runs(np.asarray(~stands.any(axis=1)))
    for a, b in found:
        before = stands[a - 1] if a > 0 else np.zeros(2, dtype=bool)
        after = stands[b] if b < T else np.zeros(2, dtype=bool)
        left, coming = before.copy(), after.copy()
        if not left.any():
            left = coming.copy() if coming.any() else np.ones(2, dtype=bool)
        if not coming.any():
            coming = left.copy()
        if left.all() and not coming.all():
            left = ~coming  # the other foot lands, so this one may swing
        elif coming.all() and not left.all():
            coming = ~left
        middle = (a + b) // 2
        stands[a:middle] |= left
        stands[middle:b] |= coming
    return found


def support_changes(stands: np.ndarray, s: FeasibilitySettings) -> None:
    """Extend double support by earlier landing and later lift-off."""
    T, least = len(stands), s.frames(s.slow_double_support)
    for _ in range(2 * T):  # each iteration widens one change; there are fewer changes than frames
        alone = np.where(stands.all(axis=1), -1, np.where(stands[:, 0], 0, 1))
        single = np.flatnonzero(alone >= 0)
        change = np.flatnonzero((alone[single[1:]] != alone[single[:-1]]) & (np.diff(single) - 1 < least))
        if not len(change):
            return
        k = change[0]
        last, first = int(single[k]), int(single[k + 1])
        missing = least - (first - last - 1)
        early = missing // 2
        stands[max(0, last + 1 - early) : last + 1, alone[first]] = True
        stands[first : min(T, first + missing - early), alone[last]] = True


def lengthen_swings(stands: np.ndarray, s: FeasibilitySettings, tempo: np.ndarray) -> None:
    """Lengthen short swings within the other foot's stance and double support.

    Args:
        tempo: pace of the clip (T,); swings of a clip slower than `least_pace` are lengthened with it.
    """
    T, both = len(stands), s.frames(s.slow_double_support)
    for a, b, f in sorted((*run, foot) for foot in (0, 1) for run in runs(~stands[:, foot])):
        least = s.frames(s.shortest_swing * max(1.0, s.least_pace / float(tempo[a:b].mean())))
        missing = least - (b - a)
        own = np.flatnonzero(~stands[:, f])
        others = np.flatnonzero(~stands[:, 1 - f])
        low = max([0, *(own[own < a][-1:] + 1 + both), *(others[others < a][-1:] + 1 + both)])
        high = min([T, *(own[own >= b][:1] - both), *(others[others >= b][:1] - both)])
        back, ahead = max(0, a - low), max(0, high - b)
        if not 0 < missing <= back + ahead:
            continue
        early = min(back, max((missing + 1) // 2, missing - ahead))
        stands[a - early : b + missing - early, f] = False


# -------- Poses


def stance_pose(source: SourceMotion, feet: FootMotion, f: int, a: int, b: int) -> tuple[np.ndarray, float]:
    """Return median place (2,) and yaw of the stance [a, b)."""
    edges = source.edges[a:b, 2 * f : 2 * f + 2]
    held = edges.all(axis=1)
    if not held.any():
        held = edges.any(axis=1)
    if not held.any():  # filled, or put down
        held = np.ones(b - a, dtype=bool)
    yaw = float(np.median(feet.yaw[a:b, f][held]))
    c, sn = np.cos(yaw), np.sin(yaw)
    turn = np.array([[c, -sn], [sn, c]])
    toe_alone = edges[held][:, TOE] & ~edges[held][:, HEEL]
    lever = np.where(toe_alone, source.soles.toe[f], -source.soles.heel[f])
    R, p = source.sole_R[a:b, f][held], source.sole_p[a:b, f][held]
    edge = p[:, :2] + lever[:, None] * R[:, :2, 0]
    own = np.stack([lever, np.zeros_like(lever)], axis=1) @ turn.T
    # in the stance's axes, so that the median is independent of the world axes
    return turn @ np.median((edge - own) @ turn, axis=0), yaw


def toe_roll(
    source: SourceMotion, stands: np.ndarray, f: int, stance: tuple[int, int], s: FeasibilitySettings
) -> tuple[int, float]:
    """Return first frame and largest pitch of the final toe roll; stance end and 0: none."""
    a, b = stance
    if not s.toe_off or source.soles.toe_links or b == len(stands):
        return b, 0.0
    first = b
    while first - 1 > a and stands[first - 1, 1 - f] and not source.edges[first - 1, 2 * f + HEEL]:
        first -= 1
    on_toe = np.flatnonzero(source.edges[first:b, 2 * f + TOE])
    if b - first < max(2, s.frames(s.toe_off_time)):
        return b, 0.0
    # where a flight was filled, the clip's foot is in the air: it has left by its toes, and so does the planned one
    last = first + on_toe[-1] if len(on_toe) else b - 1
    pitch = -float(np.arcsin(np.clip(source.sole_R[last, f, 2, 0], -1.0, 1.0)))
    least, most = s.toe_off_pitch
    return (first, min(pitch, most)) if pitch > least else (b, 0.0)
