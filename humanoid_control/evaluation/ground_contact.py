"""Ground contact of soles in any motion: slip, penetration, floating, skating."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.retargeting.whole_body.contacts import EDGES, runs
from humanoid_control.robots.robot import FLOATING, Robot

NEAR = 0.005  # [m] height below which a corner appears to stand


@dataclass(frozen=True)
class GroundContact:
    """Contact of a motion with the floor z = 0.

    Attributes:
        slip: (N,) largest distance of a corner from its initial contact place, per edge contact [m].
        penetration: (T,) depth of the deepest corner, else 0 [m].
        floating: (T,) height of the highest corner of an edge in contact, else 0 [m].
        skating: mean horizontal speed of all corners below 5 mm, in contact or not [m/s].
        contact_share: (4,) share of frames in which each of EDGES is in contact.
    """

    slip: np.ndarray
    slip_speed: np.ndarray
    penetration: np.ndarray
    floating: np.ndarray
    skating: float
    contact_share: np.ndarray

    def row(self) -> dict[str, float]:
        """Return table values in mm and mm/s: medians and maxima over contacts, maxima over frames."""
        slip, speed = (1000 * a if len(a) else np.zeros(1) for a in (self.slip, self.slip_speed))
        return {
            "contacts": len(self.slip),
            "slip_mm": round(float(np.median(slip)), 3),
            "slip_max_mm": round(float(slip.max()), 3),
            "slip_mm_s": round(float(speed.max()), 2),
            "skating_mm_s": round(1000 * self.skating, 2),
            "penetration_mm": round(1000 * float(self.penetration.max()), 3),
            "floating_mm": round(1000 * float(self.floating.max()), 3),
        }


def edge_corners(robot: Robot) -> list[list[tuple[int, np.ndarray]]]:
    """Return both ends of each of EDGES: link frame, and position in it [m].

    Heel edges are the rear corners of a foot's soles in the neutral posture, toe edges the front corners.

    Raises:
        RobotError: if the base is fixed, or a leg has no sole.
    """
    if robot.base != FLOATING:
        raise RobotError(f"{robot.name}: ground contact needs a floating base")
    pin.framesForwardKinematics(robot.model, robot.data, robot.q("neutral"))
    found: dict[str, list[tuple[float, int, np.ndarray]]] = {"l": [], "r": []}
    for foot in robot.feet:
        frame = robot.model.getFrameId(foot.link, pin.FrameType.BODY)
        X = robot.data.oMf[frame]
        side = "l" if np.mean([X.act(c)[1] for c in foot.corners()]) > 0 else "r"
        found[side] += [(float(X.act(c)[0]), int(frame), np.asarray(c, dtype=float)) for c in foot.corners()]
    out = []
    for side in "lr":
        if len(found[side]) < 4:
            raise RobotError(f"{robot.name}: a leg has no sole under `feet` in its robot file")
        ordered = sorted(found[side], key=lambda corner: corner[0])
        out += [[(f, c) for _, f, c in ordered[:2]], [(f, c) for _, f, c in ordered[-2:]]]
    return out


def corner_paths(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return world positions (T, 4, 2, 3) of both ends of EDGES [m] at configurations (T, nq)."""
    corners = edge_corners(robot)
    out = np.empty((len(q), len(EDGES), 2, 3))
    for t, now in enumerate(q):
        pin.framesForwardKinematics(robot.model, robot.data, now)
        for e, ends in enumerate(corners):
            for k, (frame, place) in enumerate(ends):
                out[t, e, k] = robot.data.oMf[frame].act(place)
    return out


def measure_ground_contact(robot: Robot, q: np.ndarray, contacts: np.ndarray, rate: float) -> GroundContact:
    """Measure slip, penetration and floating of a motion.

    Args:
        q: (T, nq) configurations.
        contacts: (T, 4) planned contact of each of EDGES.

    Raises:
        ConfigError: if the shapes do not match.
        RobotError: if the base is fixed, or soles are missing.
    """
    if q.ndim != 2 or q.shape[1] != robot.nq or contacts.shape != (len(q), len(EDGES)):
        raise ConfigError(
            f"expected q (T, {robot.nq}) and contacts (T, {len(EDGES)}), got {q.shape} and {contacts.shape}"
        )
    paths = corner_paths(robot, q)
    moved = np.linalg.norm(np.diff(paths[..., :2], axis=0), axis=3) * rate
    ways, slip, speed = slip_ways(paths, contacts), [], []
    for e in range(len(EDGES)):
        for first, end in runs(contacts[:, e]):
            slip.append(float(ways[first:end, e].max()))
            speed.append(float(moved[first : end - 1, e].max(initial=0.0)))
    height = paths[..., 2].max(axis=2)
    low = (paths[:-1, ..., 2] < NEAR) & (paths[1:, ..., 2] < NEAR)
    return GroundContact(
        np.array(slip),
        np.array(speed),
        np.maximum(-paths[..., 2].min(axis=(1, 2)), 0.0),
        np.maximum(np.where(contacts, height, 0.0).max(axis=1), 0.0),
        float(moved[low].mean()) if low.any() else 0.0,
        contacts.mean(axis=0),
    )


def slip_ways(paths: np.ndarray, contacts: np.ndarray) -> np.ndarray:
    """Return the slip (T, 4) of each edge on its `corner_paths`: largest distance of its ends from the start [m]."""
    ways = np.zeros(contacts.shape)
    for e in range(len(EDGES)):
        for first, end in runs(contacts[:, e]):
            from_there = paths[first:end, e, :, :2] - paths[first, e, :, :2]
            ways[first:end, e] = np.linalg.norm(from_there, axis=2).max(axis=1)
    return ways


@dataclass(frozen=True)
class ContactAgreement:
    """Agreement of robot and person contacts, over frames and EDGES.

    Attributes:
        frames: share of frames with all edges equal.
        precision: share of robot contacts shared by the person; NaN without any.
        recall: share of person contacts shared by the robot; NaN without any.
    """

    frames: float
    precision: float
    recall: float


def contact_agreement(robot: np.ndarray, person: np.ndarray) -> ContactAgreement:
    """Return the agreement of robot and person contacts (T, 4), in the order of EDGES.

    Raises:
        ConfigError: if the shapes differ.
    """
    if robot.shape != person.shape:
        raise ConfigError(f"contacts of the robot and of the person differ in shape: {robot.shape}, {person.shape}")
    both, ours, theirs = (float(np.sum(a)) for a in (robot & person, robot, person))
    same = float(np.mean(np.all(robot == person, axis=1))) if len(robot) else np.nan
    return ContactAgreement(same, both / ours if ours else np.nan, both / theirs if theirs else np.nan)
