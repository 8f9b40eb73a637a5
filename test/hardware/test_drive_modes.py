"""Joints whose drives follow velocities or torques: commanded in that, held, brought to rest, inside every limit."""

from types import SimpleNamespace

import numpy as np
import pytest

from humanoid_control.hardware.commands.command_stream import CommandReader, DirectCommands, JointCommand
from humanoid_control.hardware.commands.drive_modes import DriveModes, torque_bounds
from humanoid_control.hardware.commands.limiter import CommandLimits
from humanoid_control.hardware.power import PowerState
from humanoid_control.hardware.transport import Mode
from humanoid_control.robots import load_robot
from test.hardware.test_driver import Rig

NAN = np.nan
HOLD, RUN = PowerState.HOLD, PowerState.RUN


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "fixed")


class DirectRig(Rig):
    """Both elbows in a mode; velocities or torques are sent alone."""

    def send(self, seconds, v=NAN, tau=NAN, q=NAN, each=None):
        for k in range(round(seconds / 0.002)):
            self.clock.now += 0.002
            if k % 2 == 0:
                command = JointCommand(*(np.full(2, float(x)) for x in (q, v, tau)))
                self.driver.command(command, self.clock.now, self.clock.now)
            self.driver.cycle()
            self.trace.append((self.clock.now, *self.driver.reference.q, self.left.q[0], self.right.q[0]))
            if each is not None:
                each()
        return self


@pytest.fixture
def rig(robot, clock):
    def make(mode, joint=None, **changed):
        r = DirectRig(robot, clock, joint={"mode": mode, "kp": 200.0, "kd": 5.0, **(joint or {})}, **changed)
        return r.enabled()

    return make


def told(rig):
    """What the drives were told: v [rad/s], tau [N m]."""
    c = rig.driver.buses.command
    return c.v.copy(), c.tau.copy()


def test_a_velocity_is_followed_after_the_blend_and_ends_at_rest_with_the_commands(rig):
    r = rig(Mode.VELOCITY)
    assert set(r.driver.buses.command.mode) == {Mode.VELOCITY}
    r.send(1.0, v=-0.4)
    assert r.state is RUN
    assert r.left.v[0] == pytest.approx(-0.4, abs=0.01) and r.right.v[0] == pytest.approx(-0.4, abs=0.01)
    at = r.left.q[0]
    r.run(0.5)
    assert r.state is HOLD and "silent" in r.reason and abs(r.left.v[0]) < 0.01
    assert abs(r.left.q[0] - at) < 0.4 * 0.2, "it did not go on for longer than the timeout"
    here = r.left.q[0]
    r.run(1.0)
    assert abs(r.left.q[0] - here) < 1e-3, "held"


def test_no_velocity_leaves_speed_acceleration_or_range(rig):
    r = rig(Mode.VELOCITY, soft_start=0.01)
    seen = []
    r.send(2.0, v=-50.0, each=lambda: seen.append(told(r)[0].copy()))
    assert np.abs(seen).max() <= 3.0 + 1e-9, "the limit of the joint"
    assert np.abs(np.diff(r.speeds(), axis=0)).max() < 20.0 * 0.002 + 1e-6
    lower = r.driver.limits.lower
    assert (r.driver.reference.q >= lower - 1e-9).all() and abs(r.left.q[0] - lower[0]) < 0.01
    assert r.state is RUN, "the end of a range is no fault"


def test_a_pushed_joint_of_a_velocity_drive_is_led_back(rig):
    r = rig(Mode.VELOCITY, joint={"following_error": 1.0})
    here = r.left.q[0]
    r.left.q[0] -= 0.1
    r.driver.jumps.restart()
    r.run(1.5)
    assert abs(r.left.q[0] - here) < 1e-3


def test_a_torque_goes_to_the_drive_and_the_joint_is_held_when_it_ends(rig):
    r = rig(Mode.EFFORT, soft_start=0.05)
    here = r.left.q[0]
    r.send(0.5, tau=-0.2)
    assert r.state is RUN and told(r)[1] == pytest.approx([-0.2, -0.2])
    assert r.left.q[0] < here - 0.02, "it moved freely"
    r.run(1.5)
    assert r.state is HOLD and abs(r.left.v[0]) < 1e-3
    q = r.left.q[0]
    r.left.load[:] = 3.0
    r.run(1.0)
    assert abs(r.left.q[0] - q) == pytest.approx(3.0 / 200.0, rel=0.05), "the spring that holds it"


