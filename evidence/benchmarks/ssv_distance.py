"""Time of each distance function of swept-sphere volumes and of a whole robot, next to coal and published times.

Published: Schwienbacher 2014, table 6.9. His form of the line-triangle distance (section 6.4.5, two steps with 21
cases) is here for comparison: it measures two edges at most where the unified form measures three, but branches on the
way, so pairs cannot be measured side by side.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import coal
import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from humanoid_control.collision.pair_distance import PairsFound, pair_distances
from humanoid_control.collision.shapes import ShapeArrays
from humanoid_control.collision.ssv.distance import measure_blocks, to_blocks
from humanoid_control.collision.ssv.distance_kernels import (
    FIRST,
    FUNCTIONS,
    LANES,
    SECOND,
    Candidate,
    edge_edge,
    finish,
    inverse,
    line_triangle,
    nearer,
    over,
    plane,
    unit,
    vector,
)
from humanoid_control.collision.ssv.model import PoseArray, bounds_apart, boxes_apart
from humanoid_control.compiled.jit import kernel
from humanoid_control.numerics.vec3 import Vec, along, dot, sub
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.volumes import segment_pairs, volumes_of

# -------- Line-triangle distance in two steps

PARALLEL = 1e-10  # sine of the angle between line and plane (eq. (6.45))
INSIDE, VERTEX_0, EDGE_01, VERTEX_1, EDGE_12, VERTEX_2, EDGE_20 = range(7)


@kernel
def region(a: float, b: float) -> int:
    """The region of table 6.2 that the point v0 + a e0 + b e1 of the triangle's plane lies in."""
    if a >= 0.0 and b >= 0.0:
        return INSIDE if a + b < 1.0 else EDGE_12
    if a + b >= 1.0:
        return VERTEX_1 if b < 0.0 else VERTEX_2
    if a < 0.0:
        return VERTEX_0 if b < 0.0 else EDGE_20
    return EDGE_01


@kernel
def _edge(which: int, w: Vec, u: Vec, uu: float, iu: float, e0: Vec, e1: Vec) -> Candidate:
    """The segment from w along u and one edge of the triangle: EDGE_01, EDGE_12 or EDGE_20."""
    if which == EDGE_01:
        ee = dot(e0, e0)
        dd, a, s = edge_edge(e0, ee, inverse(ee), u, uu, iu, w)
        return dd, a, 0.0, s, 0.0
    if which == EDGE_20:
        ee = dot(e1, e1)
        dd, a, s = edge_edge(e1, ee, inverse(ee), u, uu, iu, w)
        return dd, 0.0, a, s, 0.0
    e2 = sub(e1, e0)
    ee = dot(e2, e2)
    dd, a, s = edge_edge(e2, ee, inverse(ee), u, uu, iu, sub(w, e0))
    return dd, 1.0 - a, a, s, 0.0


@kernel
def line_triangle_two_step(w: Vec, u: Vec, e0: Vec, e1: Vec) -> Candidate:
    """As `line_triangle`, by the steps of section 6.4.5: the point of the line nearest to the plane, then its region.

    A vertex region means the nearer of both edges there, not the vertex (E-9). A line parallel to the plane goes to
    the unified form.
    """
    n, k0, k1 = plane(e0, e1)
    uu, nu = dot(u, u), dot(n, u)
    if not abs(nu) > PARALLEL * (dot(n, n) * uu) ** 0.5:
        return line_triangle(w, u, e0, e1)
    iu = inverse(uu)
    s = unit(-dot(n, w) / nu)
    y = along(w, s, u)
    a, b = dot(y, k0), dot(y, k1)
    at = region(a, b)
    if at == INSIDE:
        return over(y, a, b, e0, e1), a, b, s, 0.0
    if at in (EDGE_01, EDGE_12, EDGE_20):
        return _edge(at, w, u, uu, iu, e0, e1)
    before = EDGE_01 if at == VERTEX_1 else EDGE_20
    after = EDGE_01 if at == VERTEX_0 else EDGE_12
    return nearer(_edge(before, w, u, uu, iu, e0, e1), _edge(after, w, u, uu, iu, e0, e1))


