"""Planning groups of a robot, as SRDF names them: chains of arms, legs, waist and head, hands, and their unions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from humanoid_control.errors import RobotError
from humanoid_control.robots.description.urdf import UrdfTree, link_of, parse_urdf
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.standard_frames import GAZE, standard_frames

SIDES = ("l", "r")
ARMS, UPPER_BODY, WHOLE_BODY = "arms", "upper_body", "whole_body"
# Joints below a wrist that belong to the hand, though they continue the chain of the arm.
_OF_HAND = re.compile(r"hand|grip|finger|thumb|index|palm|jaw", re.I)


class PlanningGroup(NamedTuple):
    """Group of an SRDF file.

    Attributes:
        base_link: first link of a chain, or empty.
        tip_link: last link of a chain, or empty.
        links: links whose parent joints belong to the group (a hand).
        subgroups: names of groups that it contains.
        joints: moving joints, without followers, of the group and its subgroups.
    """

    name: str
    joints: tuple[str, ...]
    base_link: str = ""
    tip_link: str = ""
    links: tuple[str, ...] = ()
    subgroups: tuple[str, ...] = ()


class EndEffector(NamedTuple):
    """Hand at the end of an arm: all links below `parent_link`, which ends the chain `parent_group`."""

    name: str
    parent_link: str
    group: str
    parent_group: str


@dataclass(frozen=True)
class LinkTree:
    """Links and joints of a URDF.

    Attributes:
        parent: link -> (joint, parent link).
        children: link -> joints below it.
        child: joint -> child link.
        moving: joints that move by a command: neither fixed nor followers.
    """

    parent: dict[str, tuple[str, str]] = field(default_factory=dict)
    children: dict[str, list[str]] = field(default_factory=dict)
    child: dict[str, str] = field(default_factory=dict)
    moving: frozenset[str] = frozenset()

    @classmethod
    def of(cls, tree: UrdfTree) -> LinkTree:
        parent, child, moving = {}, {}, set()
        children: dict[str, list[str]] = {link: [] for link in tree.links}
        for joint in tree.joints:
            name, above, below = joint.get("name", ""), link_of(joint, "parent"), link_of(joint, "child")
            parent[below], child[name] = (name, above), below
            children[above].append(name)
            if joint.get("type") != "fixed" and joint.find("mimic") is None:
                moving.add(name)
        return cls(parent, children, child, frozenset(moving))

    def path(self, link: str) -> list[str]:
        """Return the joints from the root to a link."""
        out = []
        while link in self.parent:
            joint, link = self.parent[link]
            out.append(joint)
        return out[::-1]

    def below(self, link: str) -> list[str]:
        """Return all links below a link."""
        out = []
        for joint in self.children[link]:
            out += [self.child[joint], *self.below(self.child[joint])]
        return out

    def next_moving(self, link: str) -> list[str]:
        """Return the moving joints below a link with only fixed joints between."""
        out = []
        for joint in self.children[link]:
            out += [joint] if joint in self.moving else self.next_moving(self.child[joint])
        return out


def planning_groups(robot: Robot) -> tuple[list[PlanningGroup], list[EndEffector]]:
    """Return the planning groups of a robot, and its hands.

    * `l_arm`, `r_arm`: from the chest to the last link before the fingers. `l_hand`, `r_hand`: all below.
    * `l_leg`, `r_leg`: from the pelvis to the foot. `waist`: between pelvis and chest. `head`: from chest to gaze.
    * `arms`, `upper_body` and `whole_body` contain them.

    Args:
        robot: with a floating base, so that its tree is that of the URDF.

    Raises:
        RobotError: if a wrist is missing, or both arms are one.
    """
    missing = [f"{s}_wrist" for s in SIDES if f"{s}_wrist" not in robot.file.points]
    if missing:
        raise RobotError(
            f"{robot.name} lacks the points {', '.join(missing)}: groups of a MoveIt configuration need both wrists in "
            "a robot file next to the URDF (`humanoid robots map` drafts one)"
        )
    tree = LinkTree.of(parse_urdf(robot.urdf, robot.name))
    hands = [_palm(tree, robot.file.points[f"{s}_wrist"][0]) for s in SIDES]
    feet = [next((f.link for f in robot.feet if f.name == f"{s}_foot"), "") for s in SIDES]
    chest = _shared(tree, hands)
    groups = [_chain(tree, f"{s}_arm", chest, link) for s, link in zip(SIDES, hands, strict=True)]
    if not all(g.joints for g in groups):
        raise RobotError(f"{robot.name}: both wrists are moved by the same joints: there are no two arms to plan for")
    ends = []
    for side, link in zip(SIDES, hands, strict=True):
        if links := tree.below(link):
            joints = tuple(tree.parent[x][0] for x in links if tree.parent[x][0] in tree.moving)
            groups.append(PlanningGroup(f"{side}_hand", joints, links=tuple(links)))
            ends.append(EndEffector(f"{side}_gripper", link, f"{side}_hand", f"{side}_arm"))
    groups.append(PlanningGroup(ARMS, (*groups[0].joints, *groups[1].joints), subgroups=("l_arm", "r_arm")))
    pelvis = _shared(tree, feet) if all(feet) else ""
    groups.append(_chain(tree, "waist", pelvis, chest))
    if GAZE in (frames := standard_frames(robot)):
        groups.append(_chain(tree, "head", chest, frames[GAZE].link))
    if all(feet):
        groups += [_chain(tree, f"{s}_leg", pelvis, link) for s, link in zip(SIDES, feet, strict=True)]
    groups = [g for g in groups if g.joints or g.links]
    for name, parts in ((UPPER_BODY, ("waist", "head", ARMS)), (WHOLE_BODY, (UPPER_BODY, "l_leg", "r_leg"))):
        inside = [g for g in groups if g.name in parts]
        if len(inside) > 1:
            union = dict.fromkeys(joint for g in inside for joint in g.joints)
            groups.append(PlanningGroup(name, tuple(union), subgroups=tuple(g.name for g in inside)))
    return groups, ends


def _palm(tree: LinkTree, link: str) -> str:
    """Return the last link of an arm: follow the chain from the wrist until it ends, branches or reaches the hand."""
    following = tree.next_moving(link)
    while len(following) == 1 and not _OF_HAND.search(following[0]):
        link = tree.child[following[0]]
        following = tree.next_moving(link)
    return link


def _shared(tree: LinkTree, links: list[str]) -> str:
    """Return the body that carries two links: the child link of the last moving joint above both, or the root."""
    one, other = (tree.path(link) for link in links)
    both = [a for a, b in zip(one, other, strict=False) if a == b and a in tree.moving]
    root = next(link for link in tree.children if link not in tree.parent)
    return tree.child[both[-1]] if both else root


def _chain(tree: LinkTree, name: str, base: str, tip: str) -> PlanningGroup:
    """Return a chain between two bodies; from the upper one if the tree is rooted there. Empty without joints.

    SRDF allows chains across the root, but solvers of MoveIt need one that descends: others are lists of joints.
    """
    above, below = set(tree.path(base)), tree.path(tip)
    if not set(tree.path(tip)) - above:  # the tip is the root's side: the chain descends to the base
        base, tip = tip, base
        above, below = set(tree.path(base)), tree.path(tip)
    joints = [j for j in below if j not in above and j in tree.moving]
    if not joints:
        return PlanningGroup(name, ())
    across = [j for j in tree.path(base) if j not in set(below) and j in tree.moving]
    if across:
        return PlanningGroup(name, (*across, *joints))
    first = tree.child[joints[0]]
    return PlanningGroup(name, tuple(joints), tree.parent[first][1], tree.child[joints[-1]])
