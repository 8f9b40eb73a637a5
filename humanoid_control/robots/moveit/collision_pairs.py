"""Pairs of links that a planner need not check: adjacent, always touching, never touching, or allowed to touch.

MoveIt's Setup Assistant calls a pair 'Never' if it does not touch in 10,000 random postures. Few postures bring two
arms together, so random ones miss contacts. Here the nearest postures also follow the gradient of the distance, until
the pair comes near or its distance no longer falls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import coal
import numpy as np
import pinocchio as pin

from humanoid_control.robots.description.urdf import link_of, parse_urdf
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.urdf_geometry import urdf_geometry

ADJACENT, DEFAULT, ALWAYS, USER, NEVER = "Adjacent", "Default", "Always", "User", "Never"  # of the Setup Assistant
POSTURES, AT_ENDS = 1000, 0.3  # random postures, share of joints at an end of their range
ALWAYS_POSTURES, ALWAYS_SHARE = 200, 0.95  # of the first postures, as in the Setup Assistant
NEAR = 0.01  # [m] pairs that come nearer are checked: contacts may lie between the postures tried
TRIED, NEAREST, OTHERS, STEPS = 300, 4, 16, 40  # postures measured a pair; starts of descents; steps of a descent
LARGEST, SMALLEST = 0.5, 1e-3  # step of a joint [rad, m]; below the smallest a descent ends


class DisabledPair(NamedTuple):
    """Two links that are not checked, and the reason."""

    link1: str
    link2: str
    reason: str


@dataclass(frozen=True)
class PairAnalysis:
    """Result of `analyse_pairs`.

    Attributes:
        disabled: pairs without a check, sorted.
        kept: pairs with a check.
    """

    disabled: tuple[DisabledPair, ...]
    kept: tuple[tuple[str, str], ...]

    @property
    def reasons(self) -> dict[str, int]:
        """Number of disabled pairs by reason."""
        counts = Counter(p.reason for p in self.disabled)
        return {reason: counts[reason] for reason in (ADJACENT, DEFAULT, ALWAYS, USER, NEVER)}


def analyse_pairs(robot: Robot, progress: Callable[[float], None] = lambda _: None) -> PairAnalysis:
    """Sort all pairs of links with collision geometry in the URDF.

    Args:
        robot: with a floating base.
        progress: called with the finished share.

    Raises:
        RobotError: if the URDF has no collision geometry, or a mesh cannot be read.
    """
    contacts = LinkContacts(robot)
    neutral = robot.postures["neutral"]
    reasons = dict.fromkeys(contacts.adjacent, ADJACENT)
    reasons |= {pair: DEFAULT for pair in contacts.touching(neutral) if pair not in reasons}
    contacts.drop(reasons)
    postures, counts = random_postures(robot), Counter[tuple[str, str]]()
    for k, joints in enumerate(postures):
        if k >= ALWAYS_POSTURES:
            contacts.drop(counts)  # one contact is enough to know that the pair is not 'Never'
        counts.update(contacts.touching(joints))
        progress(0.5 * (k + 1) / len(postures))
    reasons |= {pair: ALWAYS for pair, n in counts.items() if n > ALWAYS_SHARE * ALWAYS_POSTURES}
    rest = [pair for pair in contacts.pairs if pair not in reasons and pair not in counts]
    allowed = _allowed_pairs(robot)
    for k, pair in enumerate(rest):
        # A pair without a joint between never changes; another is followed to its nearest posture.
        if not contacts.joints_between(pair).size or contacts.nearest(pair, postures) > NEAR:
            reasons[pair] = NEVER
        progress(0.5 + 0.5 * (k + 1) / len(rest))
    reasons |= {pair: USER for pair in contacts.pairs if pair in allowed and pair not in reasons}
    disabled = tuple(DisabledPair(*pair, reason) for pair, reason in sorted(reasons.items()))
    return PairAnalysis(disabled, tuple(pair for pair in contacts.pairs if pair not in reasons))


def random_postures(robot: Robot, count: int = POSTURES, seed: int = 0) -> np.ndarray:
    """Return postures (count, n) within the limits, with many joints at their ends; followers follow."""
    rng = np.random.default_rng(seed)
    lower, upper = robot.range_within(np.pi)
    out = rng.uniform(lower, upper, (count, robot.n))
    at_end, side = rng.random((2, count, robot.n)) < np.array([AT_ENDS, 0.5])[:, None, None]
    out = np.where(at_end, np.where(side, lower, upper), out)
    return np.array([robot.follow(joints) for joints in out])


class LinkContacts:
    """Contacts and distances between the links of a URDF.

    Triangles decide about contacts. Convex hulls of meshes give the distances: they are never larger than those of the
    meshes, so a pair that stays apart by them is safe to leave out.

    Attributes:
        pairs: of links with geometry, names sorted.
        adjacent: pairs with one joint between, or only links without geometry.
    """

    def __init__(self, robot: Robot) -> None:
        """Read the geometry.

        Raises:
            RobotError: see `urdf_geometry`.
        """
        self._robot, self._geometry = robot, urdf_geometry(robot)
        model, shapes = robot.model, self._geometry.geometryObjects
        names = [str(model.frames[g.parentFrame].name) for g in shapes]
        links = sorted(set(names))
        self.pairs = [(a, b) for k, a in enumerate(links) for b in links[k + 1 :]]
        neighbours = _neighbours(robot, set(links))
        self.adjacent = [pair for pair in self.pairs if pair in neighbours]
        self._of_link = {link: [k for k, name in enumerate(names) if name == link] for link in links}
        self._rows: dict[tuple[str, str], list[int]] = {}
        for pair in self.pairs:
            first = len(self._geometry.collisionPairs)
            for i in self._of_link[pair[0]]:
                for j in self._of_link[pair[1]]:
                    self._geometry.addCollisionPair(pin.CollisionPair(i, j))
            self._rows[pair] = list(range(first, len(self._geometry.collisionPairs)))
        self._data = self._geometry.createData()
        self._hulls = _with_hulls(self._geometry)
        self._hull_data = self._hulls.createData()
        self._active = list(self.pairs)

    def drop(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Leave pairs out of `touching`."""
        out = set(pairs)
        for pair in self._active:
            if pair in out:
                for row in self._rows[pair]:
                    self._data.deactivateCollisionPair(row)
        self._active = [pair for pair in self._active if pair not in out]

    def touching(self, joints: np.ndarray) -> list[tuple[str, str]]:
        """Return the pairs that touch at joints (n,)."""
        self._place(joints, self._geometry, self._data)
        if not pin.computeCollisions(self._geometry, self._data, True):
            return []  # as in most postures; one call for all pairs
        return [
            pair
            for pair in self._active
            if any(pin.computeCollision(self._geometry, self._data, row) for row in self._rows[pair])
        ]

    def joints_between(self, pair: tuple[str, str]) -> np.ndarray:
        """Return the indices of the joints whose motion changes the distance of a pair; followers are left out."""
        robot = self._robot
        bodies = [robot.model.frames[robot.model.getFrameId(link, pin.FrameType.BODY)].parentJoint for link in pair]
        one, other = (robot.ancestor_mask[j][robot.iv :] != 0 for j in bodies)
        moves = one ^ other
        for follower, leader, *_ in robot.mimic:
            moves[leader] |= moves[follower]
            moves[follower] = False
        return np.flatnonzero(moves)

    def nearest(self, pair: tuple[str, str], postures: np.ndarray) -> float:
        """Return the smallest distance [m] found from postures (k, n).

        Descents begin at the nearest postures, and at others, because the nearest ones often share one local minimum.
        """
        tried = postures[:: max(1, len(postures) // TRIED)]
        distances = np.array([self.measure(pair, joints)[0] for joints in tried])
        best, moving = float(distances.min()), self.joints_between(pair)
        for start in (*tried[np.argsort(distances)[:NEAREST]], *tried[:OTHERS]):
            if best > NEAR:
                best = min(best, self._descend(pair, start, moving))
        return best

    def _descend(self, pair: tuple[str, str], start: np.ndarray, moving: np.ndarray) -> float:
        """Follow the gradient of a distance within the limits; return the distance [m] at the end."""
        lower, upper = self._robot.range_within(np.pi)
        joints, (best, row) = start, self.measure(pair, start)
        longest = LARGEST
        for _ in range(STEPS):
            if best <= NEAR or longest < SMALLEST:
                break
            g = self.gradient(row, moving)
            g[((joints[moving] <= lower[moving]) & (g > 0)) | ((joints[moving] >= upper[moving]) & (g < 0))] = 0.0
            if not g.any():
                break
            # The step that would close the distance of a plane, as long as no joint moves further than allowed.
            step = g * min(best / float(g @ g), longest / float(np.abs(g).max()))
            tried = joints.copy()
            tried[moving] = np.clip(joints[moving] - step, lower[moving], upper[moving])
            d, closest = self.measure(pair, self._robot.follow(tried))
            if d < best:
                joints, best, row = tried, d, closest
            else:
                longest = 0.3 * float(np.abs(step).max())
                self.measure(pair, joints)  # the witness points of the next gradient
        return best

    def gradient(self, row: int, moving: np.ndarray) -> np.ndarray:
        """Return d distance / d joint (m,) of the pair of shapes measured last; followers count as held."""
        robot, result = self._robot, self._hull_data.distanceResults[row]
        J = pin.computeJointJacobians(robot.model, robot.data)
        points = (np.array(result.getNearestPoint1()), np.array(result.getNearestPoint2()))
        normal = (points[1] - points[0]) / max(float(np.linalg.norm(points[1] - points[0])), 1e-9)
        pair, carried = self._hulls.collisionPairs[row], []
        for shape in (pair.first, pair.second):
            mask = robot.ancestor_mask[self._hulls.geometryObjects[shape].parentJoint]
            carried.append(mask[robot.iv :][moving])
        wrenches = np.array([[*normal, *_cross(p, normal)] for p in points])
        first, second = wrenches @ J[:, robot.iv :][:, moving]
        return second * carried[1] - first * carried[0]

    def measure(self, pair: tuple[str, str], joints: np.ndarray) -> tuple[float, int]:
        """Return the distance [m] of a pair at joints (n,), and the row of its nearest shapes."""
        self._place(joints, self._hulls, self._hull_data)
        rows = self._rows[pair]
        return min((float(pin.computeDistance(self._hulls, self._hull_data, row).min_distance), row) for row in rows)

    def _place(self, joints: np.ndarray, geometry: pin.GeometryModel, data: pin.GeometryData) -> None:
        pin.updateGeometryPlacements(self._robot.model, self._robot.data, geometry, data, self._robot.q(joints))


def _cross(a: np.ndarray, b: np.ndarray) -> tuple[float, float, float]:
    """Return a x b; numpy takes 20 times as long for one pair of vectors."""
    (x, y, z), (u, v, w) = a.tolist(), b.tolist()
    return y * w - z * v, z * u - x * w, x * v - y * u


def _with_hulls(geometry: pin.GeometryModel) -> pin.GeometryModel:
    """Return a copy with meshes replaced by their convex hulls."""
    out = geometry.copy()
    for shape in out.geometryObjects:
        if isinstance(shape.geometry, coal.BVHModelBase):
            shape.geometry.buildConvexHull(True, "Qt")
            shape.geometry = shape.geometry.convex
    return out


def _neighbours(robot: Robot, solid: set[str]) -> set[tuple[str, str]]:
    """Return pairs of links with one joint between, or only links without geometry."""
    edges: dict[str, set[str]] = {}
    for joint in parse_urdf(robot.urdf, robot.name).joints:
        a, b = link_of(joint, "parent"), link_of(joint, "child")
        edges.setdefault(a, set()).add(b)
        edges.setdefault(b, set()).add(a)
    out = set()
    for link in solid & edges.keys():
        reached, open_ends = {link}, [link]
        while open_ends:
            for other in edges[open_ends.pop()] - reached:
                reached.add(other)
                if other in solid:
                    out.add((link, other))
                else:
                    open_ends.append(other)
    return out


def _allowed_pairs(robot: Robot) -> set[tuple[str, str]]:
    """Return pairs of links with shapes that the robot file or this package does not keep apart."""
    watched = {frozenset((robot.shapes[i].link, robot.shapes[j].link)) for i, j in robot.pairs.tolist()}
    links = sorted({s.link for s in robot.shapes})
    return {(a, b) for k, a in enumerate(links) for b in links[k + 1 :] if frozenset((a, b)) not in watched}
