"""Commands for a controller: blended to, inside every limit, ended when they cease."""

import numpy as np
import pytest

from humanoid_control.hardware.commands.command_stream import JointCommand
from humanoid_control.hardware.commands.limiter import CommandLimits
from humanoid_control.hardware.ros2_control.command_follower import CommandFollower, Following

T = 0.004


class Run:
    """A follower at 250 Hz of its own time; what it sends is what is measured."""

    def __init__(self, start=(0.5, -0.2), sag=0.0):
        limits = CommandLimits(*(np.full(2, x) for x in (-1.0, 1.0, 2.0, 20.0, 9.0)))
        self.follower = CommandFollower(limits, T, 0.1)
        self.follower.soft_start, self.follower.soft_speed = 0.4, 1.0
        self.now, self.measured, self.sag, self.sent = 10.0, np.array(start), sag, []

    def cycle(self, seconds, q=None, v=None):
        """Let time pass, with a command in each period; `q` may be a function of time."""
        for _ in range(round(seconds / T)):
            self.now += T
            if q is not None:
                values = np.asarray(q(self.now) if callable(q) else q, float)
                speed = np.full(2, np.nan) if v is None else np.asarray(v(self.now), float)
                self.follower.add(JointCommand(values, speed, np.full(2, np.nan)), self.now, self.now)
            if self.follower.update(self.measured, self.now):
                self.sent.append(self.follower.reference.q.copy())
                self.measured = self.sent[-1] - self.sag
        return self

    def speeds(self):
        return np.diff(np.array(self.sent), axis=0) / T


def test_nothing_is_sent_before_commands_are_steady_and_the_robot_is_measured():
    r = Run().cycle(0.5)
    assert not r.sent and r.follower.state is Following.IDLE
    r.cycle(0.15, (0.0, 0.0))
    assert not r.sent
    r.measured[1] = np.nan
    r.cycle(0.3, (0.0, 0.0))
    assert not r.sent
    r.measured[1] = -0.2
    r.cycle(0.05, (0.0, 0.0))
    assert np.abs(r.sent[0] - (0.5, -0.2)).max() < 1e-3, "it begins where the robot is"


def test_the_blend_ends_at_the_commands_and_they_are_followed():
    def q(t):
        return 0.3 * np.sin(3 * t), 0.3 * np.cos(3 * t)

    def v(t):
        return 0.9 * np.cos(3 * t), -0.9 * np.sin(3 * t)

    r = Run().cycle(3.0, q, v)
    assert r.follower.state is Following.RUN
    assert np.abs(r.sent[-1] - q(r.now - T)).max() < 1e-3, "one period late"
    assert np.abs(r.speeds()).max() < 2.0 and np.abs(np.diff(r.speeds(), axis=0)).max() / T <= 20.0 + 1e-6


def test_every_joint_comes_to_rest_when_commands_cease():
    r = Run((0.0, 0.0)).cycle(1.2, lambda t: (0.8 * (t - 10.0), -0.5 * (t - 10.0)))
    assert np.abs(r.speeds()[-1]).max() > 0.4
    r.cycle(0.5)
    assert r.follower.state is Following.IDLE and len(r.sent) > 250
    assert np.abs(np.diff(r.speeds(), axis=0)).max() / T <= 20.0 + 1e-6
    count = len(r.sent)
    r.cycle(0.5)
    assert len(r.sent) == count, "the controller holds the last value"


def test_after_silence_motion_begins_from_where_the_controller_holds():
    r = Run((0.0, 0.0), sag=0.05).cycle(1.0, (0.2, 0.2)).cycle(0.5)
    held, count = r.sent[-1], len(r.sent)
    r.cycle(1.0, (0.4, -0.4))
    assert np.abs(r.sent[count] - held).max() < 1e-3, "not from the sagging measurement"
    r.cycle(0.5)
    r.measured = np.array([-0.5, 0.5])  # somebody else moved it
    count = len(r.sent)
    r.cycle(0.5, (0.4, -0.4))
    assert np.abs(r.sent[count] - (-0.5, 0.5)).max() < 1e-3


@pytest.mark.parametrize("wild", [(9.0, -9.0), (1.0, 1e300), (np.nan, 0.3), (np.nan, np.nan)])
def test_no_command_whatever_leaves_range_and_speed(wild):
    r = Run().cycle(1.0, (0.0, 0.0))
    r.cycle(0.5, wild)
    r.cycle(1.0, (0.5, 0.5))
    sent = np.array(r.sent)
    assert np.isfinite(sent).all() and np.abs(sent).max() <= 1.0 and np.abs(r.speeds()).max() <= 2.0 + 1e-6


def test_a_step_is_blended_to_and_a_forgotten_controller_begins_anew():
    r = Run((0.0, 0.0)).cycle(1.0, (0.0, 0.0))
    r.cycle(T, (0.8, 0.0))
    assert r.follower.state in (Following.BLEND, Following.RUN)
    r.cycle(0.1, (0.8, 0.0))
    assert r.follower.state is Following.BLEND and np.abs(r.speeds()[-20:]).max() < 1.2
    r.follower.reset()
    assert r.follower.state is Following.IDLE and np.isnan(r.follower.reference.q).all()
    r.follower.stop()
    r.cycle(0.1)
    assert r.follower.state is Following.IDLE