@kernel
def two_step_block(block: np.ndarray, count: int) -> None:
    """The first `count` lanes of a block of lines and triangles, one after the other."""
    for i in range(count):
        p, q = vector(block, FIRST, i), vector(block, SECOND, i)
        u = sub(vector(block, FIRST + 3, i), p)
        e0, e1 = sub(vector(block, SECOND + 3, i), q), sub(vector(block, SECOND + 6, i), q)
        _, a, b, s, _ = line_triangle_two_step(sub(p, q), u, e0, e1)
        finish(block, i, along(p, s, u), along(along(q, a, e0), b, e1))


@kernel
def measure_blocks_two_step(blocks: np.ndarray, total: int) -> None:
    """As `measure_blocks` for lines and triangles."""
    for b in range(blocks.shape[0]):
        two_step_block(blocks[b], min(LANES, total - b * LANES))


# -------- Bench

COLUMNS = ["name", "unit", "median", "p99", "n"]
# Table 6.9 (Schwienbacher 2014), Core2 Duo T7600 at 2.33 GHz, 32 bit [ns].
PUBLISHED = {"pp": 88.6, "pl": 125.6, "ll": 155.5, "pt": 139.2, "lt": 361.4, "tt": 888.7}
PAIRS, REPEATS, POSTURES = 1024, 400, 2000
ALL, NEAR = 10.0, 0.1  # [m] activation distances: every pair gets its result, or only near ones
CAPSULES = 256


def measure(robot: str = "lola", quiet: bool = True) -> list[dict[str, Any]]:
    """Rows: six functions, the two-step line-triangle form, box tests and coal (ns a pair); the robot (us a tick)."""
    rng = np.random.default_rng(0)
    rows = [_function(name, rng) for name in ("pp", "pl", "pt", "ll", "lt", "tt")]
    vertices = [rng.normal(size=(PAIRS, n, 3)) for n in (2, 3)]
    blocks = to_blocks(vertices[0], np.zeros(PAIRS), vertices[1], np.zeros(PAIRS))
    rows.append(_row("lt_two_step", "ns", *_repeat(lambda: measure_blocks_two_step(blocks, PAIRS), PAIRS)))
    rows += _box_tests(rng)
    for name in SCATTERED:
        rows += _scattered(name, rng)
    return rows + _whole_robot(load_robot(robot, "floating"))


def _row(name: str, unit: str, first: float, values: list[float], n: int, **more: Any) -> dict[str, Any]:
    p50, p99 = (round(float(x), 2) for x in np.percentile(values, [50, 99]))
    return {"name": name, "unit": unit, "median": p50, "p99": p99, "n": n, "first_call_s": round(first, 3), **more}


def _repeat(call: Callable[[], Any], pairs: int) -> tuple[float, list[float], int]:
    """(first call [s], the others [ns a pair], how many pairs altogether)."""
    times = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times[0], [1e9 * t / pairs for t in times[1:]], REPEATS * pairs


def _function(name: str, rng: np.random.Generator) -> dict[str, Any]:
    """One function on random pairs of which some overlap; results with witness points and normals."""
    code = FUNCTIONS[name]
    v0, v1 = (rng.normal(size=(PAIRS, n + 1, 3)) for n in divmod(code, 3))
    blocks = to_blocks(v0, rng.uniform(0, 0.2, PAIRS), v1, rng.uniform(0, 0.2, PAIRS))
    return _row(name, "ns", *_repeat(lambda: measure_blocks(code, blocks, PAIRS), PAIRS), published_ns=PUBLISHED[name])


