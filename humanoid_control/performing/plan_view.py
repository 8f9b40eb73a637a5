"""Plan and measurements of a controller for drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.performing.dynamic_motion import DynamicMotion
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.performing.whole_body_controller import STAND, WholeBodyController
from humanoid_control.walking.feet import reaction_of
from humanoid_control.walking.support import convex_hull

COMING, AHEAD = 4, 10.0  # number of landings shown; [s] their horizon
LEAST_FORCE = 0.03  # share of the weight from which a force is shown


@dataclass(frozen=True)
class PlanView:
    """Plan and measurements at one moment, in the controller's world.

    Attributes:
        forces: centre of pressure (3,) [m] and force (3,) [N] of each loaded foot.
        support: counter-clockwise polygon of standing soles (K, 2) [m].
        zmp_planned: (2,) [m].
        center: centre of mass (3,) [m].
    """

    landings: list[tuple[int, int, pin.SE3]]
    forces: dict[int, tuple[np.ndarray, np.ndarray]]
    support: np.ndarray
    zmp: np.ndarray
    zmp_planned: np.ndarray
    dcm: np.ndarray
    center: np.ndarray


def plan_view(c: WholeBodyController) -> PlanView:
    """Return the view of a controller after a tick."""
    e, m, k = c.estimate, c.motion, frame_of(c)
    assert e is not None
    shift = np.array([*c.offset, 0.0])
    landings = [(j, f, pin.SE3(m.sole_rotation[j, f], m.sole_position[j, f] + shift)) for j, f in coming_landings(m, k)]
    forces = {}
    for f, (X, w) in enumerate(zip(e.soles, c.felt, strict=True)):
        if w[2] > LEAST_FORCE * c.weight:
            forces[f] = X.act(np.array([-w[4] / w[2], w[3] / w[2], 0.0])), X.rotation @ w[:3]
    R, p = (x[0] for x in c.soles.poses(c.robot, e.q[None]))
    standing = [corners_of(c.soles, f, R[f], p[f])[:, :2] for f in (0, 1) if c.feet[f].state == STAND]
    return PlanView(
        landings,
        forces,
        convex_hull(np.vstack(standing)) if standing else np.zeros((0, 2)),
        reaction_of(e.soles, c.felt).zmp,
        m.zmp[k] + c.offset,
        e.center[:2] + e.center_velocity[:2] / c.omega,
        e.center,
    )


def frame_of(c: WholeBodyController) -> int:
    """Return the present frame of the motion."""
    return int(np.clip(round(c.clock * c.motion.rate), 0, len(c.motion) - 1))


def corners_of(soles: RigidSoles, f: int, R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return sole corners (4, 3) at a pose [m]."""
    return np.asarray(soles.corners[f] @ R.T + p)


def coming_landings(motion: DynamicMotion, frame: int) -> list[tuple[int, int]]:
    """Return the next landings (frame, foot), in time order."""
    lands = motion.stands[frame + 1 :] & ~motion.stands[frame:-1]
    rows, feet = np.nonzero(lands[: round(AHEAD * motion.rate)])
    return [(frame + 1 + int(k), int(f)) for k, f in zip(rows[:COMING], feet[:COMING], strict=True)]
