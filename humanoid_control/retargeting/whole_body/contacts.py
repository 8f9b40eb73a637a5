"""Contacts of feet with the floor: found in a person's motion, and kept by a robot's soles.

The floor is the plane under the points of the feet while they are slow, or while they are lowest in a run or jump whose
feet never rest. Heel and toe of each foot are in contact while
they are low and slow, each with hysteresis, and released when they have crept away. A robot's foot in contact is
locked: the edge of its sole (heel or toe) keeps the place and the yaw at which it was caught, the sole lies flat or
rolls over that edge. Catching and releasing begin where the foot is and blend over a short time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.jit import kernel
from humanoid_control.mocap import BodyPoints
from humanoid_control.numerics.array_types import B1, F1, F2, I1

EDGES = ("l_heel", "l_toe", "r_heel", "r_toe")
HEEL, TOE = 0, 1
LEG_POINTS = tuple(f"{side}_{point}" for point in ("knee", "ankle", "toe") for side in "lr")
SLOW = 0.25  # [m/s] of a point of a foot that may be on the floor
STANDING = 0.05  # [s] for which it must have been that slow
LEAST_SLOPE, MOST_SLOPE = 0.003, 0.09  # of a floor that is corrected: below, nothing is gained; above, it is no floor
FEWEST_SLOW = 3  # frames in which a point must be slow to show the floor; else its lowest frames show it
LOWEST = 0.05  # share of the frames that are the lowest of a point: in a run a foot is down for a fifth or more
FAR_BELOW = 0.12  # [m] a point that stands so far below the rest of the feet is not where it should be
FLOOR_SHARE = 0.25  # quantile of the heights of slow points that is the floor: some of them are raised and still
NARROW = 0.5  # [m] spread of places in a direction below which its slope is drawn to zero
STEEPEST = 0.95  # sine of the largest pitch of a sole
DOWN = 2e-3  # [m] height from which the edge of a sole is said to be on the floor


class ContactRules(NamedTuple):
    """Rules of contact.

    Attributes:
        on_height, off_height: height above its level at which a heel or toe comes into contact, and leaves it [m].
        on_speed, off_speed: the same for its speed [m/s].
        rest: time for which a heel or toe that has left stays away, however slow it is: one that creeps flickers [s].
        away: distance from where it came into contact at which it is released [m].
        blend: time in which a foot is caught and released [s].
        pivot: yaw between a sole on one edge and the person's foot at which that edge is released [rad].
        lock: weight of a locked point, well above `frame_solver.LOCKED`.
        landing: of one that comes down, well below it.
        free: of one that swings.
        posture_return: rate at which joints go back to rest where points leave a choice, critically damped [1/s].
        body_return, foot_return: rates at which an error goes, critically damped, once nothing keeps it any more: of
            points of the body, and of a foot that swings [1/s].
    """

    on_height: float = 0.03
    off_height: float = 0.05
    on_speed: float = 0.3
    off_speed: float = 0.6
    rest: float = 0.1
    away: float = 0.05
    blend: float = 0.06
    pivot: float = 0.35
    lock: float = 1e5
    landing: float = 100.0
    free: float = 0.3
    posture_return: float = 12.0
    body_return: float = 20.0
    foot_return: float = 60.0


# -------- the person's floor


@dataclass(frozen=True)
class Floor:
    """Plane under a person's feet.

    Attributes:
        slope: (2,) rise of the recorded floor along x and y.
        level: (6,) height above it of heels, toes and ankles that stand, in the order of EDGES, l_ankle, r_ankle [m].
        notes: sentences about what was corrected.
        rests: True where heels and toes rest on the floor; else it lies under their lowest places.
    """

    slope: np.ndarray
    level: np.ndarray
    notes: tuple[str, ...]
    rests: bool = True


def feet_points(body: BodyPoints) -> np.ndarray:
    """(T, 6, 3) heels, toes, ankles in the order of `Floor.level` [m]; an ankle where a clip shows no heel.

    Raises:
        ClipError: the clip does not show the legs.
    """
    lacking = [name for name in LEG_POINTS if name not in body.names]
    if lacking:
        raise ClipError(f"{body.name}: does not show {', '.join(lacking)}: the whole body needs legs")
    names = [name if name in body.names else f"{name[0]}_ankle" for name in (*EDGES, "l_ankle", "r_ankle")]
    return np.stack([body.point(name) for name in names], axis=1)


def slow_points(feet: np.ndarray, rate: float) -> np.ndarray:
    """(T, F) True where a point (T, F, 3) has been slow for a while."""
    speed = np.linalg.norm(np.diff(feet, axis=0, prepend=feet[:1]), axis=2) * rate
    frames = max(1, round(STANDING * rate))
    fast = np.cumsum(np.vstack([np.zeros((frames, feet.shape[1])), speed > SLOW]), axis=0)
    return np.asarray(fast[frames:] - fast[:-frames] == 0)


def find_floor(body: BodyPoints) -> Floor:
    """Find the floor of a clip: its slope where the person walks far enough, and the heights of standing feet.

    Heights of slow points are h = level of the point + slope . (x, y): a quantile regression with one level a point,
    in which low points count more than high ones, and a slope is worth its price only where places spread. A point
    that is never slow, as in a run, a jump or a clip of two frames, has the level of its lowest frames and no part in
    the slope.

    Raises:
        ClipError: the clip does not show the legs.
    """
    feet = feet_points(body)
    slow = slow_points(feet, body.rate)
    slow[:, slow.sum(axis=0) < FEWEST_SLOW] = False  # one frame or two are a turning point, or the first of the clip
    slope = _slope(feet, slow) if slow.any() else np.zeros(2)
    notes: tuple[str, ...] = ()
    tilt = float(np.linalg.norm(slope))
    if tilt > MOST_SLOPE:
        notes = (f"the feet rise by {100 * tilt:.0f} cm a metre: taken for stairs or a hill, not for a tilted floor",)
    if not LEAST_SLOPE < tilt <= MOST_SLOPE:
        slope = np.zeros(2)
    else:
        notes = (f"the floor of the clip is tilted by {np.degrees(np.arctan(tilt)):.1f} degrees: levelled",)
    height = feet[:, :, 2] - feet[:, :, :2] @ slope
    levels = np.array([_level(height[:, k], slow[:, k]) for k in range(feet.shape[1])])
    for k in range(len(EDGES)):  # one far below the other end of its foot and below the same end of the other foot
        mirrored = levels[(k + 2) % 4]
        if levels[k] < min(levels[k ^ 1], mirrored) - FAR_BELOW:
            levels[k] = mirrored
            notes = (
                *notes,
                f"{EDGES[k]} lies far below the other points of the feet: it has the level of the other foot",
            )
    for left, right in ((0, 2), (1, 3), (4, 5)):  # one that was never put down flat has the level of the other
        pair = levels[[left, right]]
        levels[[left, right]] = np.minimum(pair, pair[::-1] + 0.02)
    moving = [name for k, name in enumerate(EDGES) if not slow[:, k].any()]
    if moving:
        notes = (*notes, f"{', '.join(moving)}: never slow, the floor is taken at the lowest places")
    return Floor(slope, levels, notes, not moving)


def _level(height: np.ndarray, slow: np.ndarray) -> float:
    """Return the height of a point on the floor [m], from its heights (T,) and (T,) True where it is slow."""
    standing, share = (height[slow], 0.2) if slow.any() else (height, LOWEST)
    return float(np.median(standing[standing <= np.quantile(standing, share)]))


def _slope(feet: np.ndarray, slow: np.ndarray) -> np.ndarray:
    """Slope (2,) of the floor: quantile regression by reweighted least squares."""
    t, k = np.nonzero(slow)
    xy, h = feet[t, k, :2], feet[t, k, 2]
    xy = xy - xy.mean(axis=0)
    used, k = np.unique(k, return_inverse=True)
    A = np.hstack([np.eye(len(used))[k], xy])
    prior = np.diag([*np.zeros(len(used)), NARROW**2, NARROW**2]) * 0.01 * len(h)
    w = np.ones(len(h))
    c = np.zeros(A.shape[1])
    for _ in range(30):
        c = np.linalg.solve(A.T @ (w[:, None] * A) + prior, A.T @ (w * h))
        r = h - A @ c
        w = np.where(r < 0, 1 - FLOOR_SHARE, FLOOR_SHARE) / np.maximum(np.abs(r), 2e-3)
        w /= w.mean()
    return c[-2:]


def level(body: BodyPoints, floor: Floor) -> BodyPoints:
    """The clip turned by the smallest rotation that makes its floor horizontal."""
    if not floor.slope.any():
        return body
    n = np.array([-floor.slope[0], -floor.slope[1], 1.0])
    n /= np.linalg.norm(n)
    w = np.cross(n, [0.0, 0.0, 1.0])
    W = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    R = np.eye(3) + W + W @ W / (1 + n[2])
    return replace(body, positions=body.positions @ R.T, missing=body.missing.copy())


# -------- the person's contacts


class ContactMemory(NamedTuple):
    """Contacts of the frame before: contact (4,), place (4, 3) at which each began [m], point (4, 3) last seen [m],
    away (4,) for how long each has not been in contact [s]."""

    contact: np.ndarray
    place: np.ndarray
    point: np.ndarray
    away: np.ndarray

    @classmethod
    def new(cls) -> ContactMemory:
        """Before the first frame."""
        return cls(np.zeros(4, dtype=np.bool_), np.zeros((4, 3)), np.full((4, 3), np.nan), np.full(4, np.inf))


@kernel
def find_contacts(rules: ContactRules, points: np.ndarray, dt: float, memory: ContactMemory) -> None:
    """Contacts of the next frame, in place.

    Args:
        points: (4, 3) heels and toes in the order of EDGES [m], z above the level of each.
        dt: since the frame before [s].
        memory: of the frames before.
    """
    for k in range(4):
        speed, off = 0.0, 0.0
        for i in range(3):
            v = (points[k, i] - memory.point[k, i]) / dt
            speed += v * v if np.isfinite(v) else 0.0
            off += (points[k, i] - memory.place[k, i]) ** 2
        speed, height = np.sqrt(speed), points[k, 2]
        if memory.contact[k]:
            if height > rules.off_height or speed > rules.off_speed or off > rules.away**2:
                memory.contact[k] = False
                memory.away[k] = 0.0
        elif height < rules.on_height and speed < rules.on_speed and memory.away[k] > rules.rest - 0.5 * dt:
            memory.contact[k] = True
            memory.place[k] = points[k]
        memory.away[k] += dt
        memory.point[k] = points[k]


def runs(flags: np.ndarray | Sequence[bool]) -> list[tuple[int, int]]:
    """First frame of each run of True, and the first after it."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(flags, dtype=np.int8), [0]])))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


