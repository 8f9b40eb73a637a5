"""Observations: every kind of term against a computation of its own, histories against plain lists, clocks, motions."""

from collections import deque
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.policy.formats.parts import make_term
from humanoid_control.policy.model import (
    BOTH_PI,
    FILL_FIRST,
    FILL_ZERO,
    NEWEST_FIRST,
    OLDEST_FIRST,
    PER_FRAME,
    PER_TERM,
    RUNNING,
    SILENT,
    ZERO,
    Block,
    GaitSignal,
    Input,
    Output,
    PolicyModel,
)
from humanoid_control.policy.observation import GaitClock, ObservationBuilder, rest_sensed
from humanoid_control.policy.reference import EmbeddedReference, Motion, MotionFrame, MotionReference
from humanoid_control.policy.terms import KINDS, Sensed, kind_of, size_of

JOINTS = ("a", "b", "c")


def model_of(blocks, **changed):
    """A policy of three joints whose observation is made of these blocks."""
    n = len(JOINTS)
    size = sum(b.size for b in blocks)
    arrays = {k: np.zeros(n) for k in ("default", "scale", "offset", "kp", "kd")}
    given = {"path": None, "form": "", "name": "", "network": None, "outputs": (), "joints": JOINTS, "acted": JOINTS}
    return PolicyModel(inputs=(Input("obs", (1, size), tuple(blocks)),), period=0.02, **{**given, **arrays, **changed})


def sensed(rng):
    """Values at random, all of which differ."""
    R = pin.Quaternion(*(lambda q: q / np.linalg.norm(q))(rng.normal(size=4)))
    return Sensed(
        q=rng.normal(size=3),
        v=rng.normal(size=3),
        rest=rng.normal(size=3),
        gravity=rng.normal(size=3),
        angular_velocity=rng.normal(size=3),
        linear_velocity=rng.normal(size=3),
        orientation=R.coeffs(),
        roll=rng.normal(),
        pitch=rng.normal(),
        yaw=rng.normal(),
        command=rng.normal(size=3),
        heading=rng.normal(),
        height=rng.normal(),
        action=rng.normal(size=3),
        target=rng.normal(size=3),
        phases=rng.normal(size=2),
        progress=rng.uniform(),
        height_command=rng.normal(),
        reference={
            "joint_pos": rng.normal(size=3), "joint_vel": rng.normal(size=3), "anchor_pos_b": rng.normal(size=3),
            "anchor_ori_b": rng.normal(size=6), "base_lin_vel_xy": rng.normal(size=2),
            "base_height": rng.normal(size=1), "roll_pitch": rng.normal(size=2), "yaw_rate": rng.normal(size=1),
        },
    )  # fmt: skip


