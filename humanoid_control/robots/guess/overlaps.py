"""Links whose fitted shapes overlap where their meshes do not, and a posture in which the arms touch nothing.

Shapes that overlap in the neutral posture are not kept apart, so these pairs need shapes of their own, or a posture in
which they are clear.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pinocchio as pin

from humanoid_control.robots.guess.bodies import Bodies
from humanoid_control.robots.guess.contact_shapes import LinkPair
from humanoid_control.robots.robot import Robot

OFTEN, POSTURES, JOINTS_BETWEEN = 0.1, 100, 3
DEEP = 90  # percentile of the depths of a pair of links


def overlapping_links(robot: Robot, stand_out: dict[str, float]) -> list[tuple[str, str]]:
    """Pairs of links, few joints apart, whose shapes often overlap by less than they stand out of the meshes.

    Such an overlap, at both ends of a waist or a wrist, tells no collision, and would only hold the joints. Counted
    over random postures of the joints that imitation moves.

    Args:
        robot: with fitted shapes.
        stand_out: link -> how far its shapes stand out of its meshes [m].
    """
    from humanoid_control.collision import CollisionPairs, shape_arrays  # loads the compiler

    rng, moved = np.random.default_rng(0), robot.imitation_joints
    pairs = CollisionPairs(shape_arrays(robot.model, robot.shapes), robot.pairs, robot.ancestor_mask)
    links = [sorted(robot.shapes[k].link for k in pair) for pair in robot.pairs]
    names = sorted({(a, b) for a, b in links})
    row = {name: k for k, name in enumerate(names)}
    which = np.array([row[a, b] for a, b in links], dtype=int)
    depth = np.zeros((POSTURES, len(names)))
    low, high = np.maximum(robot.lower, -np.pi)[moved], np.minimum(robot.upper, np.pi)[moved]
    for k in range(POSTURES):
        joints = robot.postures["neutral"].copy()
        joints[moved] = rng.uniform(low, high)
        pin.forwardKinematics(robot.model, robot.data, robot.q(joints))
        pairs.place(*(np.array([getattr(X, part) for X in robot.data.oMi]) for part in ("rotation", "translation")))
        near = pairs.near(0.0)
        np.maximum.at(depth[k], which[near.pair], -near.distance)
    out = []
    for (a, b), depths in zip(names, depth.T, strict=True):
        hits = depths[depths > 0]
        often = len(hits) > OFTEN * POSTURES and _near_in_tree(robot, a, b)
        if often and np.percentile(hits, DEEP) < stand_out.get(a, 0.0) + stand_out.get(b, 0.0):
            out.append((a, b))
    return out


def links_overlapping_at_rest(robot: Robot, far: bool = False) -> list[tuple[str, str]]:
    """Pairs of links with shapes that are left out because they overlap in the neutral posture.

    Only of links that the joints of imitation move against each other; neighbours do not count.

    Args:
        robot: with fitted shapes.
        far: pairs with many joints between them, which a posture may part; else those with few.
    """
    parents, watched = robot.model.parents.tolist(), {frozenset(pair) for pair in robot.pairs.tolist()}
    joint = [robot.model.frames[robot.model.getFrameId(s.link, pin.FrameType.BODY)].parentJoint for s in robot.shapes]
    out = set()
    for j, k in combinations(range(len(joint)), 2):
        a, b = joint[j], joint[k]
        if a == b or parents[a] == b or parents[b] == a or frozenset((j, k)) in watched:
            continue
        if robot.shapes[j].against or robot.shapes[k].against:
            continue
        if (robot.ancestor_mask[a] != robot.ancestor_mask[b])[robot.iv + robot.imitation_joints].any():
            first, second = sorted((robot.shapes[j].link, robot.shapes[k].link))
            out.add((first, second))
    return sorted(pair for pair in out if _near_in_tree(robot, *pair) != far)


def with_images(links: list[tuple[str, str]], bodies: Bodies) -> list[tuple[str, str]]:
    """Pairs of links and their mirror images, which random postures may have found on one side only."""
    images = [pair for pair in map(bodies.images_of, links) if pair is not None]
    return sorted({(min(pair), max(pair)) for pair in links + images})


def _near_in_tree(robot: Robot, link: str, other: str) -> bool:
    """True where few joints lie between two links."""
    ways = []
    for name in (link, other):
        joint = robot.model.frames[robot.model.getFrameId(name, pin.FrameType.BODY)].parentJoint
        ways.append(set(robot.model.supports[joint].tolist()))
    return len(ways[0] ^ ways[1]) <= JOINTS_BETWEEN


# -------- Neutral posture

OUTWARD, TURN, GAP = 0.6, 0.05, 0.01  # [rad] an arm is turned by at most, and by each step; [m] between meshes then


def parted_posture(robot: Robot, bodies: Bodies, arms: Sequence[Sequence[str]]) -> dict[str, float]:
    """Angles [rad] of one joint of each arm that touches something in the neutral posture, in which it is clear.

    Some URDFs have hands inside the thighs where all joints are at zero. The joint that parts them by the least turn is
    taken; of several the one that leads farthest away.

    Args:
        robot: with fitted shapes. bodies: of its URDF.
        arms: the names of the joints of each shoulder.
    """
    neutral, out = robot.postures["neutral"], {}
    found = links_overlapping_at_rest(robot, far=True)
    pairs = [LinkPair(robot, bodies, p) for p in found if all(link in bodies.surfaces for link in p)]
    for arm in arms:
        joints = [robot.joint_index(name) for name in arm]
        own = [pair for pair in pairs if np.isin(joints, pair.moved).any()]
        if own and _gap(own, neutral) == 0.0 and (turn := _least_turn(robot, own, joints)) is not None:
            out[robot.joint_names[turn[0]]] = turn[1]
    return out


def _gap(pairs: list[LinkPair], posture: np.ndarray) -> float:
    return min(pair.clearance(posture[pair.moved]) for pair in pairs)


def _least_turn(robot: Robot, pairs: list[LinkPair], joints: list[int]) -> tuple[int, float] | None:
    """The joint and its angle [rad]; None where no turn of one joint parts all pairs."""
    for turn in np.arange(TURN, OUTWARD, TURN):
        best, farthest = None, GAP
        for joint in joints:
            for angle in robot.postures["neutral"][joint] + np.array([turn, -turn]):
                if robot.lower[joint] <= angle <= robot.upper[joint]:
                    posture = robot.postures["neutral"].copy()
                    posture[joint] = angle
                    if (gap := _gap(pairs, posture)) > farthest:
                        best, farthest = (joint, round(float(angle), 3)), gap
        if best is not None:
            return best
    return None