# -------- the robot's soles


class ContactSoles(NamedTuple):
    """Rectangles of both soles, left and right.

    Attributes:
        length: (2,) from the heel edge to the toe edge [m].
        ankle: (2, 2) of the ankle: from the heel edge forward, above the sole [m].
        side: (2, 4) of the corners heel left, heel right, toe left, toe right: to the left of the ankle [m].
    """

    length: F1
    ankle: F2
    side: F2


class FootMemory(NamedTuple):
    """State of both feet, left and right. A pose of a sole is (x, y of the middle of its heel edge, yaw, height of the
    heel edge, height of the toe edge).

    Attributes:
        locked: (2,) bool.
        pivot: (2,) HEEL or TOE: the edge that is held.
        anchor: (2, 3) its x, y [m], and yaw [rad].
        offset, speed: (8, 3) of the corners where a foot was caught, or an edge of it: from those that are wanted [m];
            their speed then [m/s].
        age: (2,) since then, or since the foot was let go [s].
        edge: (4,) bool, edges in contact.
        edge_age: (4,) since that began [s].
        last: (2, 5) poses of the last targets.
        corners: (8, 3) of the robot's soles at the frame before the last [m].
    """

    locked: B1
    pivot: I1
    anchor: F2
    offset: F2
    speed: F2
    age: F1
    edge: B1
    edge_age: F1
    last: F2
    corners: F2

    @classmethod
    def new(cls) -> FootMemory:
        """Both feet free."""
        free = np.zeros(2, dtype=np.bool_)
        old, last = np.full(2, np.inf), np.zeros((2, 5))
        offset, speed, corners = np.zeros((8, 3)), np.zeros((8, 3)), np.full((8, 3), np.nan)
        edge, edge_age = np.zeros(4, dtype=np.bool_), np.full(4, np.inf)
        return cls(free, np.zeros(2, np.int64), np.zeros((2, 3)), offset, speed, old, edge, edge_age, last, corners)


