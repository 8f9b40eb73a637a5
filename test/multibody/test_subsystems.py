"""Automatic sub-systems: order of the list, brothers, algorithm 2.5, and what is refused."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanoid_control.errors import HumanoidError, RobotError, UnknownNameError
from humanoid_control.multibody import (
    ENVIRONMENT,
    Body,
    ForwardDynamics,
    Inertia,
    Joint,
    Model,
    free,
    prismatic,
    quadratic,
    revolute,
)
from humanoid_control.multibody.couplings import HINGE_SCREW, LINEAR
from humanoid_control.multibody.layout import PRISMATIC, REVOLUTE
from humanoid_control.multibody.subsystems import TreeNode, _contiguous, pointer_tree, with_subsystems


@st.composite
def trees(draw):
    """Parents of up to 14 bodies (-1: environment), and coordinates that some share."""
    n = draw(st.integers(1, 14))
    parents = [draw(st.integers(-1, k - 1)) for k in range(n)]
    own = [tuple(dict.fromkeys(draw(st.lists(st.integers(0, 2 * n), min_size=1, max_size=3)))) for _ in range(n)]
    return parents, own


def flat(nodes):
    """All nodes reached by children and brothers, depth first, members too."""
    out = []

    def walk(node):
        while node is not None:
            out.append(node)
            walk(node.c)
            node = node.b

    walk(nodes[0])
    return out


@given(trees())
def test_conversion_keeps_the_order_of_the_list_and_makes_brothers_of_members(tree):
    parents, own = tree
    names = [str(k) for k in range(len(parents))]
    before = pointer_tree(names, parents, own)
    brothers = {id(n): [c.name for c in n.children()] for n in before}
    single = list(before)
    after = with_subsystems(before)
    place = {}
    for k, node in enumerate(after):
        place[node] = k
        for m in node.members:
            assert m not in place
            place[m] = k
    assert {m.name for m in place} - {"environment"} == set(names), "no body is lost"
    sets = [set(n.coordinates) for n in after]
    assert sum(map(len, sets)) == len(set().union(*sets)), "no coordinate is left in two nodes"
    for node in after[1:]:
        assert place[node.p] < place[node], "a parent comes before its child"
        numbers = [int(m.name) for m in node.members]
        assert numbers == sorted(numbers) and (len(numbers) != 1)
        if not numbers:
            continue
        inside = {str(k) for k in numbers}
        outside = {str(parents[k]) for k in numbers} - inside
        assert len(outside) == 1, "one common parent"
        for k in numbers:  # nobody is in the group who neither shares nor lies between
            others = [i for i in numbers if i != k]
            shares = any(set(own[k]) & set(own[i]) for i in others)
            carries = any(parents[i] == k for i in others)
            assert shares or carries
        first = node.c
        run = []
        while first is not None:  # members on the first level are one row of brothers
            run.append(first)
            first = first.b
        assert {m.name for m in run} == {str(k) for k in numbers if str(parents[k]) in outside}
        assert all(m.p is node for m in run)
    assert len(set(map(id, flat(after)))) == len(flat(after)) == len(names) + 1 + sum(1 for n in after if n.members)
    for node in single:  # the order of those who stay, and of those who leave, is as it was
        kept = [c.name for c in node.children() if not c.members]
        assert kept == [name for name in brothers[id(node)] if name in kept]


@given(st.lists(st.booleans(), min_size=1, max_size=12).filter(any))
def test_algorithm_2_5_moves_strangers_behind_and_keeps_both_orders(inside):
    nodes = [TreeNode(str(k), ()) for k in range(len(inside))]
    for a, b in pairwise(nodes):
        a.b = b
    members = {n for n, m in zip(nodes, inside, strict=True) if m}
    first = next(n for n in nodes if n in members)
    before = nodes[: nodes.index(first)]
    _contiguous(first, members)
    out, at = [], nodes[0]
    while at is not None:
        out.append(at)
        at = at.b
    assert out == before + [n for n in nodes if n in members] + [n for n in nodes[len(before) :] if n not in members]


def test_the_example_of_the_source_comes_out_as_printed():
    """M1 X Y M2 M3 Z -> M1 M2 M3 X Y Z."""
    names, own = ["M1", "X", "Y", "M2", "M3", "Z"], [(1,), (2,), (3,), (1,), (1,), (4,)]
    after = with_subsystems(pointer_tree(names, [-1] * 6, own))
    assert [[m.name for m in n.members] or n.name for n in after] == ["environment", ["M1", "M2", "M3"], "X", "Y", "Z"]
    assert [c.name for c in after[0].children()] == ["M1", "X", "Y", "Z"]
    assert [c.name for c in after[1].children()] == ["M1", "M2", "M3"]


def body(name, parent, joint, mass=1.0, **more):
    return Body(name, parent, joint, Inertia(mass, np.zeros(3), np.eye(3)), **more)


def both(*c):
    return quadratic(c, 0.0, np.ones(len(c)), np.eye(len(c)))


def test_a_loop_of_branches_of_the_environment_hangs_on_the_environment():
    model = Model([body("a", ENVIRONMENT, revolute("q")), body("b", ENVIRONMENT, both("q"))])
    assert model.loops[0].bodies == ("a", "b") and model.nodes[1].p is model.nodes[0]


REFUSED = [
    ("passes through a free joint", lambda: Model([
        body("base", ENVIRONMENT, free("base")), body("a", "base", revolute("q")), body("b", ENVIRONMENT, both("q"))])),
    ("free joint cannot share", lambda: Model([
        body("base", ENVIRONMENT, free("base")), body("a", "base", both("base.vx"))])),
    ("two bodies are named 'a'", lambda: Model([
        body("a", ENVIRONMENT, revolute("p")), body("a", ENVIRONMENT, revolute("q"))])),
    ("unknown parent 'aa': did you mean a?", lambda: Model([
        body("a", ENVIRONMENT, revolute("p")), body("b", "aa", revolute("q"))])),
    ("unknown parent 'b'", lambda: Model([body("a", "b", revolute("p")), body("b", ENVIRONMENT, revolute("q"))])),
    ("coordinates that no body uses", lambda: Model([body("a", ENVIRONMENT, revolute("p"))], ["p", "x"])),
    ("coordinate 'p' is listed twice", lambda: Model([
        body("a", ENVIRONMENT, revolute("p")), body("b", "a", revolute("q"))], ["p", "p", "q"])),
    ("must not be negative", lambda: body("a", ENVIRONMENT, revolute("p"), mass=-1.0)),
    ("must not be negative", lambda: Body("a", ENVIRONMENT, revolute("p"), Inertia(1, np.zeros(3), -np.eye(3)))),
    ("its mass is not a number", lambda: body("a", ENVIRONMENT, revolute("p"), mass=np.nan)),
    ("its centre of gravity is not a number", lambda: Body(
        "a", ENVIRONMENT, revolute("p"), Inertia(1, np.array([0, np.inf, 0]), np.eye(3)))),
    ("its inertia is not symmetric", lambda: Body(
        "a", ENVIRONMENT, revolute("p"), Inertia(1, np.zeros(3), np.eye(3) + np.eye(3, k=1)))),
    ("its r is not a number", lambda: body("a", ENVIRONMENT, revolute("p"), r=np.full(3, np.nan))),
    ("is not a rotation", lambda: body("a", ENVIRONMENT, revolute("p"), A=np.diag([1.0, 1.0, -1.0]))),
    ("is not a rotation", lambda: body("a", ENVIRONMENT, revolute("p"), A=np.full((3, 3), np.nan))),
    ("needs a coupling", lambda: Model([body("a", ENVIRONMENT, Joint(REVOLUTE, ("p", "q")))])),
    ("1 to 6 coordinates", lambda: Model([body("a", ENVIRONMENT, Joint(PRISMATIC, ()))])),
    ("linear coupling has 1 coordinate and 2 parameters, not 2 and 2", lambda: Joint(
        REVOLUTE, ("p", "q"), LINEAR, (1.0, 0.0))),
    ("hinge screw coupling has 1 coordinate and 7 parameters, not 1 and 2", lambda: Joint(
        REVOLUTE, ("p",), HINGE_SCREW, (1.0, 0.0))),
    ("a parameter of its coupling is not a number", lambda: quadratic(["p"], np.nan, [1.0], np.eye(1))),
    ("unknown coupling: 99", lambda: Joint(REVOLUTE, ("p",), 99)),
]  # fmt: skip


@pytest.mark.parametrize("words, make", REFUSED, ids=lambda x: x if isinstance(x, str) else "")
def test_bad_models_are_refused_in_one_line_that_says_what_and_where(words, make):
    with pytest.raises(HumanoidError) as e:
        make()
    assert words in str(e.value) and "\n" not in str(e.value)
    assert isinstance(e.value, RobotError | UnknownNameError)


def test_the_order_of_coordinates_can_be_chosen_and_changes_nothing_else():
    bodies = [body("a", ENVIRONMENT, revolute("p")), body("b", "a", prismatic("q"), r=np.array([0.1, 0.2, 0]))]
    one = ForwardDynamics(Model(bodies))(np.array([0.1, 0.2]), np.array([1.0, 2.0]))
    other = ForwardDynamics(Model(bodies, ["q", "p"]))(np.array([0.2, 0.1]), np.array([2.0, 1.0]))
    assert np.array_equal(one, other[::-1])
