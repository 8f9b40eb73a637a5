"""Foot contacts: detected in a person's motion, and kept by a robot's soles.

The floor is the plane under slow foot points, or under the lowest ones if the feet never rest (run, jump). Heel and toe
are in contact while low and slow, with hysteresis, and are released after creeping away. A robot's foot in contact
keeps place and yaw of a sole edge, and is flat or rolls over that edge. Transitions blend from the current pose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import B1, F1, F2, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.errors import ClipError
from humanoid_control.mocap import BodyPoints

EDGES = ("l_heel", "l_toe", "r_heel", "r_toe")
HEEL, TOE = 0, 1
LEG_POINTS = tuple(f"{side}_{point}" for point in ("knee", "ankle", "toe") for side in "lr")
SLOW = 0.25  # [m/s] speed of a foot point that may be on the floor
STANDING = 0.05  # [s] required duration of that speed
# slopes that are corrected: smaller ones do not matter, larger ones are no tilted floor
LEAST_SLOPE, MOST_SLOPE = 0.003, 0.09
FEWEST_SLOW = 3  # slow frames needed for a point to show the floor; else its lowest frames count
LOWEST = 0.05  # share of frames that are the lowest of a point: in a run, a foot is down for a fifth or more
FAR_BELOW = 0.12  # [m] depth below the rest of the feet that indicates a wrong point
FLOOR_SHARE = 0.25  # height quantile of slow points taken as the floor: some are raised and still
NARROW = 0.5  # [m] spread of places below which the slope is regularised to zero
STEEPEST = 0.95  # sine of the largest sole pitch
DOWN = 2e-3  # [m] height below which a sole edge counts as landed


class ContactRules(NamedTuple):
    """Rules of contact.

    Attributes:
        on_height: height above its level below which a heel or toe gets into contact [m].
        off_height: height above which it loses contact [m].
        on_speed: speed below which it gets into contact [m/s].
        off_speed: speed above which it loses contact [m/s].
        rest: minimum time without contact, against flicker [s].
        away: distance from the initial contact that releases it [m].
        blend: transition time of locking and release [s].
        pivot: yaw between a sole on one edge and the person's foot that releases it [rad].
        lock: weight of a locked point, well above `frame_solver.LOCKED`.
        landing: weight of a landing point, well below it.
        posture_return: critically damped rate of the posture [1/s].
        body_return: critically damped rate of free body-point errors [1/s].
        foot_return: likewise of a swing foot [1/s].
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
        level: (6,) heights of standing heels, toes and ankles, in the order of EDGES, l_ankle, r_ankle [m].
        rests: True if heels and toes rest; else the floor lies under their lowest places.
    """

    slope: np.ndarray
    level: np.ndarray
    notes: tuple[str, ...]
    rests: bool = True


def feet_points(body: BodyPoints) -> np.ndarray:
    """Return heels, toes, ankles (T, 6, 3) in the order of `Floor.level` [m]; ankles replace missing heels.

    Raises:
        ClipError: if the clip lacks the legs.
    """
    lacking = [name for name in LEG_POINTS if name not in body.names]
    if lacking:
        raise ClipError(f"{body.name}: does not show {', '.join(lacking)}: the whole body needs legs")
    names = [name if name in body.names else f"{name[0]}_ankle" for name in (*EDGES, "l_ankle", "r_ankle")]
    return np.stack([body.point(name) for name in names], axis=1)


def slow_points(feet: np.ndarray, rate: float) -> np.ndarray:
    """Return whether each point (T, F, 3) has been slow for a while, (T, F)."""
    speed = np.linalg.norm(np.diff(feet, axis=0, prepend=feet[:1]), axis=2) * rate
    frames = max(1, round(STANDING * rate))
    fast = np.cumsum(np.vstack([np.zeros((frames, feet.shape[1])), speed > SLOW]), axis=0)
    return np.asarray(fast[frames:] - fast[:-frames] == 0)


def find_floor(body: BodyPoints) -> Floor:
    """Return the floor of a clip: slope, if the person walks far enough, and heights of standing feet.

    Quantile regression of slow-point heights, h = level of the point + slope . (x, y); the slope is regularised. Points
    that are never slow (run, jump) take the level of their lowest frames and do not affect the slope.

    Raises:
        ClipError: if the clip lacks the legs.
    """
    feet = feet_points(body)
    slow = slow_points(feet, body.rate)
    slow[:, slow.sum(axis=0) < FEWEST_SLOW] = False  # few slow frames are turning points, or the start of the clip
    slope = _slope(feet, slow) if slow.any() else np.zeros(2)
    notes: tuple[str, ...] = ()
    tilt = float(np.linalg.norm(slope))
    if tilt > MOST_SLOPE:
        notes = (f"the feet rise by {100 * tilt:.0f} cm a metre: treated as stairs or a hill, not as tilted ground",)
    if not LEAST_SLOPE < tilt <= MOST_SLOPE:
        slope = np.zeros(2)
    else:
        notes = (f"the ground of the clip is tilted by {np.degrees(np.arctan(tilt)):.1f} degrees: levelled",)
    height = feet[:, :, 2] - feet[:, :, :2] @ slope
    levels = np.array([_level(height[:, k], slow[:, k]) for k in range(feet.shape[1])])
    # outlier: far below the other end of its foot, and below the same end of the other foot
    for k in range(len(EDGES)):
        mirrored = levels[(k + 2) % 4]
        if levels[k] < min(levels[k ^ 1], mirrored) - FAR_BELOW:
            levels[k] = mirrored
            notes = (
                *notes,
                f"{EDGES[k]} lies far below the other points of the feet: it has the level of the other foot",
            )
    for left, right in ((0, 2), (1, 3), (4, 5)):  # a foot that was never flat takes the level of the other
        pair = levels[[left, right]]
        levels[[left, right]] = np.minimum(pair, pair[::-1] + 0.02)
    moving = [name for k, name in enumerate(EDGES) if not slow[:, k].any()]
    if moving:
        notes = (*notes, f"{', '.join(moving)}: never slow, the ground is set at the lowest positions")
    return Floor(slope, levels, notes, not moving)


def _level(height: np.ndarray, slow: np.ndarray) -> float:
    """Return a point's height on the floor [m] from heights (T,) and slow frames (T,)."""
    standing, share = (height[slow], 0.2) if slow.any() else (height, LOWEST)
    return float(np.median(standing[standing <= np.quantile(standing, share)]))