class FootTargets(NamedTuple):
    """Corners of both soles: target (8, 3) [m], weight (8,); free (8, 3), where they would be if nothing held them [m];
    contact (4,) edges on the floor, caught for good."""

    target: F2
    weight: F1
    free: F2
    contact: B1


@kernel
def smooth(share: float) -> float:
    """Cubic from 0 at 0 to 1 at 1, level at both ends."""
    s = min(max(share, 0.0), 1.0)
    return s * s * (3.0 - 2.0 * s)


@kernel
def wrapped(angle: float) -> float:
    """The angle within -pi .. pi."""
    return angle - 2.0 * np.pi * np.floor(angle / (2.0 * np.pi) + 0.5)


@kernel
def sole_pitch(length: float, heel: float, toe: float) -> tuple[float, float]:
    """Sine and cosine of the pitch, toe up, of a sole with edges at these heights [m]."""
    s = min(max((toe - heel) / length, -STEEPEST), STEEPEST)
    return s, np.sqrt(1.0 - s * s)


@kernel
def sole_pose(soles: ContactSoles, f: int, corners: np.ndarray, out: np.ndarray) -> None:
    """Pose (5,) of a sole from its corners (4, 3), as in FootMemory."""
    side = soles.side[f]
    edges = np.empty((2, 3))
    for e in range(2):
        share = side[2 * e] / (side[2 * e] - side[2 * e + 1])
        for i in range(3):
            edges[e, i] = (1.0 - share) * corners[2 * e, i] + share * corners[2 * e + 1, i]
    out[0], out[1] = edges[0, 0], edges[0, 1]
    out[2] = np.arctan2(edges[1, 1] - edges[0, 1], edges[1, 0] - edges[0, 0])
    out[3], out[4] = edges[0, 2], edges[1, 2]


