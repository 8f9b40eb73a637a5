"""Contact of a robot's soles with the ground in any motion: slip, penetration, floating, and skating.

It is measured by pinocchio's forward kinematics on the corners of the soles of the robot file, without anything of the
solver that made the motion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.retargeting.whole_body.contacts import EDGES, runs
from humanoid_control.robots.robot import FLOATING, Robot

NEAR = 0.005  # [m] height below which a corner looks as if it stood on the floor


@dataclass(frozen=True)
class GroundContact:
    """Contact of a motion with the floor z = 0.

    Attributes:
        slip: (N,) longest way of a corner from where its contact began, one number a contact of an edge [m].
        slip_speed: (N,) largest speed of a corner in it, along the floor [m/s].
        penetration: (T,) depth of the deepest corner below the floor, 0 where all are above [m].
        floating: (T,) height of the highest corner of an edge in contact, 0 where none is [m].
        skating: mean speed along the floor of all corners nearer to it than 5 mm, in contact or not [m/s].
        contact_share: (4,) share of the frames in which each of EDGES is in contact.
    """

    slip: np.ndarray
    slip_speed: np.ndarray
    penetration: np.ndarray
    floating: np.ndarray
    skating: float
    contact_share: np.ndarray

    def row(self) -> dict[str, float]:
        """Numbers for a table in mm and mm/s: medians and largest over contacts, largest over frames."""
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
    """Both ends of each of EDGES: frame of the link, and position in it [m].

    The heel edge of a foot is made of the hindmost corners of its soles in the neutral posture, the toe edge of the
    foremost.

    Raises:
        RobotError: the base is fixed, or a leg has no sole.
    """
    if robot.base != FLOATING:
        raise RobotError(f"{robot.name}: contact with the ground is of a robot with a floating base")
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
    """Positions (T, 4, 2, 3) in the world of both ends of EDGES [m], at configurations (T, nq)."""
    corners = edge_corners(robot)
    out = np.empty((len(q), len(EDGES), 2, 3))
    for t, now in enumerate(q):
        pin.framesForwardKinematics(robot.model, robot.data, now)
        for e, ends in enumerate(corners):
            for k, (frame, place) in enumerate(ends):
                out[t, e, k] = robot.data.oMf[frame].act(place)
    return out


def measure_ground_contact(robot: Robot, q: np.ndarray, contacts: np.ndarray, rate: float) -> GroundContact:
    """Slip, penetration and floating of a motion.

    Args:
        robot: with a floating base and soles.
        q: (T, nq) configurations of its pinocchio model.
        contacts: (T, 4) True where an edge of EDGES is planned on the floor.
        rate: frames a second [Hz].

    Raises:
        ConfigError: the shapes do not fit. RobotError: no floating base, no soles.
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
    """Way (T, 4) of the ends of each edge from where its contact began, of both the larger [m]; 0 without contact.

    Args:
        paths: (T, 4, 2, 3) as of `corner_paths`.
        contacts: (T, 4).
    """
    ways = np.zeros(contacts.shape)
    for e in range(len(EDGES)):
        for first, end in runs(contacts[:, e]):
            from_there = paths[first:end, e, :, :2] - paths[first, e, :, :2]
            ways[first:end, e] = np.linalg.norm(from_there, axis=2).max(axis=1)
    return ways


@dataclass(frozen=True)
class ContactAgreement:
    """Contacts of a robot next to those of the person, over frames and EDGES.

    Attributes:
        frames: share of the frames in which all edges are as the person's.
        precision: share of the robot's contacts that are the person's too; NaN where it has none.
        recall: share of the person's contacts that are the robot's too; NaN where there is none.
    """

    frames: float
    precision: float
    recall: float


def contact_agreement(robot: np.ndarray, person: np.ndarray) -> ContactAgreement:
    """Agreement of contacts (T, 4) of a robot with those (T, 4) of the person, in the order of EDGES.

    Raises:
        ConfigError: the shapes differ.
    """
    if robot.shape != person.shape:
        raise ConfigError(f"contacts of the robot and of the person differ in shape: {robot.shape}, {person.shape}")
    both, ours, theirs = (float(np.sum(a)) for a in (robot & person, robot, person))
    same = float(np.mean(np.all(robot == person, axis=1))) if len(robot) else np.nan
    return ContactAgreement(same, both / ours if ours else np.nan, both / theirs if theirs else np.nan)
