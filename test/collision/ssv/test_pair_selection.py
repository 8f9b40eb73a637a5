"""Pairs found by sampling, on a mechanism whose answers are known."""

import numpy as np
import pinocchio as pin

from humanoid_control.collision.ssv.model import pose_array
from humanoid_control.collision.ssv.pair_selection import (
    ALWAYS,
    AT_REST,
    NEIGHBOURS,
    NEVER,
    SAME_BODY,
    Mechanism,
    Sampling,
    choose_pairs,
)
from humanoid_control.collision.ssv.segments import Segment, Volume

HOME = np.eye(3), np.zeros(3)


def ball(name, link, center, radius=0.1):
    return Segment(name, link, (Volume("ball", "point", radius, (center,)),))


def sliders(lower, upper, rest):
    """Joint k slides body k along x by coordinate k; all start from body 0, the world, over a body that never moves."""
    n = len(lower)
    support = np.zeros((n + 2, n))
    support[2:, :] = np.eye(n)
    J = np.zeros((6, n))
    J[0] = 1.0

    def place(x):
        return pose_array([pin.SE3.Identity()] * 2 + [pin.SE3(np.eye(3), np.array([v, 0, 0])) for v in x]), J

    return Mechanism([0, 0] + [1] * n, support, np.array(lower), np.array(upper), np.array(rest), 0, place)


def test_every_reason_occurs_where_it_should():
    frames = {"world": (0, *HOME), **{f"s{k}": (k + 2, *HOME) for k in range(3)}}
    mechanism = sliders([-1.0, -1.0, -1.0], [1.0, 1.0, 1.0], [-0.5, 0.5, 0.0])
    segments = [
        ball("a", "s0", (0.0, 0.0, 0.0)),
        ball("b", "s1", (0.0, 0.0, 0.0)),
        ball("a_too", "s0", (0.0, 0.5, 0.0)),
        ball("far", "s2", (5.0, 0.0, 0.0)),
        ball("huge", "world", (0.0, 0.0, 30.0), 29.95),
        ball("at_rest", "s2", (-0.5, 0.0, 0.0)),
    ]
    choice = choose_pairs(segments, frames, mechanism)
    reason = {frozenset((x.first, x.second)): x.reason for x in choice.left_out}
    assert reason[frozenset(("a", "a_too"))] == SAME_BODY
    assert reason[frozenset(("a", "far"))] == NEVER
    assert reason[frozenset(("a", "at_rest"))] == AT_REST
    assert ("a", "b") in [(p.first, p.second) for p in choice.pairs]
    assert NEIGHBOURS not in reason.values()
    detail = next(x.detail for x in choice.left_out if {x.first, x.second} == {"a", "far"})
    assert "2800 mm" in detail  # 5 - 1 - 1 - 0.2


def test_what_touches_nearly_always_but_not_at_rest_is_left_out_as_always():
    frames = {f"s{k}": (k + 2, *HOME) for k in range(2)}
    mechanism = sliders([-0.2, -0.2], [0.2, 0.2], [-0.2, 0.2])
    segments = [ball("a", "s0", (0.0, 0.0, 0.0), 0.19), ball("b", "s1", (0.0, 0.0, 0.0), 0.19)]
    (x,) = choose_pairs(segments, frames, mechanism, Sampling(always=0.9)).left_out
    assert x.reason == ALWAYS and x.detail.endswith("% of 2000 random postures")


def test_one_joint_between_is_a_neighbour():
    frames = {"world": (1, *HOME), "s0": (2, *HOME)}
    segments = [ball("a", "world", (0.0, 0.0, 0.0)), ball("b", "s0", (1.0, 0.0, 0.0))]
    choice = choose_pairs(segments, frames, sliders([-1.0], [1.0], [0.0]))
    assert [x.reason for x in choice.left_out] == [NEIGHBOURS] and not choice.pairs


def test_going_downhill_finds_what_few_random_postures_miss():
    """Twenty sliders against each other: no random posture is near the one corner where the balls touch."""
    n = 2
    frames = {f"s{k}": (k + 2, *HOME) for k in range(n)}
    mechanism = sliders([-1.0, 0.9], [1.0, 2.9], [-1.0, 2.9])
    segments = [ball("a", "s0", (0.0, 0.0, 0.0), 0.01), ball("b", "s1", (0.0, 0.0, 0.0), 0.01)]
    choice = choose_pairs(segments, frames, mechanism, Sampling(postures=1))
    assert [(p.first, p.second) for p in choice.pairs] == [("a", "b")]