def _slope(feet: np.ndarray, slow: np.ndarray) -> np.ndarray:
    """Return the floor slope (2,): quantile regression by iteratively reweighted least squares."""
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
    """Return the clip rotated by the smallest rotation that levels its floor."""
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
    """Contacts of the previous frame.

    Attributes:
        place: (4, 3) start of each contact [m].
        away: (4,) time without contact [s].
    """

    contact: np.ndarray
    place: np.ndarray
    point: np.ndarray
    away: np.ndarray

    @classmethod
    def new(cls) -> ContactMemory:
        """Return the state before the first frame."""
        return cls(np.zeros(4, dtype=np.bool_), np.zeros((4, 3)), np.full((4, 3), np.nan), np.full(4, np.inf))


@kernel(allocates=True)
def find_contacts(rules: ContactRules, points: np.ndarray, dt: float, memory: ContactMemory) -> None:
    """Update the contacts by the next frame, in place.

    Args:
        points: (4, 3) heels and toes in the order of EDGES, z above the level of each [m].
    """
    for k in range(4):
        speed, off = 0.0, 0.0
        for i in range(3):
            # NaN in the first frame: speed 0
            v = (points[k, i] - memory.point[k, i]) / dt
            speed += v * v if np.isfinite(v) else 0.0
            off += (points[k, i] - memory.place[k, i]) ** 2
        speed, height = np.sqrt(speed), points[k, 2]
        # hysteresis: looser thresholds while in contact
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
    """Return (first, last + 1) frame of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(flags, dtype=np.int8), [0]])))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


# -------- the robot's soles


class ContactSoles(NamedTuple):
    """Rectangles of the left and right sole.

    Attributes:
        length: (2,) from heel to toe edge [m].
        ankle: (2, 2) ankle forward of the heel edge and above the sole [m].
        side: (2, 4) corners heel left, heel right, toe left, toe right: leftward of the ankle [m].
    """

    length: F1
    ankle: F2
    side: F2


class FootMemory(NamedTuple):
    """State of the left and right foot.

    A sole pose is (x, y of the middle of the heel edge, yaw, height of the heel edge, height of the toe edge).

    Attributes:
        pivot: (2,) locked edge, HEEL or TOE.
        anchor: (2, 3) x, y [m] and yaw [rad] of that edge.
        offset: (8, 3) corners minus targets when a foot or edge was locked [m].
        speed: (8, 3) corner velocities then [m/s].
        age: (2,) time since then, or since the release [s].
        edge: (4,) bool, edges in contact.
        edge_age: (4,) time since the last change of `edge` [s].
        last: (2, 5) last target poses.
        corners: (8, 3) sole corners one frame earlier [m].
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
        """Return the state of free feet."""
        free = np.zeros(2, dtype=np.bool_)
        old, last = np.full(2, np.inf), np.zeros((2, 5))
        offset, speed, corners = np.zeros((8, 3)), np.zeros((8, 3)), np.full((8, 3), np.nan)
        edge, edge_age = np.zeros(4, dtype=np.bool_), np.full(4, np.inf)
        return cls(free, np.zeros(2, np.int64), np.zeros((2, 3)), offset, speed, old, edge, edge_age, last, corners)


