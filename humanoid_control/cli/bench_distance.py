"""Swept-sphere volumes: each distance function, and a whole robot, beside coal and the source's table 6.9."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import coal
import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from humanoid_control.collision.pose_rows import PoseRows
from humanoid_control.collision.ssv_batch import measure_blocks, pack
from humanoid_control.collision.ssv_boxes import bounds_apart, boxes_apart
from humanoid_control.collision.ssv_lanes import FUNCTIONS
from humanoid_control.collision.ssv_two_step import measure_blocks_two_step
from humanoid_control.jit import kernel
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.ssv_model import ssv_distance, ssv_of

ROBOT = "lola"
COLUMNS = ["name", "unit", "median", "p99", "n"]
# Table 6.9 (Schwienbacher 2014), Core2 Duo T7600 at 2.33 GHz, 32 bit [ns].
PUBLISHED = {"pp": 88.6, "pl": 125.6, "ll": 155.5, "pt": 139.2, "lt": 361.4, "tt": 888.7}
PAIRS, REPEATS, POSTURES = 1024, 400, 2000
ALL, NEAR = 10.0, 0.1  # [m] activation distances: every pair gets its result, or only near ones
CAPSULES = 256


def measure(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows: six functions, the source's line-triangle form, box tests and coal (ns a pair); the robot (us a tick)."""
    rng = np.random.default_rng(0)
    rows = [_function(name, rng) for name in ("pp", "pl", "pt", "ll", "lt", "tt")]
    vertices = [rng.normal(size=(PAIRS, n, 3)) for n in (2, 3)]
    blocks = pack(vertices[0], np.zeros(PAIRS), vertices[1], np.zeros(PAIRS))
    rows.append(_row("lt_two_step", "ns", *_repeat(lambda: measure_blocks_two_step(blocks, PAIRS), PAIRS)))
    rows += _box_tests(rng)
    rows.append(_coal_capsules(rng))
    return rows + _whole_robot(load_robot(args.robot, "floating"))


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
    blocks = pack(v0, rng.uniform(0, 0.2, PAIRS), v1, rng.uniform(0, 0.2, PAIRS))
    return _row(name, "ns", *_repeat(lambda: measure_blocks(code, blocks, PAIRS), PAIRS), published_ns=PUBLISHED[name])


@kernel
def count_apart(boxes: np.ndarray, bounds: np.ndarray, oriented: bool, reach: float) -> int:
    """How many of the boxes 2 k and 2 k + 1 are apart; for the bench."""
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


def _coal_capsules(rng: np.random.Generator) -> dict[str, Any]:
    """coal on capsules, all pairs in one call from C++, as pinocchio does it."""
    model, geometry = pin.Model(), pin.GeometryModel()
    for k in range(2 * CAPSULES):
        shape = coal.Capsule(float(rng.uniform(0.01, 0.2)), float(rng.uniform(0.5, 3.0)))
        X = pin.SE3(Rotation.random(rng=rng).as_matrix(), rng.normal(size=3))
        geometry.addGeometryObject(pin.GeometryObject(f"c{k}", 0, 0, X, shape))
    for k in range(CAPSULES):
        geometry.addCollisionPair(pin.CollisionPair(2 * k, 2 * k + 1))
    data, gdata = model.createData(), geometry.createData()
    pin.updateGeometryPlacements(model, data, geometry, gdata, pin.neutral(model))
    return _row("coal_capsule_pair", "ns", *_repeat(lambda: pin.computeDistances(geometry, gdata), CAPSULES))


def _whole_robot(robot: Robot) -> list[dict[str, Any]]:
    """From the joints' poses and Jacobian to distances, witness points and gradients."""
    model, data = ssv_of(robot), robot.model.createData()
    poses, rng, n = PoseRows(data), np.random.default_rng(3), POSTURES
    neutral = robot.postures["neutral"]
    rows = []
    cases = [(f"{robot.name}_all_pairs", ALL, "obb")]
    cases += [(f"{robot.name}_within_100mm_{b}", NEAR, b) for b in ("obb", "aabb", "none")]
    for name, activation, boxes in cases:
        calculator, times, near_pairs = ssv_distance(robot, model, activation, boxes), [], []
        for _ in range(n + 1):
            joints = np.clip(neutral + 0.4 * rng.normal(size=robot.n), robot.lower, robot.upper)
            pin.computeJointJacobians(robot.model, data, robot.q(joints))
            start = time.perf_counter()
            calculator.place(poses.rows())
            near = calculator.nearest()
            calculator.gradient(data.J, near)
            times.append(time.perf_counter() - start)
            near_pairs.append(len(near))
        row = _row(name, "us", times[0], [1e6 * t for t in times[1:]], n)
        counts = {"segments": len(model.segments), "volumes": len(model.radii), "segment_pairs": len(model.pairs)}
        rows.append(row | counts | {"volume_pairs": len(model.volume_pairs), "near_pairs": float(np.mean(near_pairs))})
    return rows


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """What is counted, and the source's numbers."""
    median = {r["name"]: r["median"] for r in rows}
    w = next(r for r in rows if r["name"].endswith("_all_pairs"))
    source = ", ".join(f"{k} {v:g}" for k, v in PUBLISHED.items())
    ours, theirs = (", ".join(f"{k} {t[k] / t['pp']:.1f}" for k in PUBLISHED) for t in (median, PUBLISHED))
    first = sum(r["first_call_s"] for r in rows)
    return [
        f"The source's table 6.9 (Core2 Duo 2.33 GHz, 32 bit) [ns]: {source}; its whole Lola 50-500 us.",
        f"Relative to pp: {ours}; the source: {theirs}. Ours measure several pairs with one instruction.",
        f"An OBB test costs {median['obb_test'] / median['ll']:.1f} of our ll (the source: 2 to 3).",
        f"{w['name']}: {w['segments']} segments with {w['volumes']} volumes, {w['segment_pairs']} pairs of them with",
        f"{w['volume_pairs']} pairs of volumes; poses, boxes, distances, witness points and gradients of",
        "all pairs, called from Python. Within 100 mm, boxes leave out far pairs before they are measured: oriented",
        "(obb), along the world's axes (aabb), or none.",
        f"First calls, from the cache of compiled kernels or, once, the compiler: {first:.2f} s.",
    ]
