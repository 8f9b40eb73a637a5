"""What tendons can hold: two antagonists on one joint by hand, Kengoro's upper body beside SciPy, the governor."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import lsq_linear

from humanoid_control.errors import ConfigError, SizeError, UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.robots.tendons import tendon_geometry
from humanoid_control.tendons.control.holdable import (
    HELD,
    HoldableSet,
    ReferenceGovernor,
    drawn_postures,
    holdable_limits,
    losses_by_tendon,
    ranges_held,
    scaled_range,
    tension_range,
)


@pytest.fixture(scope="module")
def kengoro():
    robot = load_robot("kengoro_upper", "fixed")
    return robot, tendon_geometry(robot)


@pytest.fixture
def holdable(kengoro):
    robot, geometry = kengoro
    return HoldableSet(robot.model, geometry, held=robot.q("neutral"))


def test_missed_torque_is_scipys(kengoro, holdable):
    least, most = tension_range(kengoro[1])
    weak = np.minimum(most, 60.0)
    holdable = HoldableSet(kengoro[0].model, kengoro[1], most=weak)
    for theta in drawn_postures(kengoro[1].limits, 10, seed=2):
        margin = holdable.margin(theta)
        theirs = lsq_linear(holdable.G.T, -holdable.gravity(theta), (least, weak), method="bvls", tol=1e-13)
        assert np.linalg.norm(margin.missed) == pytest.approx(np.sqrt(2 * theirs.cost), rel=1e-3, abs=0.01)
        assert margin.slack == pytest.approx((weak - margin.tensions).min())
        assert margin.worst == np.abs(margin.missed).max()


def test_gravity_is_pinocchios_and_a_payload_adds_its_weight(kengoro):
    robot, geometry = kengoro
    hand = robot.model.frames[robot.points["l_wrist"]].name
    bare, loaded = HoldableSet(robot.model, geometry), HoldableSet(robot.model, geometry, payload={hand: 2.0})
    theta = drawn_postures(geometry.limits, 1)[0]
    q = pin.neutral(robot.model)
    q[bare.joints] = theta
    J = pin.computeFrameJacobian(
        robot.model, robot.model.createData(), q, robot.points["l_wrist"], pin.LOCAL_WORLD_ALIGNED
    )
    weight = J[2, bare.joints] * 2.0 * 9.81
    assert loaded.gravity(theta) - bare.gravity(theta) == pytest.approx(weight, abs=1e-9)
    assert np.abs(weight).max() > 1.0
    assert loaded.geometry is geometry and bare.model is robot.model, "the robot's own model is left as it is"


def test_a_smaller_range_and_lighter_pretension_are_held_more(kengoro, holdable):
    robot, geometry = kengoro
    neutral = geometry.theta(robot.q("neutral"))
    rows = ranges_held(holdable, neutral, (0.2, 0.6, 1.0), 100)
    assert [row.held for row in rows] == sorted((row.held for row in rows), reverse=True)
    assert rows[0].held == 1.0
    scale, limits = holdable_limits(holdable, neutral, 0.99, 100)
    assert limits == pytest.approx(scaled_range(geometry.limits, neutral, scale))
    inside = np.abs(holdable.missed(drawn_postures(limits, 100, seed=9))).max(axis=1)
    assert np.mean(inside <= HELD) >= 0.95
    weak = HoldableSet(robot.model, geometry, most=np.full(46, 25.0))
    assert holdable_limits(weak, neutral, 0.99, 100)[0] < scale


def test_a_tendon_that_cannot_be_lost_is_told(kengoro, holdable):
    robot, geometry = kengoro
    neutral = geometry.theta(robot.q("neutral"))
    losses = losses_by_tendon(holdable, neutral, 0.4, 30)
    assert losses["l_serratus_anterior"] > 0.5 and losses["l_brachialis"] <= 0.05
    before = holdable.margin(neutral).worst
    losses_by_tendon(holdable, neutral, 0.2, 2)
    assert holdable.margin(neutral).worst == pytest.approx(before), "ranges are as they were"


def test_the_governor_stops_at_the_last_held_posture_and_goes_on(kengoro):
    robot, geometry = kengoro
    holdable = HoldableSet(robot.model, geometry, most=np.full(46, 50.0), held=robot.q("neutral"))
    neutral = geometry.theta(robot.q("neutral"))
    governor = ReferenceGovernor(holdable, 0.3)
    governor.reset(neutral)
    start = holdable.margin(neutral).worst
    target = np.where(np.arange(20) == geometry.joint_names.index("l_gh_pitch"), geometry.limits[:, 0], neutral)
    seen = []
    for s in np.linspace(0, 1, 200):
        reference = governor.step(neutral + s * (target - neutral)).copy()
        seen.append(holdable.margin(reference).worst)
    assert max(seen) <= max(0.3, start) + 1e-9
    assert governor.joint >= 0, "somebody is named"
    assert np.abs(reference - target).max() > 0.1, "it did not arrive"
    assert np.abs(reference - neutral).max() > 0.05, "it moved as far as it could"
    assert governor.step(neutral) == pytest.approx(neutral) and governor.joint == -1
    off = ReferenceGovernor(holdable, 0.0)
    assert off.step(target) == pytest.approx(target)


def test_bad_input_is_one_line(kengoro, holdable):
    robot, geometry = kengoro
    with pytest.raises(UnknownNameError, match="did you mean l_forearm"):
        HoldableSet(robot.model, geometry, payload={"l_forarm": 1.0})
    with pytest.raises(ConfigError, match="payload at 'head' must be 0 kg or more"):
        HoldableSet(robot.model, geometry, payload={"head": -1.0})
    with pytest.raises(SizeError, match="needs 20 joints"):
        holdable.margin(np.zeros(3))
    with pytest.raises(ConfigError, match="governor must be 0 or more"):
        ReferenceGovernor(holdable, -1.0)
    floating = load_robot("lola")
    with pytest.raises(ConfigError, match="base is fixed"):
        HoldableSet(floating.model, geometry)