class FootTargets(NamedTuple):
    """Targets of the sole corners.

    Attributes:
        free: (8, 3) targets of unlocked soles [m].
    """

    target: F2
    weight: F1
    free: F2
    contact: B1


@kernel
def smooth(share: float) -> float:
    """Return the cubic from 0 to 1 with zero slope at both ends."""
    s = min(max(share, 0.0), 1.0)
    return s * s * (3.0 - 2.0 * s)


@kernel
def wrapped(angle: float) -> float:
    """Return the angle within -pi .. pi."""
    return angle - 2.0 * np.pi * np.floor(angle / (2.0 * np.pi) + 0.5)


@kernel
def sole_pitch(length: float, heel: float, toe: float) -> tuple[float, float]:
    """Return sine and cosine of the pitch, toe up, of a sole with these edge heights [m]."""
    s = min(max((toe - heel) / length, -STEEPEST), STEEPEST)
    return s, np.sqrt(1.0 - s * s)


@kernel(allocates=True)
def sole_pose(soles: ContactSoles, f: int, corners: np.ndarray, out: np.ndarray) -> None:
    """Compute the pose (5,) of a sole from its corners (4, 3), as in FootMemory."""
    side = soles.side[f]
    edges = np.empty((2, 3))
    for e in range(2):
        # point of the edge below the ankle, between its left and right corner
        share = side[2 * e] / (side[2 * e] - side[2 * e + 1])
        for i in range(3):
            edges[e, i] = (1.0 - share) * corners[2 * e, i] + share * corners[2 * e + 1, i]
    out[0], out[1] = edges[0, 0], edges[0, 1]
    out[2] = np.arctan2(edges[1, 1] - edges[0, 1], edges[1, 0] - edges[0, 0])
    out[3], out[4] = edges[0, 2], edges[1, 2]


