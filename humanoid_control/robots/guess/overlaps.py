"""Links with fitted shapes that overlap although their meshes do not, and postures with free arms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin

from humanoid_control.robots.guess.bodies import Bodies
from humanoid_control.robots.guess.contact_shapes import NEAR, LinkPair
from humanoid_control.robots.robot import Robot

if TYPE_CHECKING:
    from humanoid_control.collision import CollisionPairs

OFTEN, POSTURES, JOINTS_BETWEEN = 0.1, 100, 3
DEEP = 90  # percentile of the depths
CROWDED, MARGIN = 0.05, 0.02  # share of postures near rest; [m] margin of shapes in walking
MISLEADING = 0.01  # [m] excess of mesh over shape distance


def overlapping_links(robot: Robot, stand_out: dict[str, float], legs: Sequence[int] = ()) -> list[tuple[str, str]]:
    """Return nearby pairs of links that often overlap by less than their shapes exceed the meshes.

    Such overlaps would only block the joints. Postures of imitation joints and legs are sampled.

    Args:
        stand_out: link -> excess of its shapes [m].
        legs: joint indices.
    """
    from humanoid_control.collision import CollisionPairs, shape_arrays  # loads the compiler

    rng, moved = np.random.default_rng(0), np.union1d(robot.imitation_joints, np.array(legs, dtype=int))
    pairs = CollisionPairs(shape_arrays(robot.model, robot.shapes), robot.pairs, robot.ancestor_mask)
    links = [_sorted(robot.shapes[k].link for k in pair) for pair in robot.pairs]
    names = sorted(set(links))
    row = {name: k for k, name in enumerate(names)}
    which = np.array([row[pair] for pair in links], dtype=int)
    depth = np.zeros((POSTURES, len(names)))
    low, high = np.maximum(robot.lower, -np.pi)[moved], np.minimum(robot.upper, np.pi)[moved]
    for k in range(POSTURES):
        joints = robot.postures["neutral"].copy()
        joints[moved] = rng.uniform(low, high)
        _place(pairs, robot, joints)
        near = pairs.near(0.0)
        np.maximum.at(depth[k], which[near.pair], -near.distance)
    out = []
    for (a, b), depths in zip(names, depth.T, strict=True):
        hits = depths[depths > 0]
        often = len(hits) > OFTEN * POSTURES and _near_in_tree(robot, a, b)
        if often and np.percentile(hits, DEEP) < stand_out.get(a, 0.0) + stand_out.get(b, 0.0):
            out.append((a, b))
    return out


def crowded_links(robot: Robot, bodies: Bodies, joints: list[int]) -> list[tuple[str, str]]:
    """Return pairs of links with shapes within MARGIN near the neutral posture, well before their meshes.

    Includes nearby links with overlapping meshes, such as a foot in its shank's fork.

    Args:
        joints: indices of the moved joints.
    """
    from humanoid_control.collision import CollisionPairs, shape_arrays  # loads the compiler

    rng, rest = np.random.default_rng(0), robot.postures["neutral"]
    measured = CollisionPairs(shape_arrays(robot.model, robot.shapes), robot.pairs, robot.ancestor_mask)
    low, high = np.maximum(robot.lower, -np.pi)[joints], np.minimum(robot.upper, np.pi)[joints]
    links = [_sorted(robot.shapes[k].link for k in pair) for pair in robot.pairs]
    moved = robot.ancestor_mask[:, robot.iv + np.array(joints)]
    known = [n for n in dict.fromkeys(links) if set(n) <= set(bodies.surfaces)]
    early = {n: 0 for n in known if np.ptp(moved[[_carrier(robot, link) for link in n]], axis=0).any()}
    pair = cache(lambda names: LinkPair(robot, bodies, names))
    for _ in range(POSTURES):
        posture = rest.copy()
        posture[joints] += NEAR * (rng.uniform(low, high) - rest[joints])
        _place(measured, robot, posture)
        near, least = measured.near(MARGIN), dict.fromkeys(early, np.inf)
        for k, d in zip(near.pair, near.distance, strict=True):
            if links[k] in least:
                least[links[k]] = min(least[links[k]], d)
        for names, d in least.items():
            if d < np.inf:
                early[names] += pair(names).clearance(posture[pair(names).moved]) > max(d, 0.0) + MISLEADING
    inside = {n for n in early if _near_in_tree(robot, *n) and len(pair(n).contacts(rest[pair(n).moved]))}
    return sorted(inside | {names for names, count in early.items() if count > CROWDED * POSTURES})


def links_overlapping_at_rest(robot: Robot, far: bool = False) -> list[tuple[str, str]]:
    """Return pairs of links unwatched because their shapes overlap in the neutral posture.

    Args:
        far: pairs with many joints between, else with few.
    """
    parents, watched = robot.model.parents.tolist(), {frozenset(pair) for pair in robot.pairs.tolist()}
    joint = [_carrier(robot, s.link) for s in robot.shapes]
    out = set()
    for j, k in combinations(range(len(joint)), 2):
        a, b = joint[j], joint[k]
        if a == b or parents[a] == b or parents[b] == a or frozenset((j, k)) in watched:
            continue
        if robot.shapes[j].against or robot.shapes[k].against:
            continue
        if (robot.ancestor_mask[a] != robot.ancestor_mask[b])[robot.iv + robot.imitation_joints].any():
            out.add(_sorted((robot.shapes[j].link, robot.shapes[k].link)))
    return sorted(pair for pair in out if _near_in_tree(robot, *pair) != far)


def with_images(links: list[tuple[str, str]], bodies: Bodies) -> list[tuple[str, str]]:
    """Return pairs of links and their mirror images, since sampling may find one side only."""
    images = [pair for pair in map(bodies.images_of, links) if pair is not None]
    return sorted({(min(pair), max(pair)) for pair in links + images})


def _place(pairs: CollisionPairs, robot: Robot, joints: np.ndarray) -> None:
    pin.forwardKinematics(robot.model, robot.data, robot.q(joints))
    pairs.place(*(np.array([getattr(X, part) for X in robot.data.oMi]) for part in ("rotation", "translation")))


def _sorted(pair: Iterable[str]) -> tuple[str, str]:
    first, second = sorted(pair)
    return first, second


def _near_in_tree(robot: Robot, link: str, other: str) -> bool:
    ways = [set(robot.model.supports[_carrier(robot, name)].tolist()) for name in (link, other)]
    return len(ways[0] ^ ways[1]) <= JOINTS_BETWEEN


def _carrier(robot: Robot, link: str) -> int:
    return int(robot.model.frames[robot.model.getFrameId(link, pin.FrameType.BODY)].parentJoint)


# -------- Neutral posture

OUTWARD, TURN, GAP = 0.6, 0.05, 0.01  # [rad] largest turn of an arm, step; [m] mesh distance after it
ROOM, TURN_COSTS = 0.03, 0.02  # [m] clearance of a hanging arm; its price per turn [m/rad]


def parted_posture(robot: Robot, bodies: Bodies, arms: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return angles [rad] of one joint per arm that touches something in the neutral posture, to free it.

    The least turn is chosen, then the largest distance.

    Args:
        arms: joint names of each shoulder.
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


def spread_posture(robot: Robot, arms: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return angles [rad] of one joint per arm close to the body, as clearance for walking.

    The turn minimises the missing part of ROOM, summed over pairs, plus TURN_COSTS per rad.

    Args:
        arms: joint names of each shoulder.
    """
    from humanoid_control.collision import CollisionPairs, shape_arrays  # loads the compiler

    rest, out = robot.postures["neutral"], {}
    joint = [_carrier(robot, s.link) for s in robot.shapes]
    whole = [k for k, s in enumerate(robot.shapes) if not s.against]
    for arm in arms:
        joints = [robot.joint_index(name) for name in arm]
        own = {k for k in whole if robot.ancestor_mask[joint[k], robot.iv + np.array(joints)].all()}
        pairs = np.array([(j, k) for j in sorted(own) for k in whole if k not in own])
        if not len(pairs):
            continue
        measured = CollisionPairs(shape_arrays(robot.model, robot.shapes), pairs, robot.ancestor_mask)
        names = [_sorted(robot.shapes[k].link for k in pair) for pair in pairs]
        row = {name: k for k, name in enumerate(dict.fromkeys(names))}
        which = np.array([row[name] for name in names])

        def missing(
            posture: np.ndarray, measured: CollisionPairs = measured, which: np.ndarray = which, count: int = len(row)
        ) -> float:
            _place(measured, robot, posture)
            least = np.full(count, ROOM)
            np.minimum.at(least, which, measured.all_distances())
            return float((ROOM - least).sum())

        best, lowest = None, missing(rest)
        for k in joints:
            for turn in np.arange(TURN, OUTWARD, TURN):
                for angle in rest[k] + np.array([turn, -turn]):
                    if robot.lower[k] <= angle <= robot.upper[k]:
                        posture = rest.copy()
                        posture[k] = angle
                        if (cost := missing(posture) + TURN_COSTS * turn) < lowest:
                            best, lowest = (k, round(float(angle), 3)), cost
        if best is not None:
            out[robot.joint_names[best[0]]] = best[1]
    return out


def _gap(pairs: list[LinkPair], posture: np.ndarray) -> float:
    return min(pair.clearance(posture[pair.moved]) for pair in pairs)


def _least_turn(robot: Robot, pairs: list[LinkPair], joints: list[int]) -> tuple[int, float] | None:
    """Return joint and angle [rad], or None."""
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
