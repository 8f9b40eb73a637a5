"""From a dancer to a robot: lengths, directions, invariances."""

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.mocap.body_points import BodyPoints
from humanoid_control.retargeting import POINTS, scale_to_robot
from humanoid_control.robots import CATALOGUE, load_robot
from test.robots_under_test import by_kind

CHAIN = {
    "spine": [(None, 0)],
    "clavicle": [(0, 1), (0, 2)],
    "upper_arm": [(1, 3), (2, 4)],
    "lower_arm": [(3, 5), (4, 6)],
}


@pytest.fixture(scope="module")
def dance():
    return find_body_points(load_clip("dance"))


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
@pytest.mark.parametrize("calibrate", [True, False])
def test_every_segment_has_the_robots_length(name, calibrate, dance):
    robot = load_robot(name, "fixed")
    p, lengths = scale_to_robot(dance, robot, calibrate).positions, robot.segment_lengths()
    origin = robot.point_positions(robot.q("neutral"), ["mid_hip"])[0]
    for segment, pairs in CHAIN.items():
        for a, b in pairs:
            start = origin if a is None else p[:, a]
            assert np.linalg.norm(p[:, b] - start, axis=1) == pytest.approx(lengths[segment], abs=1e-9)


def test_arms_point_where_the_dancers_arms_point(dance):
    robot = load_robot("hrp2", "fixed")
    p = scale_to_robot(dance, robot).positions
    human = dance.in_pelvis()
    for side, (gh, elbow) in {"l": (1, 3), "r": (2, 4)}.items():
        ours = p[:, elbow] - p[:, gh]
        theirs = human[:, dance.names.index(f"{side}_elbow")] - human[:, dance.names.index(f"{side}_shoulder")]
        cosine = np.sum(ours * theirs, axis=1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
        assert cosine.min() > 1 - 1e-12


@pytest.mark.parametrize("name", CATALOGUE)
def test_standing_upright_means_the_robots_own_shoulders(name, dance):
    """After calibration the dancer's rest posture asks nothing of spine and clavicles."""
    robot = load_robot(name, "fixed")
    standing = scale_to_robot(dance, robot).positions[0]
    zero = robot.point_positions(robot.q("zero"), POINTS[:3])
    shift = (
        robot.point_positions(robot.q("neutral"), ["mid_hip"])[0]
        - robot.point_positions(robot.q("zero"), ["mid_hip"])[0]
    )
    assert np.abs(standing[:3] - zero - shift).max() < 0.02


def moved(body, yaw, shift):
    c, s = np.cos(yaw), np.sin(yaw)
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    return BodyPoints(body.name, body.rate, body.names, body.positions @ R.T + shift, body.missing, body.warnings)


@pytest.mark.parametrize(("yaw", "shift"), [(0.7, (0, 0, 0)), (-2.5, (1000.0, -300.0, 2.0)), (np.pi, (0, 5, 0))])
def test_where_the_dancer_stands_and_faces_does_not_matter(yaw, shift, dance):
    robot = load_robot("wabian2", "fixed")
    a = scale_to_robot(dance, robot).positions
    b = scale_to_robot(moved(dance, yaw, shift), robot).positions
    assert np.allclose(a, b, atol=1e-8)


def test_a_mirrored_dancer_gives_mirrored_targets(dance):
    robot = load_robot("wabian2", "fixed")
    names = [("r_" if n[:2] == "l_" else "l_") + n[2:] if n[:2] in ("l_", "r_") else n for n in dance.names]
    order = [dance.names.index(n) for n in names]
    mirrored = BodyPoints(
        dance.name, dance.rate, dance.names, (dance.positions * [1, -1, 1])[:, order], dance.missing, ()
    )
    a = scale_to_robot(dance, robot).positions[:, [0, 2, 1, 4, 3, 6, 5]] * [1, -1, 1]
    assert np.allclose(a, scale_to_robot(mirrored, robot).positions, atol=1e-9)


def test_dancer_of_another_size_gives_the_same_targets(dance):
    robot = load_robot("lola", "fixed")
    small = BodyPoints(dance.name, dance.rate, dance.names, 0.6 * dance.positions, dance.missing, ())
    assert np.allclose(scale_to_robot(dance, robot).positions, scale_to_robot(small, robot).positions, atol=1e-9)


def test_a_segment_without_length_is_named(dance):
    p = dance.positions.copy()
    p[17, dance.names.index("l_elbow")] = p[17, dance.names.index("l_wrist")]
    body = BodyPoints("broken", dance.rate, dance.names, p, dance.missing, ())
    with pytest.raises(ClipError, match="l lower arm has no length in frame 17"):
        scale_to_robot(body, load_robot("hrp2", "fixed"))


@pytest.mark.parametrize("frames", [101, 102])
@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0, 2.5])
def test_another_pace_is_the_same_way_from_the_first_frame_to_the_last_that_fits(speed, frames, dance):
    whole = scale_to_robot(dance, load_robot("hrp2", "fixed"))
    thumbs = np.stack([np.roll(np.eye(3), k, axis=0)[:2] for k in range(frames)])
    t = replace(whole, positions=whole.positions[:frames], body=whole.body[:frames], forearms=thumbs)
    p = t.paced(speed)
    at = np.arange(len(p)) * speed
    assert at[-1] <= frames - 1 < at[-1] + speed and p.rate == t.rate
    assert p.duration == pytest.approx(at[-1] / speed / t.rate)
    for now, then in ((p.positions, t.positions), (p.body, t.body)):
        flat = then.reshape(frames, -1)
        wanted = np.stack([np.interp(at, np.arange(frames), column) for column in flat.T], axis=1)
        assert now.reshape(len(at), -1) == pytest.approx(wanted, abs=1e-12)
    assert np.linalg.norm(p.forearms, axis=2) == pytest.approx(1.0)
