"""Automatic sub-systems: bodies that share coordinates become one tree node.

Schwienbacher 2014, section 2.14 and algorithm 2.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from humanoid_control.errors import RobotError


@dataclass
class TreeNode:
    """Body, or sub-system of bodies, in the pointer tree.

    Attributes:
        name: of the body, or the first member.
        coordinates: of the joint, or of all members.
        p: parent.
        c: first child.
        b: next sibling.
        members: of a sub-system, in list order.
    """

    name: str
    coordinates: tuple[int, ...]
    p: TreeNode | None = field(default=None, repr=False)
    c: TreeNode | None = field(default=None, repr=False)
    b: TreeNode | None = field(default=None, repr=False)
    members: list[TreeNode] = field(default_factory=list)

    def children(self) -> list[TreeNode]:
        out, child = [], self.c
        while child is not None:
            out.append(child)
            child = child.b
        return out

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


def pointer_tree(
    names: Sequence[str], parents: Sequence[int], coordinates: Sequence[tuple[int, ...]]
) -> list[TreeNode]:
    """Return environment and bodies, parents first."""
    root = TreeNode("environment", ())
    nodes = [root]
    for name, parent, own in zip(names, parents, coordinates, strict=True):
        node = TreeNode(name, own, p=nodes[parent + 1])
        brothers = nodes[parent + 1].children()
        if brothers:
            brothers[-1].b = node
        else:
            nodes[parent + 1].c = node
        nodes.append(node)
    return nodes


def with_subsystems(nodes: list[TreeNode], joined: Sequence[set[TreeNode]] = ()) -> list[TreeNode]:
    """Replace each group of coordinate-sharing bodies by a sub-system, in place.

    Args:
        joined: additional groups.

    Raises:
        RobotError: if a group has no common parent.
    """
    for group in _groups(nodes, joined):
        nodes = _join(nodes, group)
    return nodes


def _groups(nodes: list[TreeNode], joined: Sequence[set[TreeNode]]) -> list[list[TreeNode]]:
    """Return connected components of "shares a coordinate", closed under paths."""
    groups: list[set[TreeNode]] = [set(g) for g in joined]
    owner: dict[int, set[TreeNode]] = {}
    for node in nodes[1:]:
        touching = {node}
        for k in node.coordinates:
            touching |= owner.get(k, set())
        for other in touching:
            for k in other.coordinates:
                owner[k] = touching
    shared = {id(g): g for g in owner.values() if len(g) > 1}
    groups = _merged(groups + list(shared.values()))
    while True:
        grown = _merged([_closed(g) | _sharing(_closed(g), owner) for g in groups])
        if {frozenset(g) for g in grown} == {frozenset(g) for g in groups}:
            break
        groups = grown
    rank = {node: k for k, node in enumerate(nodes)}
    ordered = [sorted(g, key=rank.__getitem__) for g in groups]
    return sorted(ordered, key=lambda g: rank[g[0]])


def _merged(groups: list[set[TreeNode]]) -> list[set[TreeNode]]:
    out: list[set[TreeNode]] = []
    for group in groups:
        for other in [o for o in out if o & group]:
            group = group | other
            out.remove(other)
        out.append(set(group))
    return out


def _sharing(group: set[TreeNode], owner: dict[int, set[TreeNode]]) -> set[TreeNode]:
    return set().union(*(owner[k] for n in group for k in n.coordinates))


def _closed(group: set[TreeNode]) -> set[TreeNode]:
    lines = [_ancestors(node) for node in group]
    common = set.intersection(*(set(line) for line in lines))
    return group | {a for line in lines for a in line if a not in common}


def _ancestors(node: TreeNode) -> list[TreeNode]:
    out: list[TreeNode] = []
    above: TreeNode | None = node
    while above is not None and above.p is not None:
        out.append(above)
        above = above.p
    return out


def _join(nodes: list[TreeNode], group: list[TreeNode]) -> list[TreeNode]:
    inside = set(group)
    outside = {m.p for m in group if m.p not in inside}
    if len(outside) != 1:
        raise RobotError(f"the loop of {', '.join(m.name for m in group)} has no common parent")
    (p,) = outside
    assert p is not None
    first = [m for m in p.children() if m in inside]
    _contiguous(first[0], inside)
    coordinates = tuple(dict.fromkeys(k for m in group for k in m.coordinates))
    s = TreeNode(group[0].name, coordinates, p=p, c=first[0], members=group)
    last = first[0]
    while last.b is not None and last.b in inside:
        last = last.b
    s.b = last.b
    last.b = None
    if p.c is first[0]:
        p.c = s
    else:
        before = next(c for c in p.children() if c.b is first[0])
        before.b = s
    for m in first:
        m.p = s
    at = min(nodes.index(m) for m in group)
    kept = [n for n in nodes if n not in inside]
    kept.insert(at, s)
    return kept


def _contiguous(first: TreeNode, inside: set[TreeNode]) -> None:
    """Make members adjacent siblings (corrected algorithm 2.5)."""
    b1: TreeNode | None = first
    while b1 is not None and b1 in inside:
        if b1.b is not None and b1.b not in inside:
            gap = b1.b
            b2: TreeNode = gap
            while b2.b is not None and b2.b not in inside:
                b2 = b2.b
            run = b2.b
            if run is not None:
                b3 = run
                while b3.b is not None and b3.b in inside:
                    b3 = b3.b
                b1.b, b2.b, b3.b = run, b3.b, gap
        b1 = b1.b
