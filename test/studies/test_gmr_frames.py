"""Poses of segments as GMR is given them: elbow axes of straight arms, the pitch of feet, and how smooth they are."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest

from evidence.studies import gmr
from humanoid_control.mocap import BodyPoints, load_body_points

RATE = 100.0
REST = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # columns: left, up, forward, in a world of x forward, z up
SMOOTH = 20_000.0  # [rad/s^3] the most that clips of GMR's authors have
STANDING = {
    "sternum": (0, 0, 1.4), "l_hip": (0, 0.1, 1.0), "r_hip": (0, -0.1, 1.0), "l_knee": (0, 0.1, 0.55),
    "r_knee": (0, -0.1, 0.55), "l_ankle": (0, 0.1, 0.1), "r_ankle": (0, -0.1, 0.1), "l_toe": (0.2, 0.1, 0.05),
    "r_toe": (0.2, -0.1, 0.05), "l_shoulder": (0, 0.2, 1.5), "r_shoulder": (0, -0.2, 1.5),
    "l_elbow": (0, 0.5, 1.5), "r_elbow": (0, -0.5, 1.5), "l_wrist": (0, 0.75, 1.5), "r_wrist": (0, -0.75, 1.5),
}  # fmt: skip


def person(frames: int, **moved: np.ndarray) -> BodyPoints:
    """Return a person in a T whose points named are elsewhere, (3,) or (T, 3)."""
    at = [np.broadcast_to(np.array(moved.get(name, p), float), (frames, 3)) for name, p in STANDING.items()]
    return BodyPoints("person", RATE, tuple(STANDING), np.stack(at, axis=1), np.zeros(len(STANDING)))


def rotations(frames: list, name: str) -> np.ndarray:
    """Rotations (T, 3, 3) of a segment."""
    return np.array([pin.Quaternion(*f[name][1]).matrix() for f in frames])


def jerk(R: np.ndarray, rate: float) -> np.ndarray:
    """Rates (T - 3,) of change of the angular acceleration of a rotation (T, 3, 3) [rad/s^3]."""
    w = np.array([pin.log3(b @ a.T) for a, b in pairwise(R)]) * rate
    return np.linalg.norm(np.diff(w, 2, axis=0), axis=1) * rate**2


def straight_arms(bend: np.ndarray) -> BodyPoints:
    """Return a person who lifts both arms sideways from hanging to overhead and back, elbows bent by (T,) [rad]."""
    t = np.arange(len(bend)) / RATE
    lift = np.radians(80.0) * -np.cos(2 * np.pi * 0.5 * t)
    moved = {}
    for s, sign in (("l", 1.0), ("r", -1.0)):
        shoulder = np.array(STANDING[f"{s}_shoulder"])
        upper = np.stack([np.zeros_like(t), sign * np.cos(lift), np.sin(lift)], axis=1)
        fore = np.cos(bend)[:, None] * upper + np.sin(bend)[:, None] * np.array([1.0, 0, 0])
        moved[f"{s}_elbow"] = shoulder + 0.3 * upper
        moved[f"{s}_wrist"] = moved[f"{s}_elbow"] + 0.25 * fore
    return person(len(t), **moved)


@pytest.mark.parametrize("joint", ["shoulder", "elbow"])
@pytest.mark.parametrize("bend", [0.0, 0.01, 0.1, -0.005])
def test_straight_arms_that_are_lifted_turn_as_the_arms_do(joint, bend):
    body = straight_arms(np.full(400, bend))
    frames = gmr.smplx_frames(body)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        R = rotations(frames, f"{side}_{joint}")
        assert jerk(R, RATE).max() < SMOOTH
        lifts = np.radians(80.0) * -np.cos(2 * np.pi * 0.5 * np.arange(400) / RATE)
        for k in range(0, 400, 37):
            turned = pin.exp3(np.array([sign * lifts[k], 0, 0])) @ REST
            off = np.linalg.norm(pin.log3(turned.T @ R[k]))
            assert off <= abs(bend) + 1e-6


def test_noise_of_a_straight_elbow_does_not_turn_the_arm():
    body = straight_arms(np.full(400, 0.05))
    noisy, elbows = body.positions.copy(), [body.names.index(n) for n in ("l_elbow", "r_elbow")]
    noisy[:, elbows] += 1e-3 * np.random.default_rng(0).standard_normal((400, 2, 3))
    frames, still = gmr.smplx_frames(replace(body, positions=noisy)), gmr.smplx_frames(body)
    for side in ("left", "right"):
        R, R0 = rotations(frames, f"{side}_shoulder"), rotations(still, f"{side}_shoulder")
        assert max(np.linalg.norm(pin.log3(a.T @ b)) for a, b in zip(R0, R, strict=True)) < 0.1


@pytest.mark.parametrize(("side", "s", "sign"), [("left", "l", 1.0), ("right", "r", -1.0)])
def test_a_bent_arm_shows_its_axis_wherever_it_is(side, s, sign):
    """The upper arm hangs, turned outward by 40 degrees, and the forearm is level."""
    hanging = np.array([0.0, 0, -1])
    shoulder = np.array(STANDING[f"{s}_shoulder"])
    twist = pin.exp3(np.array([0.0, 0, sign * np.radians(40.0)]))
    elbow = shoulder + 0.3 * hanging
    moved = {f"{s}_elbow": elbow, f"{s}_wrist": elbow + 0.25 * twist @ np.array([1.0, 0, 0])}
    R = rotations(gmr.smplx_frames(person(50, **moved)), f"{side}_shoulder")
    hung = twist @ pin.exp3(np.array([-sign * 0.5 * np.pi, 0, 0])) @ REST
    assert np.abs(R - hung).max() < 1e-3


def test_an_arm_that_turns_over_between_bends_turns_once_and_smoothly():
    """Bent, straight for a second while the axis turns by 120 degrees, and bent again."""
    T, s = 300, "l"
    angle = np.radians(120.0) * np.clip((np.arange(T) - 100) / 100, 0, 1)
    bend = np.where((np.arange(T) < 100) | (np.arange(T) >= 200), np.radians(60.0), 0.0)
    shoulder = np.array(STANDING[f"{s}_shoulder"])
    axis = np.stack([-np.sin(angle), np.zeros(T), np.cos(angle)], axis=1)
    fore = np.cos(bend)[:, None] * [0.0, 1, 0] + np.sin(bend)[:, None] * np.cross([0.0, 1, 0], axis)
    elbow = np.broadcast_to(shoulder + [0.0, 0.3, 0], (T, 3))
    R = rotations(gmr.smplx_frames(person(T, l_elbow=elbow, l_wrist=elbow + 0.25 * fore)), "left_shoulder")
    y = R[:, :, 1]
    assert np.degrees(np.arccos(np.clip(np.sum(y * axis, axis=1), -1, 1)))[[50, 250]] == pytest.approx(0.0, abs=1.0)
    assert jerk(R, RATE).max() < SMOOTH
    assert np.linalg.norm(np.diff(y, axis=0), axis=1).sum() == pytest.approx(np.radians(120.0), rel=0.1), "one way"


def test_the_dance_is_as_smooth_as_recordings_of_others():
    body = load_body_points("dance")
    frames = gmr.smplx_frames(body)
    for name in frames[0]:
        assert jerk(rotations(frames, name), body.rate).max() < SMOOTH, name


@pytest.mark.parametrize(("side", "s"), [("left", "l"), ("right", "r")])
def test_a_foot_on_its_toes_pitches_and_keeps_its_heading(side, s):
    T = 100
    pitch = np.radians(80.0) * np.clip((np.arange(T) - 40) / 40, 0, 1)
    toe = np.array(STANDING[f"{s}_toe"])
    back = np.array(STANDING[f"{s}_ankle"]) - toe
    turns = [pin.exp3(np.array([0.0, p, 0])) for p in pitch]  # the heel goes up about the toe
    frames = gmr.smplx_frames(person(T, **{f"{s}_ankle": toe + np.array([R @ back for R in turns])}))
    assert rotations(frames, f"{side}_foot") == pytest.approx(np.array([R @ REST for R in turns]), abs=1e-9)


def test_clips_of_fewer_frames_than_a_difference_needs():
    for T in (1, 2):
        frames = gmr.smplx_frames(person(T))
        assert len(frames) == T and rotations(frames, "left_shoulder") == pytest.approx(np.tile(REST, (T, 1, 1)))
