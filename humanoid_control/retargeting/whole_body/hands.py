"""Hands in contact with the body, each other or the floor: surface distances are kept, not joint distances.

Near a surface, the hand target moves to the same place of the robot's surface at the person's distance. Far away it
is unchanged, in between it blends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.collision import shape_arrays
from humanoid_control.collision.shapes import ShapeArrays
from humanoid_control.mocap import BodyPoints, torso_axes
from humanoid_control.retargeting.whole_body.contacts import ContactMemory, ContactRules, find_contacts, runs
from humanoid_control.robots import Robot
from humanoid_control.robots.joint_groups import JointGroups

NEAR, FAR = 0.03, 0.075  # [m] from a surface: distance fully kept within the first, ignored beyond the second
EVEN = 0.4  # [s] smoothing window of the weight, for slow approach and departure
# Hanging arms are near the body without touching it: cosines of the angles upper arm-forearm and arm-trunk, at which an
# arm hangs and does not hang.
STRAIGHT, DOWN = (0.6, 0.2), (0.85, 0.65)
ALONG, ROUND = np.linspace(-0.2, 1.7, 20), np.linspace(-np.pi, np.pi, 17)  # share of a bone; azimuth, 0 ahead
REACH, FINE = 0.6, 0.005  # [m] range and step of the surface search from a bone
BARE = 0.04  # [m] surface distance without shapes
# [m] for a person with 0.5 m from hips to shoulders; scaled with size
TRUNK, DEPTH, WIDTH, HEAD, THIGH = 0.5, 0.11, 0.16, 0.09, 0.075
NECK = 1.08  # share of the trunk above which head and neck are touched
PALM, THICK = 0.08, 0.03  # [m] from wrist to palm middle, and from there to the surface
PARTS = ("trunk", "l_thigh", "r_thigh")
PRESSED = 0.02  # [m] depth of the hand target below the surface; collision avoidance stops it there
GLIDE = 0.15  # [s] blend of a hand to and from its place on the floor
STRETCHED = 0.995  # usable share of the arm length


# -------- The robot's surfaces


@dataclass(frozen=True)
class HandSurfaces:
    """Surfaces that a robot's hands can touch.

    Attributes:
        radius: (3, S, A) from the bone of each of PARTS to the surface, at ALONG by ROUND [m].
        palm: from wrist point to hand middle [m].
        thick: from hand middle to surface [m].
        upper: upper arm length [m].
        lower: forearm length [m].
    """

    radius: np.ndarray
    palm: float
    thick: float
    upper: float
    lower: float

    @classmethod
    def of(cls, robot: Robot, hips: np.ndarray, knees: np.ndarray) -> HandSurfaces:
        """Measure a robot in its neutral posture.

        Args:
            hips: (2, 3) in the world [m].
            knees: (2, 3) in the world [m].
        """
        q, model, data = robot.q("neutral"), robot.model, robot.data
        shoulders = robot.point_positions(q, ["l_gh", "r_gh"])
        pin.forwardKinematics(model, data, q)
        shapes, groups = shape_arrays(model, robot.shapes), JointGroups.of(robot)
        arms = {int(k) + 2 for k in groups.arms}
        legs = [[int(k) + 2 for k in leg] for leg in (groups.l_leg, groups.r_leg)]
        shanks = [_from_knee(robot, leg, knee) for leg, knee in zip(legs, knees, strict=True)]
        parts: list[list[int]] = [[], [], []]
        for k, joint in enumerate(shapes.joint):
            over = set(model.supports[int(joint)])
            on = [f for f in (0, 1) if over & set(legs[f])]
            if over & arms or (on and over & shanks[on[0]]):
                continue
            parts[1 + on[0] if on else 0].append(k)
        ends = ((hips.mean(axis=0), shoulders.mean(axis=0)), (hips[0], knees[0]), (hips[1], knees[1]))
        across = (shoulders[0] - shoulders[1], hips[0] - hips[1], hips[0] - hips[1])
        radius = np.empty((len(PARTS), len(ALONG), len(ROUND)))
        for p, (start, end) in enumerate(ends):
            places = [(k, data.oMi[int(shapes.joint[k])] * pin.SE3(shapes.R[k], shapes.p[k])) for k in parts[p]]
            radius[p] = _surface(shapes, places, start, end, _axes(start[None], end[None], across[p][None])[0])
        palm, thick = _hand(robot, shapes, q)
        length = robot.segment_lengths()
        return cls(radius, palm, thick, length["upper_arm"], length["lower_arm"])

    def at(self, part: int, share: np.ndarray, azimuth: np.ndarray) -> np.ndarray:
        """Return the interpolated bone-surface distance (T,) of a part [m]."""
        s = np.interp(share, ALONG, np.arange(len(ALONG)))
        a = np.interp(azimuth, ROUND, np.arange(len(ROUND)))
        i, j = np.minimum(s.astype(int), len(ALONG) - 2), np.minimum(a.astype(int), len(ROUND) - 2)
        u, v, r = s - i, a - j, self.radius[part]
        return np.asarray(
            (1 - u) * ((1 - v) * r[i, j] + v * r[i, j + 1]) + u * ((1 - v) * r[i + 1, j] + v * r[i + 1, j + 1])
        )


def _from_knee(robot: Robot, leg: list[int], knee: np.ndarray) -> set[int]:
    off = [float(np.linalg.norm(robot.data.oMi[j].translation - knee)) for j in leg]
    return set(leg[int(np.argmin(off)) :])


def _surface(
    shapes: ShapeArrays, places: list[tuple[int, pin.SE3]], start: np.ndarray, end: np.ndarray, axes: np.ndarray
) -> np.ndarray:
    """Return distances (S, A) from a bone, along z of its axes (3, 3), to the outermost surface of shapes [m]."""
    r = np.arange(BARE, REACH, FINE)
    around = np.stack([np.cos(ROUND), np.sin(ROUND), np.zeros(len(ROUND))], axis=1) @ axes.T
    points = (start + ALONG[:, None] * (end - start))[:, None, None] + r[:, None] * around[:, None]
    inside = np.zeros(points.shape[:3], dtype=bool)
    for k, X in places:
        inside |= shapes.contains(k, (points - X.translation) @ X.rotation)
    last = len(r) - 1 - np.argmax(inside[:, :, ::-1], axis=2)
    return np.where(inside.any(axis=2), r[last], BARE)


def _hand(robot: Robot, shapes: ShapeArrays, q: np.ndarray) -> tuple[float, float]:
    """Return hand middle from the wrist, and half thickness [m], from the shapes beyond the wrist."""
    palms, thick = [], []
    for side in "lr":
        elbow, wrist = robot.point_positions(q, [f"{side}_elbow", f"{side}_wrist"])
        along = (wrist - elbow) / np.linalg.norm(wrist - elbow)
        carrier = int(robot.model.frames[robot.point_frame(f"{side}_wrist")].parentJoint)
        for k, joint in enumerate(shapes.joint):
            middle = float((robot.data.oMi[int(joint)].act(shapes.p[k]) - wrist) @ along)
            if carrier in robot.model.supports[int(joint)] and middle > 0.0:
                palms.append(middle)
                size = shapes.sizes[k]
                thick.append(float(min(size[0], size[1], size[2] + size[3])))
    return (float(np.mean(palms)), float(np.mean(thick))) if palms else (0.0, BARE)


# -------- Where a person's hands are


@dataclass(frozen=True)
class Touch:
    """Hand near a surface, per frame.

    Attributes:
        share: (T,) along the bone.
        azimuth: (T,) about the bone.
        gap: (T,) surface distance >= 0 [m].
        weight: (T,) 1 at the surface, 0 far away.
    """

    share: np.ndarray
    azimuth: np.ndarray
    gap: np.ndarray
    weight: np.ndarray


def closeness(gap: np.ndarray) -> np.ndarray:
    """Return 1 within NEAR of a surface, 0 beyond FAR, smooth in between."""
    s = np.clip((FAR - gap) / (FAR - NEAR), 0.0, 1.0)
    return np.asarray(s * s * (3.0 - 2.0 * s))


def hanging(person: dict[str, np.ndarray], side: str) -> np.ndarray:
    """Return (T,) 1 where an arm hangs straight along the trunk, 0 where it does not, smooth in between."""
    spine = _unit(_middle(person, "shoulder") - _middle(person, "hip"))
    upper = _unit(person[f"{side}_elbow"] - person[f"{side}_shoulder"])
    lower = _unit(person[f"{side}_wrist"] - person[f"{side}_elbow"])
    straight, down = np.sum(upper * lower, axis=1), -np.sum(_unit(upper + lower) * spine, axis=1)
    share = np.ones(len(spine))
    for cosine, (all_of, none_of) in ((straight, STRAIGHT), (down, DOWN)):
        share *= np.clip((cosine - none_of) / (all_of - none_of), 0.0, 1.0)
    return share * share * (3.0 - 2.0 * share)


def evened(weight: np.ndarray, rate: float) -> np.ndarray:
    """Return a weight (T,) smoothed by a Hann window of EVEN."""
    n = max(1, round(0.5 * EVEN * rate))
    window = np.hanning(2 * n + 1)
    return np.asarray(np.convolve(np.pad(weight, n, "edge"), window / window.sum(), "valid"))


def palms(body: BodyPoints, size: float) -> tuple[np.ndarray, np.ndarray]:
    """Return palm middles (2, T, 3) of a person [m], left and right, and unit vectors (2, T, 3) from the wrists.

    They follow the hand if shown, else the forearm.
    """
    middle, along = [], []
    for side in "lr":
        wrist = body.point(f"{side}_wrist")
        shown = f"{side}_hand" in body.names
        u = body.point(f"{side}_hand") - wrist if shown else wrist - body.point(f"{side}_elbow")
        u = u / np.maximum(np.linalg.norm(u, axis=1, keepdims=True), 1e-6)
        along.append(u)
        middle.append(wrist + size * PALM * u)
    return np.array(middle), np.array(along)


def person_size(body: BodyPoints) -> float:
    """Return the size of a person: 1 for a hip-shoulder distance of TRUNK."""
    spine = 0.5 * (body.point("l_shoulder") + body.point("r_shoulder")) - body.mid_hip
    return float(np.median(np.linalg.norm(spine, axis=1))) / TRUNK


def _axes(start: np.ndarray, end: np.ndarray, across: np.ndarray) -> np.ndarray:
    """Return the axes (T, 3, 3) of a bone: z along it, y left."""
    z = end - start
    return torso_axes(z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-6), across)


def _person_radius(part: int, share: np.ndarray, azimuth: np.ndarray) -> np.ndarray:
    """Return the distance (T,) from bone to skin for a person of size 1 [m]."""
    if PARTS[part] != "trunk":
        return np.full(len(share), THIGH)
    ellipse = DEPTH * WIDTH / np.hypot(WIDTH * np.cos(azimuth), DEPTH * np.sin(azimuth))
    return np.where(share > NECK, HEAD, ellipse)


def touch(palm: np.ndarray, start: np.ndarray, end: np.ndarray, across: np.ndarray, part: int, size: float) -> Touch:
    """Return the relation of a hand to one of PARTS of a person, for points (T, 3) [m] and a `person_size`."""
    R, bone = _axes(start, end, across), np.linalg.norm(end - start, axis=1)
    local = np.einsum("tji,tj->ti", R, palm - start)
    share = np.clip(local[:, 2] / np.maximum(bone, 1e-6), ALONG[0], ALONG[-1])
    over = local[:, 2] - share * bone  # beyond the end of the bone
    azimuth, off = np.arctan2(local[:, 1], local[:, 0]), np.linalg.norm([local[:, 0], local[:, 1], over], axis=0)
    if PARTS[part] != "trunk":
        beyond = np.clip(share, 0.0, 1.0)
        over = local[:, 2] - beyond * bone
        share, off = beyond, np.linalg.norm([local[:, 0], local[:, 1], over], axis=0)
    gap = np.maximum(off - size * (_person_radius(part, share, azimuth) + THICK), 0.0)
    return Touch(share, azimuth, gap, closeness(gap))


# -------- Targets


def keep_hands(
    body: BodyPoints,
    size: float,
    surfaces: HandSurfaces,
    targets: np.ndarray,
    names: tuple[str, ...],
    rules: ContactRules,
) -> np.ndarray:
    """Return targets (T, K, 3) with wrists and elbows moved to keep the person's touches [m].

    Args:
        body: on a level floor at height 0.
        targets: (T, K, 3) of `names`, floor z = 0 [m].
        names: POINTS, hips and knees.
    """
    out = targets.copy()
    at = {name: targets[:, k] for k, name in enumerate(names)}
    person = {name: body.point(name) for name in body.names}
    middle, along = palms(body, size)
    bones = (
        (_middle(person, "hip"), _middle(person, "shoulder"), person["l_shoulder"] - person["r_shoulder"]),
        *((person[f"{s}_hip"], person[f"{s}_knee"], person["l_hip"] - person["r_hip"]) for s in "lr"),
    )
    robots = (
        (_middle(at, "hip"), _middle(at, "gh"), at["l_gh"] - at["r_gh"]),
        *((at[f"{s}_hip"], at[f"{s}_knee"], at["l_hip"] - at["r_hip"]) for s in "lr"),
    )
    wanted = np.array([at[f"{s}_wrist"] + surfaces.palm * along[h] for h, s in enumerate("lr")])
    moved = np.zeros(wanted.shape[:2])
    for h in range(2):
        total, shift = np.zeros(len(targets)), np.zeros((len(targets), 3))
        free = 1.0 - hanging(person, "lr"[h])
        for p in range(len(PARTS)):
            t = touch(middle[h], *bones[p], p, size)
            start, end, _ = robots[p]
            away = surfaces.at(p, t.share, t.azimuth) + np.maximum(surfaces.thick + t.gap - PRESSED, 0.0)
            u = np.stack([away * np.cos(t.azimuth), away * np.sin(t.azimuth), np.zeros(len(away))], axis=1)
            there = start + t.share[:, None] * (end - start) + np.einsum("tij,tj->ti", _axes(*robots[p]), u)
            weight = evened(t.weight * free, body.rate)
            shift += weight[:, None] * (there - wanted[h])
            total += weight
        wanted[h] += shift / np.maximum(total, 1.0)[:, None]
        moved[h] = np.minimum(total, 1.0)
    _keep_together(middle, size, body.rate, surfaces, wanted, moved)
    _keep_on_floor(middle, size, body.rate, surfaces, rules, wanted, moved)
    for h, s in enumerate("lr"):
        wrist = wanted[h] - surfaces.palm * along[h]
        shoulder, elbow = at[f"{s}_gh"], at[f"{s}_elbow"]
        bent, reached = bent_arm(shoulder, elbow, wrist, surfaces.upper, surfaces.lower)
        w = np.minimum(moved[h], 1.0)[:, None]
        near = w > 0.0
        # The wrist is blended already, except for the reach limit: applied at once, it would cause a jump.
        out[:, names.index(f"{s}_wrist")] = np.where(near, wrist + w * (reached - wrist), at[f"{s}_wrist"])
        out[:, names.index(f"{s}_elbow")] = np.where(near, elbow + w * (bent - elbow), elbow)
    return out


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-6)


def _middle(at: dict[str, np.ndarray], name: str) -> np.ndarray:
    return 0.5 * (at[f"l_{name}"] + at[f"r_{name}"])


def _keep_together(
    middle: np.ndarray, size: float, rate: float, surfaces: HandSurfaces, wanted: np.ndarray, moved: np.ndarray
) -> None:
    between = middle[0] - middle[1]
    off = np.linalg.norm(between, axis=1)
    gap = np.maximum(off - 2.0 * size * THICK, 0.0)
    w = evened(closeness(gap), rate)[:, None]
    u = between / np.maximum(off, 1e-6)[:, None]
    half = 0.5 * (gap + 2.0 * surfaces.thick)[:, None] * u
    centre = 0.5 * (wanted[0] + wanted[1])
    wanted[0] += w * (centre + half - wanted[0])
    wanted[1] += w * (centre - half - wanted[1])
    moved[:] = np.maximum(moved, w[:, 0])


def _keep_on_floor(
    middle: np.ndarray,
    size: float,
    rate: float,
    surfaces: HandSurfaces,
    rules: ContactRules,
    wanted: np.ndarray,
    moved: np.ndarray,
) -> None:
    """Keep the person's height of hands near the floor, and hold placed hands, in place."""
    above = middle.copy()
    above[:, :, 2] -= size * THICK
    memory, on = ContactMemory.new(), np.zeros((2, above.shape[1]), dtype=bool)
    for t in range(above.shape[1]):
        find_contacts(rules, np.ascontiguousarray(above[[0, 1, 0, 1], t]), 1.0 / rate, memory)
        on[:, t] = memory.contact[:2]
    for h in range(2):
        gap = np.maximum(above[h, :, 2], 0.0)
        w = evened(closeness(gap), rate)
        wanted[h, :, 2] += w * (surfaces.thick + gap - wanted[h, :, 2])
        moved[h] = np.maximum(moved[h], w)
        stays, frames = np.zeros_like(wanted[h, :, :2]), max(1, round(GLIDE * rate))
        share = np.zeros(len(gap))
        for first, end in runs(on[h]):
            place = wanted[h, first:end, :2].mean(axis=0)
            a, b = max(first - frames, 0), min(end + frames, len(gap))
            k = np.arange(a, b)
            s = np.clip(1.0 - np.maximum(np.maximum(first - k, k - end + 1), 0) / frames, 0.0, 1.0)
            s = s * s * (3.0 - 2.0 * s)
            better = s > share[a:b]
            stays[a:b][better], share[a:b][better] = place, s[better]
        wanted[h, :, :2] += share[:, None] * (stays - wanted[h, :, :2])
        moved[h] = np.maximum(moved[h], share)


def bent_arm(
    shoulder: np.ndarray, elbow: np.ndarray, wrist: np.ndarray, upper: float, lower: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return elbow (T, 3) and wrist (T, 3) of an arm that bends to the same side as before; wrists move into reach."""
    reach = wrist - shoulder
    far = np.linalg.norm(reach, axis=1)
    least, most = abs(upper - lower) + 1e-3, STRETCHED * (upper + lower)
    d = np.clip(far, least, most)
    u = reach / np.maximum(far, 1e-6)[:, None]
    side = elbow - shoulder
    side = side - np.sum(side * u, axis=1, keepdims=True) * u
    size = np.linalg.norm(side, axis=1, keepdims=True)
    side = np.where(size > 1e-6, side / np.maximum(size, 1e-6), np.array([0.0, 0.0, -1.0]))
    # law of cosines: elbow at x along the line from shoulder to wrist and y off it
    x = (d**2 + upper**2 - lower**2) / (2.0 * d)
    y = np.sqrt(np.maximum(upper**2 - x**2, 0.0))
    return shoulder + x[:, None] * u + y[:, None] * side, shoulder + d[:, None] * u