@kernel
def sole_corners(soles: ContactSoles, f: int, pose: np.ndarray, out: np.ndarray) -> None:
    """Corners (4, 3) of a sole with a pose (5,) [m]; the inverse of `sole_pose` for soles that roll over no side."""
    s, c = sole_pitch(soles.length[f], pose[3], pose[4])
    x, y = np.cos(pose[2]), np.sin(pose[2])
    for k in range(4):
        along, side = soles.length[f] * (k // 2), soles.side[f, k]
        out[k, 0] = pose[0] + along * c * x - side * y
        out[k, 1] = pose[1] + along * c * y + side * x
        out[k, 2] = pose[3] + along * s


@kernel
def hold_edge(soles: ContactSoles, f: int, memory: FootMemory, pose: np.ndarray, edge: int) -> None:
    """Lock an edge of a sole where a pose (5,) of it has that edge."""
    memory.pivot[f] = edge
    _, c = sole_pitch(soles.length[f], pose[3], pose[4])
    reach = soles.length[f] * c if edge == TOE else 0.0
    memory.anchor[f, 0] = pose[0] + reach * np.cos(pose[2])
    memory.anchor[f, 1] = pose[1] + reach * np.sin(pose[2])
    memory.anchor[f, 2] = pose[2]


@kernel
def lock_foot(
    rules: ContactRules,
    soles: ContactSoles,
    f: int,
    free: np.ndarray,
    contact: np.ndarray,
    now: np.ndarray,
    dt: float,
    memory: FootMemory,
) -> bool:
    """Decide whether a foot is held, and by which edge; updates the memory but for its offset and corners.

    Args:
        f: LEFT 0 or RIGHT 1.
        free: (5,) pose of the sole that nothing locks.
        contact: (2,) heel, toe of the person.
        now: (2, 5) pose of the robot's sole at the frame before, and its speed.

    Returns:
        True where the foot, or an edge of it, is caught or an edge let go: its corners blend from where they are.
    """
    heel, toe = contact[0], contact[1]
    changed = False
    memory.age[f] += dt
    for e in range(2):
        memory.edge_age[2 * f + e] += dt
    turned = abs(wrapped(free[2] - memory.anchor[f, 2])) > rules.pivot and heel != toe
    if memory.locked[f] and (turned or not (heel or toe)):
        memory.locked[f] = False
        memory.age[f] = 0.0
    elif not memory.locked[f] and (heel or toe) and memory.age[f] >= rules.blend:
        memory.locked[f], changed = True, True
        rest = now[0].copy()  # where it comes to rest, slowing down as evenly as a cubic can
        for i in range(3):
            rest[i] += now[1, i] * rules.blend / 3.0
        hold_edge(soles, f, memory, rest, TOE if toe else HEEL)
    elif memory.locked[f] and not (heel if memory.pivot[f] == HEEL else toe):
        hold_edge(soles, f, memory, memory.last[f], TOE if toe else HEEL)
    for e in range(2):
        on = contact[e] and memory.locked[f]
        if on != memory.edge[2 * f + e]:
            memory.edge[2 * f + e] = on
            memory.edge_age[2 * f + e] = 0.0
            changed = True
    return changed and memory.locked[f]


@kernel
def land_edges(
    rules: ContactRules,
    soles: ContactSoles,
    f: int,
    now: np.ndarray,
    corners: np.ndarray,
    memory: FootMemory,
    out: FootTargets,
) -> None:
    """Say which edges of a foot are on the floor: those that were caught, and came down with both ends.

    Until then they are no more than drawn to the floor: a leg that is too slow to bring its foot down in time may not
    pull the other one from its place. A foot is held where it has come down.

    Args:
        now: (5,) pose of the robot's sole at the frame before.
        corners: (4, 3) of it [m].
        out: its contact is updated.
    """
    contact = out.contact
    stood = contact[2 * f] or contact[2 * f + 1]
    for e in range(2):
        k = 2 * f + e
        down = memory.edge_age[k] >= rules.blend and max(corners[2 * e, 2], corners[2 * e + 1, 2]) < DOWN
        contact[k] = memory.edge[k] and (contact[k] or down)
        if contact[k]:
            memory.offset[2 * k : 2 * k + 2], memory.speed[2 * k : 2 * k + 2] = 0.0, 0.0
    if not stood and (contact[2 * f] or contact[2 * f + 1]):
        hold_edge(soles, f, memory, now, TOE if contact[2 * f + 1] else HEEL)


@kernel
def foot_targets(
    rules: ContactRules,
    soles: ContactSoles,
    free: np.ndarray,
    contact: np.ndarray,
    corners: np.ndarray,
    dt: float,
    memory: FootMemory,
    out: FootTargets,
) -> None:
    """Targets of the corners of both soles for the next frame.

    Args:
        free: (2, 5) poses of the soles that nothing locks.
        contact: (4,) of the person, in the order of EDGES.
        corners: (8, 3) of the robot's soles at the frame before [m].
        memory: of the frames before; updated.
        out: filled.
    """
    now, before, pose, target = np.empty((2, 5)), np.empty(5), np.empty(5), np.empty((4, 3))
    for f in range(2):
        here, last = corners[4 * f : 4 * f + 4], memory.corners[4 * f : 4 * f + 4]
        offset, speed = memory.offset[4 * f : 4 * f + 4], memory.speed[4 * f : 4 * f + 4]
        sole_pose(soles, f, here, now[0])
        sole_pose(soles, f, last, before)
        for i in range(5):
            off = now[0, i] - before[i]
            now[1, i] = (wrapped(off) if i == 2 else off) / dt if dt > 0.0 and np.isfinite(off) else 0.0
        blends = lock_foot(rules, soles, f, free[f], contact[2 * f : 2 * f + 2], now, dt, memory)
        land_edges(rules, soles, f, now[0], here, memory, out)
        pose[:] = free[f]
        if memory.locked[f]:
            for e in range(2):
                pose[3 + e] = 0.0 if memory.edge[2 * f + e] else max(free[f, 3 + e], 0.0)
            _, c = sole_pitch(soles.length[f], pose[3], pose[4])
            reach = soles.length[f] * c if memory.pivot[f] == TOE else 0.0
            pose[0] = memory.anchor[f, 0] - reach * np.cos(memory.anchor[f, 2])
            pose[1] = memory.anchor[f, 1] - reach * np.sin(memory.anchor[f, 2])
            pose[2] = memory.anchor[f, 2]
        memory.last[f] = pose
        sole_corners(soles, f, free[f], out.free[4 * f : 4 * f + 4])
        sole_corners(soles, f, pose, target)
        if blends:
            memory.age[f] = 0.0
            for k in range(4):
                held = out.contact[2 * f + k // 2]
                for i in range(3):
                    v = (here[k, i] - last[k, i]) / dt if dt > 0.0 else 0.0
                    offset[k, i] = 0.0 if held else here[k, i] - target[k, i]
                    speed[k, i] = v if np.isfinite(v) and not held else 0.0
        part = min(memory.age[f] / rules.blend, 1.0) if memory.locked[f] else 1.0
        left, coast = 1.0 - smooth(part), rules.blend * part * (1.0 - part) ** 2
        for k in range(4):
            e = k // 2
            for i in range(3):
                out.target[4 * f + k, i] = target[k, i] + left * offset[k, i] + coast * speed[k, i]
            out.target[4 * f + k, 2] = max(out.target[4 * f + k, 2], 0.0)
            out.weight[4 * f + k] = rules.free
            if memory.edge[2 * f + e]:
                caught = smooth(memory.edge_age[2 * f + e] / rules.blend)
                out.weight[4 * f + k] *= (rules.landing / rules.free) ** caught
            if out.contact[2 * f + e]:
                out.weight[4 * f + k] = rules.lock
        last[:] = here
