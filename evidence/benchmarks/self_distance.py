"""Distances between a robot's shapes: the exact kernels next to coal, on the same postures in the same run."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.collision.coal_backend import shape_arrays
from humanoid_control.collision.pair_distance import PairsFound, pair_distances, shape_poses
from humanoid_control.robots.catalogue import load_robot

COLUMNS = ["name", "unit", "median", "p99", "n", "near_pairs"]
POSTURES = 2000
THRESHOLDS = (0.05, 0.1, 0.2)  # [m]


def measure(robot: str = "hrp2", quiet: bool = True) -> list[dict[str, Any]]:
    """Rows: kernels and coal for each threshold; both from joint poses to near pairs, normals and witness points."""
    model = load_robot(robot, "fixed")
    A, pairs, reference = shape_arrays(model.model, model.shapes), model.pairs.astype(np.int64), model.self_distance()
    R, p, n = np.empty((len(A.kinds), 3, 3)), np.empty((len(A.kinds), 3)), len(pairs)
    out = PairsFound.buffer(n)
    data, rng = model.model.createData(), np.random.default_rng(0)
    rows = []
    for threshold in THRESHOLDS:
        ours, coal, near = [], [], []
        for _ in range(POSTURES + 1):
            joints = np.clip(model.postures["neutral"] + 0.4 * rng.normal(size=model.n), model.lower, model.upper)
            pin.forwardKinematics(model.model, data, model.q(joints))
            joint_R = np.array([X.rotation for X in data.oMi])
            joint_p = np.array([X.translation for X in data.oMi])
            start = time.perf_counter()
            shape_poses(joint_R, joint_p, A, R, p)
            count = pair_distances(A, R, p, pairs, threshold, out)
            middle = time.perf_counter()
            reference.near(data, threshold)
            coal.append(1e6 * (time.perf_counter() - middle))
            ours.append(1e6 * (middle - start))
            near.append(count)
        for name, values in (("ours", ours), ("coal", coal)):  # the first call compiles
            p50, p99 = (round(float(x), 1) for x in np.percentile(values[1:], [50, 99]))
            label = f"{name}_{1000 * threshold:.0f}mm"
            row = {"name": label, "unit": "us", "median": p50, "p99": p99, "n": POSTURES}
            rows.append({**row, "near_pairs": round(float(np.mean(near[1:])), 1), "pairs": n})
    return rows


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """Lines on the ratio of times and what is counted."""
    ratios = ", ".join(f"{b['median'] / a['median']:.1f}" for a, b in zip(rows[::2], rows[1::2], strict=True))
    return [
        f"{rows[0]['pairs']} pairs. Time of coal relative to this package: {ratios}. Both start from the joint "
        f"poses: arrays here, the data of pinocchio for coal, whose call includes copying its results into arrays.",
    ]
