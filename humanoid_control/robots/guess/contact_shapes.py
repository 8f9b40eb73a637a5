"""Shapes for links a few joints apart, around the places where their meshes first touch.

Shapes of whole bodies, such as shoulder and chest, overlap in most postures. Motions from free postures are followed
until the meshes touch; shapes enclose only these contacts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.spatial import cKDTree

from humanoid_control.collision.shapes import Box, Capsule, LinkShape, Shape
from humanoid_control.robots.description.meshes import Triangles
from humanoid_control.robots.guess.bodies import Bodies, dense_points, vec3
from humanoid_control.robots.guess.capsule_fit import COUNT, MeshDistances, capsules_by_distance
from humanoid_control.robots.guess.fitted_shapes import shapes_around
from humanoid_control.robots.robot import CONTACT_MARGIN, Robot

DRAWS = 400  # motions
AT_LIMIT = 0.4  # share of joints at a limit, in half of the motions: some links touch only there
STEP = 0.1  # of a motion [rad, m]
BISECTIONS = 7  # of the step of first contact
MOST_CONTACTS = 60  # points of one contact
AROUND = 0.012  # [m] about the contacts: enclosed part of the meshes
MOST, CLOSE = (4, 8), 0.004  # shapes of a link, second if the first fails; [m] smaller excess is not cut further
SHRINK_STEP, SHRINK_MOST = 0.0005, 0.006  # [m] shrinking of shapes that overlap in free postures
THIN = 0.001  # [m] least thickness
MISSED, LATE = 0.02, 0.005  # tolerated share of contacts with the robot's shapes farther apart than LATE [m]
MISSED_MOST = 0.1  # tolerated share of contacts missed by distance capsules
EARLY_MOST, EARLY_NEAR = 0.2, 0.05  # tolerated share of forbidden free postures: all, near the neutral one
CLEAR = 0.004  # [m] free postures with a smaller mesh distance, or half of that at rest, do not count
NEAR, NEAR_DRAWS = 0.2, 200  # share of joint ranges about the neutral posture; postures there


@dataclass(frozen=True)
class ContactFit:
    """Shapes of two links, kept apart from each other only.

    Attributes:
        shapes: empty without contacts, if the robot's shapes detect them, or if none separate contact from freedom.
        touched: share of motions that ended in contact; None without geometry.
        shrunk: inward offset [m].
        missed: share of contacts not detected.
        early: share of free postures forbidden.
        watched: the robot's own shapes detect the contacts.
        by_distance: capsules fitted to mesh distances.
    """

    links: tuple[str, str]
    shapes: tuple[LinkShape, ...] = ()
    touched: float | None = 0.0
    shrunk: float = 0.0
    missed: float = 0.0
    early: float = 0.0
    watched: bool = False
    by_distance: bool = False


def fit_contacts(
    robot: Robot,
    bodies: Bodies,
    links: list[tuple[str, str]],
    seed: int = 0,
    tell: Callable[[float, str], None] = lambda share, text: None,
) -> list[ContactFit]:
    """Fit shapes around the contacts of pairs of links; mirror images get mirrored shapes.

    Args:
        tell: called before each pair with the finished share, 0 to 1, and its name.
    """
    found: dict[frozenset[str], ContactFit] = {}
    for k, pair in enumerate(links):
        tell(k / len(links), " - ".join(pair))
        if frozenset(pair) in found:
            continue
        twin = bodies.images_of(pair)
        if not all(link in bodies.surfaces for link in pair):
            found[frozenset(pair)] = ContactFit(pair, touched=None)
            continue
        both = [pair] if twin is None or not any({*twin} == {*p} for p in links) else [pair, twin]
        sides = [LinkPair(robot, bodies, p) for p in both]
        for side in sides:
            side.follow_motions(np.random.default_rng(seed))
        fits = _fit(sides, bodies)
        if len(sides) > 1 and not any(fit.shapes for fit in fits):  # bodies in the middle may be asymmetric
            fits = [fit for side in sides for fit in _fit([side], bodies)]
        if not any(fit.shapes or fit.watched for fit in fits):
            fits = _fit_distances(sides, bodies) or fits
        found |= {frozenset(fit.links): fit for fit in fits}
    return [replace(found[frozenset(pair)], links=pair) for pair in links]


def _fit(sides: list[LinkPair], bodies: Bodies) -> list[ContactFit]:
    """Return shapes around first contacts of a pair (and its mirror image), shrunk to forbid and miss little.

    Forbidden: closer than the margin or than in the neutral posture.
    """
    if not any(side.touching for side in sides):
        return [ContactFit(side.links) for side in sides]
    if all(side.missed_by_robot() <= MISSED for side in sides):
        return [ContactFit(side.links, touched=side.touched, watched=True) for side in sides]
    best, least = [ContactFit(side.links, touched=side.touched) for side in sides], np.inf
    for most in MOST:
        shapes = _around(sides, bodies, most)
        for shrunk in np.arange(0.0, SHRINK_MOST + 1e-9, SHRINK_STEP):
            smaller = [tuple(replace(s, shape=_smaller(s.shape, float(shrunk))) for s in some) for some in shapes]
            tried = [side.judge(some, float(shrunk)) for side, some in zip(sides, smaller, strict=True)]
            fits = [fit for fit in tried if fit is not None]
            worst = max((fit.missed + fit.early for fit in fits), default=np.inf)
            if len(fits) == len(sides) and worst < least:
                best, least = fits, worst
        if np.isfinite(least):
            break
    return best


def _fit_distances(sides: list[LinkPair], bodies: Bodies) -> list[ContactFit] | None:
    """Return capsules fitted to mesh distances; None if they forbid or miss too much."""
    first = sides[0]
    if not first.touching:
        return None
    measured = first.mesh_distances(bodies)
    if min(map(len, measured.contacts)) < COUNT:
        return None
    own = capsules_by_distance(measured)
    links, fits = first.links, []
    for side in sides:
        shapes: list[LinkShape] = []
        for k, rows in enumerate(own):
            capsules: list[Capsule | Box] = [Capsule(vec3(c[:3]), vec3(c[3:6]), round(float(c[6]), 5)) for c in rows]
            if side is not first:
                capsules = [bodies.image_shape(links[k], shape) for shape in capsules]
            shapes += _named(side.links[k], side.links[1 - k], capsules)
        fits.append(side.judge(tuple(shapes), 0.0))
    good = all(fit and fit.missed <= MISSED_MOST for fit in fits)
    return [replace(fit, by_distance=True) for fit in fits if fit] if good else None


def _around(sides: list[LinkPair], bodies: Bodies, most: int) -> list[list[LinkShape]]:
    """Return at most `most` shapes per link around the contacts of all sides."""
    first, local = sides[0], [side.contact_points() for side in sides]
    out: list[list[LinkShape]] = [[] for _ in sides]
    for k, (link, other) in enumerate((first.links, first.links[::-1])):
        found, surface = [local[0][k]], [dense_points(first.surfaces[k])]
        for side, points in zip(sides[1:], local[1:], strict=True):
            found.append(bodies.image(side.links[k], points[k]))
            surface.append(bodies.image(side.links[k], dense_points(side.surfaces[k])))
        contacts, mesh = np.vstack(found), np.vstack(surface)
        held = mesh[cKDTree(contacts).query(mesh, distance_upper_bound=AROUND)[0] <= AROUND]
        shapes = shapes_around(np.vstack([held, contacts]), mesh, most, CLOSE)
        out[0] += _named(link, other, shapes)
        for side, some in zip(sides[1:], out[1:], strict=True):
            images = [bodies.image_shape(link, shape) for shape in shapes]
            some += _named(side.links[k], side.links[1 - k], images)
    return out


def _named(link: str, other: str, shapes: list[Capsule | Box]) -> list[LinkShape]:
    names = [f"{link}_to_{other}" + (str(k + 1) if k else "") for k in range(len(shapes))]
    return [LinkShape(name, link, shape, (other,)) for name, shape in zip(names, shapes, strict=True)]


class LinkPair:
    """Two links with meshes, and the joints between them.

    Attributes:
        moved: indices of these joints; arguments `x` are their angles [rad].
        touching: postures x of first contact, after `follow_motions`.
    """

    def __init__(self, robot: Robot, bodies: Bodies, links: tuple[str, str]) -> None:
        self.robot, self.links = robot, links
        self.surfaces = [bodies.surfaces[link] for link in links]
        self.touching: list[np.ndarray] = []
        self._free: list[np.ndarray] = []
        self._near: list[np.ndarray] = []
        self._models = [(_bvh(self.surfaces[0]), _bvh(self.surfaces[1]))]
        self._frames = [robot.model.getFrameId(link, pin.FrameType.BODY) for link in links]
        carriers = [robot.model.frames[f].parentJoint for f in self._frames]
        one, other = (robot.ancestor_mask[j, robot.iv :] for j in carriers)
        self.moved = np.flatnonzero(one != other)
        self._low = np.maximum(robot.lower, -np.pi)[self.moved]
        self._high = np.minimum(robot.upper, np.pi)[self.moved]
        self._joints = robot.postures["neutral"].copy()
        rest = self._joints[self.moved]
        if len(self.contacts(rest)):  # parts that overlap at a joint are ignored
            parts = [[_bvh(part) for part in bodies.parts[link]] for link in links]
            clear = [m for m in product(*parts) if not len(self._contacts_of(m, rest, 1))]
            self._models = clear or self._models

    def place(self, x: np.ndarray) -> list[pin.SE3]:
        """Return both link poses at the angles x."""
        self._joints[self.moved] = x
        pin.framesForwardKinematics(self.robot.model, self.robot.data, self.robot.q(self._joints))
        return [self.robot.data.oMf[f] for f in self._frames]

    def contacts(self, x: np.ndarray, most: int = 1) -> np.ndarray:
        """Return contact points (n, 3) in the world."""
        return np.vstack([self._contacts_of(models, x, most) for models in self._models])

    def _contacts_of(self, models: tuple[Any, Any], x: np.ndarray, most: int) -> np.ndarray:
        import coal

        X = self.place(x)
        request, result = coal.CollisionRequest(), coal.CollisionResult()
        request.enable_contact, request.num_max_contacts = True, most
        poses = [coal.Transform3s(P.rotation, P.translation) for P in X]
        coal.collide(models[0], poses[0], models[1], poses[1], request, result)
        return np.array([result.getContact(k).pos for k in range(result.numContacts())]).reshape(-1, 3)

    def clearance(self, x: np.ndarray) -> float:
        """Return the mesh distance [m], 0 in contact."""
        import coal

        poses = [coal.Transform3s(P.rotation, P.translation) for P in self.place(x)]
        request, least = coal.DistanceRequest(), np.inf
        for one, other in self._models:
            least = min(least, coal.distance(one, poses[0], other, poses[1], request, coal.DistanceResult()))
        return max(0.0, least)

    # -- motions into contact

    @property
    def touched(self) -> float:
        """Share of motions that ended in contact."""
        return len(self.touching) / DRAWS

    def follow_motions(self, rng: np.random.Generator) -> None:
        """Sample postures of first contact and free postures, the neutral one first.

        Half of the motions start at the free posture nearest to the target (rapidly exploring tree); the others start
        anywhere. Half of all targets have joints at limits.
        """
        free, touching = [self.robot.postures["neutral"][self.moved]], self.touching
        if len(self.contacts(free[0])):
            return
        known = free.copy()
        for k in range(DRAWS):
            to = rng.uniform(self._low, self._high)
            if k % 4 > 1:
                limit = np.where(rng.random(len(to)) < 0.5, self._low, self._high)
                to = np.where(rng.random(len(to)) < AT_LIMIT, limit, to)
            nearest = int(np.argmin(np.linalg.norm(np.array(known) - to, axis=1)))
            at = known[nearest if k % 2 else int(rng.integers(len(known)))]
            count = max(1, int(np.ceil(np.abs(to - at).max() / STEP)))
            steps = [at + (to - at) * s for s in np.linspace(0.0, 1.0, count + 1)]
            blocked = next((i for i in range(1, count + 1) if len(self.contacts(steps[i]))), count + 1)
            if blocked > 1:
                free.append(steps[int(rng.integers(1, blocked))])
            known.append(steps[blocked - 1])
            if blocked <= count:
                touching.append(self._first_contact(steps[blocked - 1], steps[blocked]))
        # Forbidding nearly touching postures is harmless, but at a waist all postures nearly touch.
        wide = min(CLEAR, self.clearance(free[0]) / 2)
        self._free, self._near = (
            [some[0], *(x for x in some[1:] if self.clearance(x) > wide)] for some in (free, self._free_near_rest(rng))
        )

    def _first_contact(self, clear: np.ndarray, hit: np.ndarray) -> np.ndarray:
        for _ in range(BISECTIONS):
            middle = (clear + hit) / 2
            clear, hit = (clear, middle) if len(self.contacts(middle)) else (middle, hit)
        return hit

    # -- shapes

    def judge(self, shapes: tuple[LinkShape, ...], shrunk: float) -> ContactFit | None:
        """Return the fit of shapes; None if they forbid too much."""
        if not self._free:
            return None
        d_free, d_near = self._distances(shapes, self._free), self._distances(shapes, self._near)
        keep = min(CONTACT_MARGIN, d_free[0])
        early = float(np.mean(d_free < keep))
        if keep <= 0 or early > min(EARLY_MOST, self.touched) or np.mean(d_near < keep) > EARLY_NEAR:
            return None
        missed = float(np.mean(self._distances(shapes, self.touching) > keep)) if self.touching else 0.0
        return ContactFit(self.links, shapes, self.touched, shrunk, missed, early)

    def _free_near_rest(self, rng: np.random.Generator) -> list[np.ndarray]:
        rest = self.robot.postures["neutral"][self.moved]
        draws = rest + NEAR * (rng.uniform(self._low, self._high, (NEAR_DRAWS, len(rest))) - rest)
        return [rest, *(x for x in draws if not len(self.contacts(x)))]

    def contact_points(self) -> list[np.ndarray]:
        """Return first contact points (n, 3) in the frame of each link."""
        local: list[list[np.ndarray]] = [[np.zeros((0, 3))], [np.zeros((0, 3))]]
        for x in self.touching:
            points = self.contacts(x, MOST_CONTACTS)
            for side, X in enumerate(self.place(x)):
                local[side].append((points - X.translation) @ X.rotation)
        return [np.vstack(points) for points in local]

    def mesh_distances(self, bodies: Bodies) -> MeshDistances:
        """Return link poses and mesh distances in free and contact postures."""
        a, b = self.links
        postures = [*self._near, *self._free, *self.touching]
        placed = [[np.hstack([X.rotation, X.translation[:, None]]) for X in self.place(x)] for x in postures]
        at, points = np.array(placed).reshape(-1, 2, 3, 4), self.contact_points()
        centres = [surface.vertices.mean(axis=0) for surface in self.surfaces]
        return MeshDistances(
            (at[:, 0], at[:, 1]),
            np.array([self.clearance(x) for x in postures]),
            (points[0], points[1]),
            (centres[0], centres[1]),
            bodies.reflection(a) if bodies.twins.get(a) == b else None,
        )

    def missed_by_robot(self) -> float:
        """Return the share of contacts that the robot's pairs do not detect."""
        shapes = self.robot.shapes
        pairs = [pair for pair in self.robot.pairs.tolist() if {shapes[k].link for k in pair} == set(self.links)]
        if not self.touching:
            return 0.0
        return float(np.mean(self._distances(shapes, self.touching, pairs) > LATE)) if pairs else 1.0

    def _distances(
        self, shapes: tuple[LinkShape, ...], postures: list[np.ndarray], pairs: list[list[int]] | None = None
    ) -> np.ndarray:
        """Return the least distance of pairs of shapes (default: of both links) per posture."""
        from humanoid_control.collision import CollisionPairs, shape_arrays  # loads the compiler

        if pairs is None:
            sides = [[k for k, s in enumerate(shapes) if s.link == link] for link in self.links]
            pairs = [[i, j] for i in sides[0] for j in sides[1]]
        model, data = self.robot.model, self.robot.data
        measured = CollisionPairs(shape_arrays(model, shapes), np.array(pairs), self.robot.ancestor_mask)
        out = np.empty(len(postures))
        for k, x in enumerate(postures):
            self.place(x)
            measured.place(*(np.array([getattr(X, part) for X in data.oMi]) for part in ("rotation", "translation")))
            out[k] = measured.all_distances().min()
        return out


def _bvh(surface: Triangles) -> Any:
    import coal

    model = coal.BVHModelOBBRSS()
    model.beginModel(len(surface.faces), len(surface.vertices))
    model.addVertices(np.ascontiguousarray(surface.vertices, dtype=float))
    model.addTriangles(np.ascontiguousarray(surface.faces, dtype=np.int64))
    model.endModel()
    return model


def _smaller(shape: Shape, by: float) -> Shape:
    if isinstance(shape, Capsule):
        return replace(shape, radius=round(max(shape.radius - by, THIN), 5))
    assert isinstance(shape, Box)
    x, y, z = (round(max(v - 2 * by, 2 * THIN), 5) for v in shape.size)
    return replace(shape, size=(x, y, z))
