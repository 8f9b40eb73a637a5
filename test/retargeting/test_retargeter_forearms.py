"""The turn of the forearms as a second input: found in the clip, followed by the robot, without a price in position."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.retargeting import POINTS, Retargeter, RetargetSettings, Targets, retarget_clip, scale_to_robot
from humanoid_control.robots import load_robot
from test.robots_under_test import by_kind

SIDES = ("l", "r")


def thumb_side(robot, joints):
    """(2, 3) where the thumb side of each forearm points, from the link that carries the wrist."""
    links = [robot.model.getFrameId(f"{s}_forearm") for s in SIDES]
    pin.framesForwardKinematics(robot.model, robot.data, robot.q(joints))
    return np.array([robot.data.oMf[k].rotation[:, 0] for k in links])  # x forward in zero, as on all our robots


@pytest.mark.parametrize("name", by_kind(["armar3", "hrp2", "suralp", "wabian2", "we4rii", "recommended"]))
def test_the_robots_own_turning_forearms_are_recovered(name):
    robot = load_robot(name, "fixed")
    turn = [robot.joint_index(f"{s}_forearm_pronation") for s in SIDES]
    k = np.arange(200)
    angles = 0.8 * np.stack([np.sin(k / 50), np.cos(k / 40) - 1], axis=1)
    joints = np.tile(robot.postures["neutral"], (len(k), 1))
    joints[:, turn] = angles
    points = np.array([robot.point_positions(robot.q(q), POINTS) for q in joints])
    thumbs = np.array([thumb_side(robot, q) for q in joints])
    targets = Targets("turning", 100.0, points, points, POINTS, thumbs)
    settings = RetargetSettings(posture=1e-3, smoothing=0.0, velocity_scale=3.0)
    followed = retarget_clip(targets, robot, settings)
    assert np.abs(followed.positions[:, turn] - angles)[20:].max() < 0.05
    without = retarget_clip(targets, robot, RetargetSettings(posture=1e-3, forearms=0.0))
    assert np.ptp(without.positions[:, turn], axis=0).max() < 0.1, "nothing else turns the forearms"


@pytest.mark.parametrize("clip", ["dance_markers/dance1.trc", "vicon_c3d/PiG_Motion-FlatFoot-One.c3d"])
def test_real_forearms_are_followed_at_no_price(clip, mocap):
    robot = load_robot("wabian2", "fixed")
    targets = scale_to_robot(find_body_points(load_clip(mocap(clip))), robot)
    assert targets.forearms is not None
    assert np.linalg.norm(targets.forearms, axis=2) == pytest.approx(1.0)
    lower_arm = targets.positions[:, 5:7] - targets.positions[:, 3:5]
    assert np.abs(np.sum(lower_arm * targets.forearms, axis=2)).max() < 1e-9
    off = {}
    for lever in (0.0, 0.05):
        t = retarget_clip(targets, robot, RetargetSettings(forearms=lever))
        cosines = [np.sum(thumb_side(robot, q) * f, axis=1) for q, f in zip(t.positions, targets.forearms, strict=True)]
        off[lever] = np.degrees(np.arccos(np.clip(cosines, -1, 1))).mean(), t.errors.mean()
    assert off[0.05][0] < 5 < 15 < off[0.0][0]
    assert off[0.05][1] < off[0.0][1] + 2e-4


def test_clips_and_robots_that_cannot_show_it_do_without():
    dance = find_body_points(load_clip("dance"))
    assert scale_to_robot(dance, load_robot("hrp2", "fixed")).forearms is None
    lola = load_robot("lola", "fixed")
    assert Retargeter(lola, forearms=True).lever == 0.0, "Lola cannot turn its forearms"
    hrp2 = load_robot("hrp2", "fixed")
    with pytest.raises(ClipError, match="does not show the forearm rotation"):
        Retargeter(hrp2, forearms=True).solve(scale_to_robot(dance, hrp2))