def test_torques_keep_effort_speed_and_range(rig):
    r = rig(Mode.EFFORT, soft_start=0.01, joint={"effort": 2.0})
    seen = []
    r.send(2.0, tau=-100.0, each=lambda: seen.append((*told(r)[1], r.left.v[0])))
    seen = np.array(seen)
    assert np.abs(seen[:, :2]).max() <= 2.0
    assert np.abs(seen[:, 2]).max() < 1.2 * 3.0
    assert r.state is RUN, r.driver.machine
    assert r.left.q[0] > r.driver.supervision.limits.lower[0]


def test_positions_move_joints_in_every_mode(rig):
    for mode in (Mode.VELOCITY, Mode.EFFORT):
        r = rig(mode)
        goal = r.left.q[0] - 0.2
        r.send(1.5, q=goal)
        assert r.state is RUN and abs(r.left.q[0] - goal) < 0.01, mode


def test_a_joint_that_is_no_longer_commanded_a_velocity_stops_though_others_go_on(rig):
    r = rig(Mode.VELOCITY).send(1.0, v=-0.3)
    for _ in range(200):
        r.clock.now += 0.002
        r.driver.command(
            JointCommand(np.full(2, NAN), np.array([NAN, -0.3]), np.full(2, NAN)), r.clock.now, r.clock.now
        )
        r.driver.cycle()
    assert r.state is RUN and abs(r.left.v[0]) < 0.01 and abs(r.right.v[0] + 0.3) < 0.01


def test_only_drives_of_that_mode_may_be_commanded_without_positions():
    reader = CommandReader(["a", "b", "c"], modes=(Mode.POSITION, Mode.VELOCITY, Mode.EFFORT))
    c = reader.read(["a", "b", "c"], [], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
    np.testing.assert_array_equal(c.v, [NAN, 2.0, NAN])
    np.testing.assert_array_equal(c.tau, [NAN, NAN, 6.0])
    assert reader.read(["b"], [], [NAN], []) is None


def test_the_newest_kind_of_command_of_a_joint_counts():
    d = DirectCommands(2, 0.1)
    nan = np.full(2, NAN)
    assert d.add(JointCommand(nan, np.array([1.0, NAN]), np.array([5.0, 7.0])), 0.0).tolist() == [True, True]
    v, tau = d.at(0.05)
    np.testing.assert_array_equal([v, tau], [[1.0, NAN], [NAN, 7.0]])
    d.add(JointCommand(np.array([0.2, NAN]), np.array([0.0, 3.0]), nan), 0.06)
    np.testing.assert_array_equal(d.at(0.07), [[NAN, 3.0], [NAN, NAN]])
    assert np.isnan(d.at(0.2)).all()


def test_bounds_of_torque_turn_round_beyond_speed_and_range():
    limits = CommandLimits(*(np.full(5, x) for x in (-1.0, 1.0, 2.0, 10.0, 30.0)))
    q, v = np.array([0.0, 0.0, 1.05, 0.0, NAN]), np.array([0.0, 2.0, 0.0, 2.4, 0.0])
    low, high = torque_bounds(q, v, limits)
    np.testing.assert_allclose(high, [30.0, 0.0, -30.0, -30.0, 30.0], atol=1e-9)
    np.testing.assert_allclose(low, [-30.0, -30.0, -30.0, -30.0, -30.0])


def test_a_velocity_that_blends_in_counts_by_its_share(robot):
    modes = [Mode.VELOCITY, Mode.EFFORT, Mode.EFFORT]
    aims = DriveModes(modes, None, None)
    told = SimpleNamespace(at=lambda now: (np.array([2.0, NAN, NAN]), np.array([NAN, 8.0, NAN])))
    q, v = aims.aim(told, 0.0, 0.25, SimpleNamespace(q=np.array([1.0, 2.0, 3.0])), 0.01)
    np.testing.assert_allclose(q, [1.0 + 0.25 * 2.0 * 0.01, NAN, NAN], rtol=1e-14)
    np.testing.assert_allclose(v, [0.5, NAN, NAN])
    assert aims._torque.tolist() == [0.0, 2.0, 0.0] and aims._pushed.tolist() == [False, True, False]
    aims.release()
    assert not aims._pushed.any()