@kernel
def count_apart(boxes: np.ndarray, bounds: np.ndarray, oriented: bool, reach: float) -> int:
    """Number of pairs of boxes 2 k and 2 k + 1 that are apart."""
    count = 0
    for k in range(boxes.shape[0] // 2):
        if oriented:
            count += boxes_apart(boxes[2 * k], boxes[2 * k + 1], reach)
        else:
            count += bounds_apart(bounds[2 * k], bounds[2 * k + 1], reach)
    return count


def _box_tests(rng: np.random.Generator) -> list[dict[str, Any]]:
    turns = Rotation.random(2 * PAIRS, rng=rng).as_matrix().reshape(-1, 9)
    sizes = rng.uniform(0.1, 1.0, (2 * PAIRS, 3))
    centers = rng.normal(size=(2 * PAIRS, 3))
    boxes = np.hstack([centers, turns, sizes])
    bounds = np.hstack([centers - sizes, centers + sizes])
    return [
        _row(name, "ns", *_repeat(lambda o=oriented: count_apart(boxes, bounds, o, NEAR), PAIRS))  # type: ignore[misc]
        for name, oriented in (("obb_test", True), ("aabb_test", False))
    ]


SCATTERED = {  # shapes of a row, and how they lie: scattered, apart by some centimetres, or in each other
    "capsule_pair": ("capsule", "capsule", None),
    "capsule_box_pair": ("capsule", "box", 0.35),
    "capsule_box_deep": ("capsule", "box", 0.05),
    "box_pair": ("box", "box", 0.35),
    "box_deep": ("box", "box", 0.05),
    "ellipsoid_box_pair": ("ellipsoid", "box", 0.35),
}


def _solid(kind: str, rng: np.random.Generator, small: bool) -> tuple[tuple[float, float, float, float], Any]:
    """A shape at random: its row of sizes, and as coal knows it."""
    if kind == "capsule":
        radius = float(rng.uniform(0.03, 0.08) if small else rng.uniform(0.01, 0.2))
        length = float(rng.uniform(0.1, 0.4) if small else rng.uniform(0.5, 3.0))
        return (radius, radius, radius, length / 2), coal.Capsule(radius, length)
    x, y, z = (float(v) for v in rng.uniform(0.03, 0.12, 3))
    return (x, y, z, 0.0), coal.Box(2 * x, 2 * y, 2 * z) if kind == "box" else coal.Ellipsoid(x, y, z)


def _scattered(name: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Pairs that lie scattered: the robots' distance kernel and coal, in turns, all pairs in one call from Python.

    Both start from placed shapes and leave distance, normal and witness points. Nothing is sorted or packed beforehand,
    as it is for the six functions; coal's loop is pinocchio's, in C++.
    """
    first, second, apart = SCATTERED[name]
    model, geometry, sizes = pin.Model(), pin.GeometryModel(), []
    places: list[Any] = []
    for k in range(2 * CAPSULES):
        size, solid = _solid(second if k % 2 else first, rng, apart is not None)
        at = rng.normal(size=3)
        if apart is not None:
            at = places[-1].translation + apart * at / np.linalg.norm(at) if k % 2 else at
        X = pin.SE3(Rotation.random(rng=rng).as_matrix(), at)
        geometry.addGeometryObject(pin.GeometryObject(f"c{k}", 0, 0, X, solid))
        places.append(X)
        sizes.append(size)
    pairs = np.arange(2 * CAPSULES).reshape(-1, 2)
    for i, j in pairs:
        geometry.addCollisionPair(pin.CollisionPair(int(i), int(j)))
    data, gdata = model.createData(), geometry.createData()
    pin.updateGeometryPlacements(model, data, geometry, gdata, pin.neutral(model))
    R, p = np.array([X.rotation for X in places]), np.array([X.translation for X in places])
    shapes = ShapeArrays.build([first, second] * CAPSULES, sizes, [0] * len(places), list(R), list(p))
    out = PairsFound.buffer(len(pairs))
    calls = {
        name: lambda: pair_distances(shapes, R, p, pairs, np.inf, out),
        f"coal_{name}": lambda: pin.computeDistances(geometry, gdata),
    }
    times: dict[str, list[float]] = {called: [] for called in calls}
    for _ in range(REPEATS + 1):
        for called, call in calls.items():
            start = time.perf_counter()
            call()
            times[called].append(time.perf_counter() - start)
    differ = max(abs(r.min_distance - d) for r, d in zip(gdata.distanceResults, out.distance, strict=True))
    n = REPEATS * len(pairs)
    return [
        _row(called, "ns", t[0], [1e9 * x / len(pairs) for x in t[1:]], n, differ_m=float(differ))
        for called, t in times.items()
    ]


def _whole_robot(robot: Robot) -> list[dict[str, Any]]:
    """From the joints' poses and Jacobian to distances, witness points and gradients."""
    model, data = volumes_of(robot), robot.model.createData()
    a = model.arrays
    poses, rng, n = PoseArray(data), np.random.default_rng(3), POSTURES
    neutral = robot.postures["neutral"]
    rows = []
    cases = [(f"{robot.name}_all_pairs", ALL, "obb")]
    cases += [(f"{robot.name}_within_100mm_{b}", NEAR, b) for b in ("obb", "aabb", "none")]
    for name, activation, boxes in cases:
        calculator, times, near_pairs = segment_pairs(robot, model, activation, boxes), [], []
        for _ in range(n + 1):
            joints = np.clip(neutral + 0.4 * rng.normal(size=robot.n), robot.lower, robot.upper)
            pin.computeJointJacobians(robot.model, data, robot.q(joints))
            start = time.perf_counter()
            calculator.place(poses.rows())
            near = calculator.nearest()
            near.gradient(data.J)
            times.append(time.perf_counter() - start)
            near_pairs.append(len(near))
        row = _row(name, "us", times[0], [1e6 * t for t in times[1:]], n)
        counts = {
            "segments": len(model.segments),
            "volumes": len(model.arrays.radii),
            "segment_pairs": len(model.pairs),
        }
        rows.append(row | counts | {"volume_pairs": len(a.volume_pairs), "near_pairs": float(np.mean(near_pairs))})
    return rows


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """Lines on what is counted, and the published numbers."""
    median = {r["name"]: r["median"] for r in rows}
    w = next(r for r in rows if r["name"].endswith("_all_pairs"))
    source = ", ".join(f"{k} {v:g}" for k, v in PUBLISHED.items())
    ours, theirs = (", ".join(f"{k} {t[k] / t['pp']:.1f}" for k in PUBLISHED) for t in (median, PUBLISHED))
    first = sum(r["first_call_s"] for r in rows)
    return [
        f"Schwienbacher 2014, table 6.9 (Core2 Duo 2.33 GHz, 32 bit) [ns]: {source}; its whole Lola 50-500 us.",
        f"Relative to pp: {ours}; published: {theirs}. Here one instruction processes several pairs.",
        f"capsule_pair, coal_capsule_pair: {CAPSULES} scattered pairs, neither side packed: "
        f"{median['capsule_pair']:g} and {median['coal_capsule_pair']:g} ns per pair. The other pairs are some "
        f"centimetres apart; the rows named deep overlap. EPA of coal stops some micrometres short of the depth.",
        f"An OBB test costs {median['obb_test'] / median['ll']:.1f} of ll (published: 2 to 3).",
        f"{w['name']}: {w['segments']} segments with {w['volumes']} volumes, {w['segment_pairs']} pairs of them with "
        f"{w['volume_pairs']} pairs of volumes; poses, boxes, distances, witness points and gradients of "
        "all pairs, called from Python. Within 100 mm: bounding boxes exclude far pairs first; oriented (obb), along "
        "the world axes (aabb), or none.",
        f"First calls, from the cache of compiled kernels or, once, the compiler: {first:.2f} s.",
    ]
