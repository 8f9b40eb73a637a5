"""The task of a walk: rows are the derivative of the error, free joints, and mistakes in one line."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError, RobotError, UnknownNameError
from humanoid_control.numerics.butterworth import low_pass
from humanoid_control.robots import load_robot
from humanoid_control.walking import GaitSettings, WalkTask, leg_length
from humanoid_control.walking.balance_tasks import walking_settings
from humanoid_control.walking.planning.preview_control import preview_gains
from humanoid_control.walking.walk_task import EXTENSION, yaw_rotation

DT = 0.008
STEP = GaitSettings(0.4, 0.8)


@pytest.fixture(scope="module")
def lola():
    return load_robot("lola", "floating")


def test_rows_are_the_derivative_of_the_error(lola):
    walk = WalkTask(lola, STEP, "arms+waist", DT)
    q, eps = walk.start(lola), 1e-6
    rng = np.random.default_rng(1)

    def error(at):
        pin.computeJointJacobians(lola.model, lola.data, at)
        pin.updateFramePlacements(lola.model, lola.data)
        return walk.error(lola, lola.data, at)

    assert np.abs(error(q)).max() < 1e-9
    for _ in range(5):
        dv = rng.normal(size=lola.nv)
        there, back = (error(pin.integrate(lola.model, q, s * eps * dv)) for s in (1, -1))
        error(q)
        J, _ = walk.rows(lola, lola.data, q)
        assert np.allclose(-J @ dv, (there - back) / (2 * eps), atol=1e-6)
    assert np.linalg.matrix_rank(J) == len(J) == lola.nv - len(walk.free)


def test_velocities_of_the_rows_are_those_of_the_references_and_what_leads_back_to_them(lola):
    """Of soles, headings and centre of mass, in a walk that turns and steps aside; the held joints have none."""
    walk = WalkTask(lola, GaitSettings(0.3, 0.8, side_step=0.05, turn=0.2), "arms+waist", DT)
    q = pin.integrate(lola.model, walk.start(lola), 0.01 * np.cos(np.arange(lola.nv)))
    for t in np.linspace(0.3, 4.0, 30):
        errors = []
        for walk.t in (t, t + DT):
            pin.computeJointJacobians(lola.model, lola.data, q)
            pin.updateFramePlacements(lola.model, lola.data)
            errors.append(walk.error(lola, lola.data, q))
        walk.t = t
        now, rate = errors[0], (errors[1] - errors[0]) / DT
        _, xdot = walk.rows(lola, lola.data, q)
        places = np.r_[0:3, 6:9, 12:15]
        assert (xdot - walk.gain * now)[places] == pytest.approx(rate[places], abs=1e-9)
        turns = np.r_[3:6, 9:12, 15:18]  # of small errors only
        assert (xdot - walk.gain * now)[turns] == pytest.approx(
            rate[turns], abs=0.15 * np.abs(rate[turns]).max() + 1e-9
        )
        assert not rate[18:].any()


def test_legs_are_never_stretched_more_than_they_may_be_and_the_hips_no_lower_for_it_than_needed(lola):
    """Distance of hip and ankle in the references, of that of the straight leg; the pelvis turns with the chest.

    Lower hips sway a little farther, which is not counted: 0.25 % in this long step.
    """
    walk, q = WalkTask(lola, GaitSettings(0.6, 0.8, side_step=0.1, turn=0.3), "arms", DT), lola.q("neutral")
    center, share = pin.centerOfMass(lola.model, lola.data, q), []
    for foot, (side, leg) in enumerate((("l", walk.groups.l_leg), ("r", walk.groups.r_leg))):
        sole, length = lola.points[f"{side}_foot_tcp"], []
        ends = lola.model.getJointId(lola.joint_names[leg[0]]), lola.model.frames[sole].parentJoint
        for posture in ("zero", "neutral"):
            at = lola.frame_positions(lola.q(posture), [sole])[0]
            hip, ankle = (np.array(lola.data.oMi[k].translation) for k in ends)
            length.append(np.linalg.norm(hip - ankle))
        for t in np.linspace(0.0, walk.gait.cycle, 80, endpoint=False):
            p = walk.gait.at(t)
            there = p.soles[foot] + yaw_rotation(p.headings[foot]) @ (ankle - at)
            share.append(np.linalg.norm(there - p.center - yaw_rotation(p.headings[2]) @ (hip - center)) / length[0])
    assert max(share) == pytest.approx(EXTENSION, abs=0.004)


@pytest.mark.parametrize("name", ["lola", "hrp2", "suralp", "wabian2"])
def test_a_leg_is_as_long_as_its_sole_is_from_its_hip(name):
    """Seen from the hip, so that it does not count where the robot stands."""
    robot = load_robot(name, "floating")
    length = leg_length(robot)
    pin.framesForwardKinematics(
        robot.model, robot.data, robot.q("zero", pin.SE3(np.eye(3), np.array([3.0, -2.0, 5.0])))
    )
    hip = next(k for k, n in enumerate(robot.model.names) if n.startswith("l_hip"))
    assert length == pytest.approx(
        np.linalg.norm(robot.data.oMi[hip].actInv(robot.data.oMf[robot.points["l_foot_tcp"]]).translation)
    )
    assert 0.4 < length < 1.0


def test_arms_alone_are_the_six_free_joints_of_the_source(lola):
    """22 rows for 28 velocities where the head, four joints here, is held as well (T-02)."""
    walk = WalkTask(lola, STEP, "arms", DT)
    head = [n for n in lola.joint_names if n.startswith(("neck", "l_camera", "r_camera"))]
    assert len(walk.free) == 6 and lola.nv - len(head) - len(walk.free) == 22


def test_the_walk_begins_at_rest_and_after_one_cycle_goes_on_as_the_steady_gait(lola):
    """Its clock starts where the feet pass each other, without speed or acceleration, and never jumps or turns."""
    walk = WalkTask(lola, STEP, "arms", DT)
    ramp, both, h = walk.gait.cycle, STEP.double_support, 1e-4
    assert walk.clock(0.0) == pytest.approx(STEP.step_time * (1 + both) / 2)
    assert np.ptp(walk.gait.at(walk.clock(0.0)).soles[:, 0]) < 1e-12
    t = np.arange(-h, 1.5 * ramp, h)
    speed = np.diff([walk.clock(max(x, 0.0)) for x in t]) / h
    assert speed[:20] == pytest.approx(0, abs=1e-4) and (speed >= -1e-9).all()
    assert speed[t[1:] > ramp + h] == pytest.approx(1.0)
    assert np.abs(np.diff(speed)).max() / h < 2.0 / ramp, "the quintic's largest acceleration is 1.875 / ramp"
    assert walk.clock(ramp) == pytest.approx(walk.clock(0.0) + ramp / 2)


def test_mistakes_are_named(lola):
    with pytest.raises(UnknownNameError, match="did you mean arms"):
        WalkTask(lola, STEP, "amrs")
    with pytest.raises(RobotError, match="fixed base"):
        WalkTask(load_robot("lola", "fixed"))
    with pytest.raises(RobotError, match="lacks the points l_foot_tcp"):
        WalkTask(load_robot("armar3", "floating"))
    with pytest.raises(ConfigError, match="too long for its legs"):
        WalkTask(lola, GaitSettings(1.6))
    with pytest.raises(ConfigError, match="dt must be positive"):
        WalkTask(lola, STEP, dt=0.0)


@pytest.mark.parametrize("dt", [0.0, -0.004, np.nan, np.inf])
def test_walks_filters_and_previews_take_no_time_step_that_is_none(dt):
    calls = ((walking_settings, (dt,)), (low_pass, (10.0, dt)), (preview_gains, (3.5, dt, 1.6, 1.0, 1e-6)))
    for call, arguments in calls:
        with pytest.raises(ConfigError, match="dt must be positive and finite"):
            call(*arguments)
