"""What a controller plans and feels at one moment, as points, arrows and polygons to be drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.performing.dynamic_motion import DynamicMotion
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.performing.whole_body_controller import STAND, WholeBodyController
from humanoid_control.walking.feet import reaction_of
from humanoid_control.walking.support import convex_hull

COMING, AHEAD = 4, 10.0  # landings that are shown; [s] within which they lie
LEAST_FORCE = 0.03  # of the weight that is shown


@dataclass(frozen=True)
class PlanView:
    """Plan and sensors at a moment, in the world of the controller.

    Attributes:
        landings: (frame, foot, pose of its sole) of those to come, in the order of time.
        forces: foot -> (point where it presses (3,) [m], force (3,) [N]) of the feet that carry.
        support: (K, 2) corners of the polygon of the soles that stand, counter-clockwise [m]; (0, 2) without one.
        zmp, zmp_planned: (2,) zero-moment point that is felt, and that of the plan [m].
        dcm: (2,) divergent component of motion. center: (3,) of mass [m].
    """

    landings: list[tuple[int, int, pin.SE3]]
    forces: dict[int, tuple[np.ndarray, np.ndarray]]
    support: np.ndarray
    zmp: np.ndarray
    zmp_planned: np.ndarray
    dcm: np.ndarray
    center: np.ndarray


def plan_view(c: WholeBodyController) -> PlanView:
    """The view of a controller that has made a tick."""
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
    """The frame of the motion that a controller is at."""
    return int(np.clip(round(c.clock * c.motion.rate), 0, len(c.motion) - 1))


def corners_of(soles: RigidSoles, f: int, R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Corners (4, 3) of a sole at a pose [m]."""
    return np.asarray(soles.corners[f] @ R.T + p)


def coming_landings(motion: DynamicMotion, frame: int) -> list[tuple[int, int]]:
    """The next landings after a frame, as (frame, foot), in the order of time."""
    lands = motion.stands[frame + 1 :] & ~motion.stands[frame:-1]
    rows, feet = np.nonzero(lands[: round(AHEAD * motion.rate)])
    return [(frame + 1 + int(k), int(f)) for k, f in zip(rows[:COMING], feet[:COMING], strict=True)]