EXPECTED = {
    "base_ang_vel": lambda s: s.angular_velocity,
    "projected_gravity": lambda s: s.gravity,
    "base_lin_vel": lambda s: s.linear_velocity,
    "base_height": lambda s: [s.height],
    "base_quat_wxyz": lambda s: [s.orientation[3], *s.orientation[:3]],
    "base_quat_xyzw": lambda s: s.orientation,
    "roll_pitch": lambda s: [s.roll, s.pitch],
    "joint_pos_rel": lambda s: [s.q[0] - s.rest[0], s.q[1] - s.rest[1], s.q[2] - s.rest[2]],
    "joint_pos_abs": lambda s: s.q,
    "joint_vel": lambda s: s.v,
    "last_action": lambda s: s.action,
    "velocity_command": lambda s: s.command,
    "command_lin_vel": lambda s: s.command[:2],
    "command_ang_vel": lambda s: [s.command[2]],
    "command_moves": lambda s: [1.0],
    "command_waist": lambda s: [0.0, 0.0, 0.0],
    "heading": lambda s: [s.heading - s.yaw],
    "joint_target": lambda s: s.target,
    "sin_phase": lambda s: np.sin(s.phases),
    "cos_phase": lambda s: np.cos(s.phases),
    "phase": lambda s: [np.sin(s.phases[0]), np.cos(s.phases[0])],
    "motion_phase": lambda s: [s.progress],
    "command_height": lambda s: [s.height_command],
    "reference_motion": lambda s: [*s.reference["joint_pos"], *s.reference["joint_vel"]],
    "reference_joint_pos": lambda s: s.reference["joint_pos"],
    "reference_joint_vel": lambda s: s.reference["joint_vel"],
    "reference_anchor_pos": lambda s: s.reference["anchor_pos_b"],
    "reference_anchor_ori": lambda s: s.reference["anchor_ori_b"],
    "reference_base_lin_vel_xy": lambda s: s.reference["base_lin_vel_xy"],
    "reference_base_height": lambda s: s.reference["base_height"],
    "reference_roll_pitch": lambda s: s.reference["roll_pitch"],
    "reference_yaw_rate": lambda s: s.reference["yaw_rate"],
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_every_kind_of_term_is_what_it_says(kind):
    s = sensed(np.random.default_rng(3))
    size = size_of(kind, 3, 3) or 2
    builder = ObservationBuilder(model_of([Block((make_term(kind, kind, JOINTS, size),))]))
    assert np.allclose(builder.build(s)["obs"][0], EXPECTED[kind](s), atol=1e-6)
    assert kind_of(kind) == kind and all(kind_of(name) == kind for name in KINDS[kind].names)


def test_no_kind_is_left_out_of_these_tests():
    assert set(EXPECTED) == {k for k, row in KINDS.items() if not row.refused}
    assert {k for k, row in KINDS.items() if row.refused} == {"height_scan"}


def test_joints_of_a_term_are_taken_by_name():
    s = sensed(np.random.default_rng(4))
    block = Block((make_term("v", "joint_vel", ("c", "a"), 2, np.array([2.0, 3.0])),))
    assert np.allclose(ObservationBuilder(model_of([block])).build(s)["obs"][0], [2 * s.v[2], 3 * s.v[0]], atol=1e-6)


def test_scale_comes_before_the_clip():
    s = replace(sensed(np.random.default_rng(5)), command=np.array([3.0, -3.0, 0.1]))
    block = Block((make_term("c", "velocity_command", (), 3, np.array([2.0, 0.5, 1.0]), (-2.0, 2.0)),))
    assert np.allclose(ObservationBuilder(model_of([block])).build(s)["obs"][0], [2.0, -1.5, 0.1])


def naive(block, frames):
    """A block after some frames (lists of one array a term), by plain lists."""
    longest = max(t.history for t in block.terms)
    first = frames[0] if block.fill == FILL_FIRST else [np.zeros_like(f) for f in frames[0]]
    store = deque([first] * longest, maxlen=longest)
    for frame in frames[:-1] if block.delayed else frames:
        store.append(frame)
    rows = list(store)
    if block.layout == PER_FRAME:
        order = rows if block.order == OLDEST_FIRST else rows[::-1]
        return np.concatenate([np.concatenate(frame) for frame in order])
    out = []
    for k, term in enumerate(block.terms):
        own = [frame[k] for frame in rows[-term.history :]]
        out += own if block.order == OLDEST_FIRST else own[::-1]
    return np.concatenate(out)


@pytest.mark.parametrize("layout", [PER_TERM, PER_FRAME])
@pytest.mark.parametrize("order", [OLDEST_FIRST, NEWEST_FIRST])
@pytest.mark.parametrize("delayed", [False, True])
@pytest.mark.parametrize("fill", [FILL_FIRST, FILL_ZERO])
def test_histories_are_those_of_plain_lists(layout, order, delayed, fill):
    lengths = (3, 3) if layout == PER_FRAME else (3, 5)
    terms = (
        make_term("w", "base_ang_vel", (), 3, 0.25, history=lengths[0]),
        make_term("v", "joint_vel", JOINTS, 3, 0.05, history=lengths[1]),
    )
    block = Block(terms, layout, order, delayed, fill)
    builder, rng, frames = ObservationBuilder(model_of([block])), np.random.default_rng(6), []
    for _ in range(2):
        for _ in range(8):
            s = sensed(rng)
            frames.append([0.25 * s.angular_velocity, 0.05 * s.v])
            assert np.allclose(builder.build(s)["obs"][0], naive(block, frames), atol=1e-6)
        builder.reset()
        frames = []


def test_blocks_that_share_terms_share_their_values():
    term = make_term("w", "base_ang_vel", (), 3)
    blocks = [
        Block((term,)),
        Block((replace(term, history=2),), PER_FRAME, delayed=True, fill=FILL_ZERO),
        Block((term,)),
    ]
    builder, rng = ObservationBuilder(model_of(blocks)), np.random.default_rng(7)
    one, two = sensed(rng), sensed(rng)
    first, second = builder.build(one)["obs"][0], builder.build(two)["obs"][0]
    a, b, none = one.angular_velocity, two.angular_velocity, np.zeros(3)
    assert np.allclose(first, [*a, *none, *none, *a], atol=1e-6)
    assert np.allclose(second, [*b, *none, *a, *b], atol=1e-6) and len(builder.vector) == 3


# -------- Clocks


def test_a_clock_rests_and_begins_with_its_phases():
    clock = GaitClock(GaitSignal(1.0), 0.02)
    assert np.array_equal(clock.phases, [np.pi, np.pi])
    clock.advance(np.zeros(3))
    assert np.array_equal(clock.phases, [np.pi, np.pi])
    clock.advance(np.array([0.5, 0.0, 0.0]))
    assert np.array_equal(clock.phases, [0.0, np.pi])
    for k in range(1, 120):
        clock.advance(np.array([0.0, 0.0, 0.2]))
        turned = 2 * np.pi * 0.02 * k
        assert np.allclose(np.exp(1j * clock.phases), np.exp(1j * np.array([turned, turned + np.pi])))
        assert (np.abs(clock.phases) <= np.pi + 1e-9).all()
    clock.advance(np.array([0.009, 0.0, 0.0]))
    assert np.array_equal(clock.phases, [np.pi, np.pi])


def test_a_silent_clock_is_no_phase():
    """Sine and cosine are 0, which no phase gives."""
    clock = GaitClock(GaitSignal(0.8, (0.0,), SILENT), 0.02)
    clock.advance(np.zeros(3))
    s = sensed(np.random.default_rng(3))
    s.phases = clock.phases
    names = ("sin_phase", "cos_phase", "phase")
    builder = ObservationBuilder(model_of([Block(tuple(make_term(n, n, JOINTS, 2) for n in names))]))
    assert np.array_equal(builder.build(s)["obs"][0], np.zeros(6))
    clock.advance(np.array([0.3, 0.0, 0.0]))
    assert clock.phases[0] == 0.0, "it begins with the first step"


@pytest.mark.parametrize(("rest", "expected"), [(BOTH_PI, [np.pi, np.pi]), (ZERO, [0, 0]), (RUNNING, [0.0, np.pi])])
def test_clocks_rest_as_their_policy_wants(rest, expected):
    clock = GaitClock(GaitSignal(0.8, rest=rest), 0.02)
    assert np.allclose(clock.phases, expected)
    clock.advance(np.zeros(3))
    assert np.allclose(clock.phases, expected) == (rest != RUNNING)


# -------- Motions


def turned(yaw):
    return pin.rpy.rpyToMatrix(0.0, 0.0, yaw)


def embedded(frames):
    """A tracker's motion with one link besides the anchor."""
    outputs = (
        Output("q", (1, 3), "reference.joint_pos"),
        Output("v", (1, 3), "reference.joint_vel"),
        Output("p", (1, 6), "reference.body_pos"),
        Output("R", (1, 8), "reference.body_quat_wxyz"),
    )
    reference = EmbeddedReference(model_of([], outputs=outputs, anchor="torso", bodies=("pelvis", "torso")))
    R, p = frames
    x, y, z, w = pin.Quaternion(R).coeffs()
    both = {"p": np.array([0, 0, 0, *p]), "R": np.array([1, 0, 0, 0, w, x, y, z])}
    reference.take({"q": np.arange(3.0), "v": np.ones(3), **both})
    return reference


@pytest.mark.parametrize("yaw", [0.0, 0.7, -2.5])
def test_a_motion_is_aligned_with_the_robot_where_it_begins(yaw):
    """Wherever robot and motion begin on the floor, and whichever way they look, only what differs is seen."""
    tilt, place = pin.rpy.rpyToMatrix(0.1, 0.2, 0.0), np.array([0.4, -0.2, 0.9])
    reference = embedded((turned(1.1) @ tilt, np.array([5.0, 6.0, 0.9])))
    seen = reference.channels(turned(yaw) @ tilt, place)
    assert np.allclose(seen["anchor_ori_b"], [1, 0, 0, 1, 0, 0]) and np.allclose(seen["anchor_pos_b"], 0.0)
    later = turned(yaw) @ pin.rpy.rpyToMatrix(0.1, 0.2, 0.3)
    R = later.T @ turned(yaw) @ tilt
    moved = place + turned(yaw) @ np.array([0.1, 0.0, -0.05])
    seen = reference.channels(later, moved)
    assert np.allclose(seen["anchor_ori_b"], [R[0, 0], R[0, 1], R[1, 0], R[1, 1], R[2, 0], R[2, 1]])
    assert np.allclose(seen["anchor_pos_b"], later.T @ (place - moved))


def test_a_motion_that_is_given_begins_idle_and_is_blended_to():
    T, rate = 200, 50.0
    t = np.arange(T) / rate
    yaw = 0.4 * t
    position = np.stack([np.cumsum(0.6 * np.cos(yaw)) / rate, np.cumsum(0.6 * np.sin(yaw)) / rate, np.full(T, 0.7)], 1)
    quaternion = np.array([pin.Quaternion(turned(a)).coeffs() for a in yaw])
    reference = MotionReference(model_of([]), height=0.8)
    reference.follow(Motion(rate, position, quaternion, np.full((T, 3), 0.5)))
    begin = reference.channels(np.eye(3), np.zeros(3))
    assert np.allclose(begin["base_height"], 0.8) and np.allclose(begin["joint_pos"], 0.0)
    reference.advance(0.5)
    assert np.allclose(reference.channels(np.eye(3), np.zeros(3))["base_height"], 0.75, atol=1e-6)
    reference.advance(1.0)
    seen = reference.channels(np.eye(3), np.zeros(3))
    assert np.allclose(seen["base_lin_vel_xy"], [0.6, 0.0], atol=0.01) and np.allclose(seen["yaw_rate"], 0.4, atol=1e-3)
    assert np.allclose(seen["roll_pitch"], 0.0) and np.allclose(seen["joint_pos"], 0.5) and not reference.ended
    reference.advance(10.0)
    assert reference.ended


@pytest.mark.parametrize(("roll", "pitch"), [(0.0, -0.55), (0.3, 0.2), (-0.7, 0.9)])
def test_motions_lean_as_their_root_or_anchor_link(roll, pitch):
    R = pin.rpy.rpyToMatrix(roll, pitch, 1.3)
    reference = MotionReference(model_of([]))
    reference.give(MotionFrame(np.zeros(2), 0.8, roll, pitch, 0.0, np.zeros(3)))
    reference.advance(2.0)
    assert np.allclose(reference.leaning(np.eye(3)), R[2])
    R_root_torso = pin.rpy.rpyToMatrix(0.1, -0.4, 0.6)
    assert np.allclose(embedded((R @ R_root_torso, np.zeros(3))).leaning(R_root_torso), R[2])
    joints_only = EmbeddedReference(model_of([], outputs=(Output("q", (1, 3), "reference.joint_pos"),), anchor="torso"))
    joints_only.take({"q": np.zeros(3)})
    assert np.array_equal(joints_only.leaning(R_root_torso), [0.0, 0.0, 1.0]), "upright where the motion does not say"


def test_at_rest_gravity_points_down_and_nothing_moves():
    model = model_of([])
    s = rest_sensed(model)
    assert np.array_equal(s.gravity, [0, 0, -1]) and not s.v.any() and not s.command.any()
    assert np.array_equal(s.q, model.default)