@kernel
def sole_corners(soles: ContactSoles, f: int, pose: np.ndarray, out: np.ndarray) -> None:
    """Compute the corners (4, 3) of a sole from its pose (5,) [m]: inverse of `sole_pose` without roll."""
    s, c = sole_pitch(soles.length[f], pose[3], pose[4])
    x, y = np.cos(pose[2]), np.sin(pose[2])
    for k in range(4):
        along, side = soles.length[f] * (k // 2), soles.side[f, k]
        out[k, 0] = pose[0] + along * c * x - side * y
        out[k, 1] = pose[1] + along * c * y + side * x
        out[k, 2] = pose[3] + along * s


@kernel
def hold_edge(soles: ContactSoles, f: int, memory: FootMemory, pose: np.ndarray, edge: int) -> None:
    """Lock an edge of a sole at its place in a pose (5,)."""
    memory.pivot[f] = edge
    _, c = sole_pitch(soles.length[f], pose[3], pose[4])
    reach = soles.length[f] * c if edge == TOE else 0.0
    memory.anchor[f, 0] = pose[0] + reach * np.cos(pose[2])
    memory.anchor[f, 1] = pose[1] + reach * np.sin(pose[2])
    memory.anchor[f, 2] = pose[2]


@kernel(allocates=True)
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
    """Update the lock of a foot and its edge in the memory, except offset and corners; poses (5,) as in FootMemory.

    Returns:
        True if the corners then blend from their current state.
    """
    heel, toe = contact[0], contact[1]
    changed = False
    memory.age[f] += dt
    for e in range(2):
        memory.edge_age[2 * f + e] += dt
    # a foot on one edge that has pivoted too far is released
    turned = abs(wrapped(free[2] - memory.anchor[f, 2])) > rules.pivot and heel != toe
    if memory.locked[f] and (turned or not (heel or toe)):
        memory.locked[f] = False
        memory.age[f] = 0.0
    elif not memory.locked[f] and (heel or toe) and memory.age[f] >= rules.blend:
        memory.locked[f], changed = True, True
        rest = now[0].copy()  # stopping distance of a cubic with this initial velocity: v blend / 3
        for i in range(3):
            rest[i] += now[1, i] * rules.blend / 3.0
        hold_edge(soles, f, memory, rest, TOE if toe else HEEL)
    # the locked edge lost contact: change to the other edge
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
    """Mark the locked edges of a foot that have landed with both corners.

    Before landing, an edge is only attracted to the floor.
    """
    contact = out.contact
    stood = contact[2 * f] or contact[2 * f + 1]
    for e in range(2):
        k = 2 * f + e
        down = memory.edge_age[k] >= rules.blend and max(corners[2 * e, 2], corners[2 * e + 1, 2]) < DOWN
        contact[k] = memory.edge[k] and (contact[k] or down)
        # landed: the blend is over
        if contact[k]:
            memory.offset[2 * k : 2 * k + 2], memory.speed[2 * k : 2 * k + 2] = 0.0, 0.0
    if not stood and (contact[2 * f] or contact[2 * f + 1]):
        hold_edge(soles, f, memory, now, TOE if contact[2 * f + 1] else HEEL)


@kernel(allocates=True)
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
    """Compute the corner targets of both soles for the next frame, and update the memory."""
    now, before, pose, target = np.empty((2, 5)), np.empty(5), np.empty(5), np.empty((4, 3))
    for f in range(2):
        here, last = corners[4 * f : 4 * f + 4], memory.corners[4 * f : 4 * f + 4]
        offset, speed = memory.offset[4 * f : 4 * f + 4], memory.speed[4 * f : 4 * f + 4]
        sole_pose(soles, f, here, now[0])
        sole_pose(soles, f, last, before)
        for i in range(5):
            # pose rates by backward difference, zero without a valid previous frame
            off = now[0, i] - before[i]
            now[1, i] = (wrapped(off) if i == 2 else off) / dt if dt > 0.0 and np.isfinite(off) else 0.0
        blends = lock_foot(rules, soles, f, free[f], contact[2 * f : 2 * f + 2], now, dt, memory)
        land_edges(rules, soles, f, now[0], here, memory, out)
        pose[:] = free[f]
        # a locked foot pivots about its anchor; edges in contact are on the floor
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
        # start a blend from the current corners and velocities
        if blends:
            memory.age[f] = 0.0
            for k in range(4):
                held = out.contact[2 * f + k // 2]
                for i in range(3):
                    v = (here[k, i] - last[k, i]) / dt if dt > 0.0 else 0.0
                    offset[k, i] = 0.0 if held else here[k, i] - target[k, i]
                    speed[k, i] = v if np.isfinite(v) and not held else 0.0
        # cubic blend: the offset decays, the initial velocity fades out
        part = min(memory.age[f] / rules.blend, 1.0) if memory.locked[f] else 1.0
        left, coast = 1.0 - smooth(part), rules.blend * part * (1.0 - part) ** 2
        for k in range(4):
            e = k // 2
            for i in range(3):
                out.target[4 * f + k, i] = target[k, i] + left * offset[k, i] + coast * speed[k, i]
            out.target[4 * f + k, 2] = max(out.target[4 * f + k, 2], 0.0)
            out.weight[4 * f + k] = rules.free
            # the weight grows geometrically from free to landing
            if memory.edge[2 * f + e]:
                caught = smooth(memory.edge_age[2 * f + e] / rules.blend)
                out.weight[4 * f + k] *= (rules.landing / rules.free) ** caught
            if out.contact[2 * f + e]:
                out.weight[4 * f + k] = rules.lock
        last[:] = here
