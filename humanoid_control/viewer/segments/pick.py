"""Which volume a click in the scene hits: a ray followed by the volumes' own distances, not by what is drawn.

Meshes that take clicks would lie in front of the handles inside them, and keep these from being dragged.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.ssv_batch import distances
from humanoid_control.collision.ssv_model import SsvModel

STEPS, CLOSE, FAR = 96, 1e-4, 50.0  # [m]


def first_hit(model: SsvModel, vertices: np.ndarray, origin: np.ndarray, direction: np.ndarray) -> int | None:
    """The index of the volume that a ray enters first; None where it passes all.

    Along the ray each volume's distance is a step that cannot pass it (sphere tracing).

    Args:
        model: whose volumes.
        vertices: (N, 3, 3) where they are, world frame [m].
        origin: (3,) of the ray [m].
        direction: (3,), of any length.
    """
    n = np.asarray(direction, dtype=float)
    n = n / np.linalg.norm(n)
    reached, open_ = np.zeros(len(model.radii)), np.ones(len(model.radii), dtype=bool)
    for _ in range(STEPS):
        rows = np.flatnonzero(open_)
        if not len(rows):
            break
        points = np.asarray(origin, dtype=float) + reached[rows, None] * n
        d = np.empty(len(rows))
        for kind in range(3):
            of = model.kinds[rows] == kind
            zero, core = np.zeros(int(of.sum())), vertices[rows[of], : kind + 1]
            d[of] = distances("p" + "plt"[kind], points[of, None], zero, core, model.radii[rows[of]]).distance
        reached[rows] += np.maximum(d, 0.0)
        open_[rows] = (d > CLOSE) & (reached[rows] < FAR)
    hit = reached < FAR
    return int(np.argmin(np.where(hit, reached, np.inf))) if hit.any() else None
