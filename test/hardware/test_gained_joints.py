"""Commands with gains: read, held, let down; through a driver to drives that take them, or refused by name."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, HumanoidError, NotANumberError, UnknownNameError
from humanoid_control.hardware.commands.command_stream import JointCommand
from humanoid_control.hardware.commands.gained_command import DESCENT, GainedCommand, Gains, GainsReader
from humanoid_control.hardware.commands.gained_joints import blend
from humanoid_control.hardware.power import PowerState
from humanoid_control.hardware.transport import Mode
from humanoid_control.robots import load_robot
from test.hardware.test_driver import Rig

IMPEDANCE = {"mode": Mode.IMPEDANCE, "kp": 80.0, "kd": 2.0}


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "fixed")


@pytest.mark.parametrize(
    ("names", "kp", "kd", "error", "words"),
    [
        (["a", "b"], [1.0], [1.0, 1.0], ConfigError, "1 kp and 2 kd for 2 names"),
        (["a", "x"], [1.0, 1.0], [1.0, 1.0], UnknownNameError, "'x'"),
        (["a", "a"], [1.0, 1.0], [1.0, 1.0], ConfigError, "name a twice"),
        (["b", "a"], [1.0, -0.1], [1.0, 1.0], ConfigError, "kp of a is -0.1"),
        (["b", "a"], [1.0, 1.0], [1.0, 1e6], ConfigError, "kd of a is 1e+06"),
        (["b", "a"], [float("nan"), 1.0], [1.0, 1.0], NotANumberError, "kp of b is nan"),
        (["b", "a"], [1.0, 1.0], [float("inf"), 1.0], HumanoidError, "kd of b is inf"),
    ],
)
def test_gains_with_a_mistake_are_refused_whole_and_named(names, kp, kd, error, words):
    with pytest.raises(error, match=words.replace("+", r"\+")):
        GainsReader(["a", "b", "c"]).read(names, kp, kd)


def test_gains_are_taken_by_name_and_others_are_not_given():
    reader = GainsReader(["a", "b", "c"], passed_over=["z"])
    for _ in range(2):  # the order is remembered
        kp, kd = reader.read(["c", "z", "a"], [3.0, 9.0, 1.0], [0.3, 0.9, 0.1])
        assert kp[[0, 2]].tolist() == [1.0, 3.0] and kd[[0, 2]].tolist() == [0.1, 0.3] and np.isnan(kp[1])


def test_a_command_holds_and_is_let_down_without_a_jump_once_it_is_silent():
    given = (np.array([0.3, -0.2, 9.0]), np.array([1.0, 0.0, 0.0]), np.array([5.0, np.nan, 0.0]))
    gains, damping = Gains(np.array([50.0, 30.0, np.nan]), np.array([2.0, 1.0, np.nan])), np.array([5.0, 2.0, 0.5])
    c = GainedCommand(3, damping, silence=0.1)
    assert not c.any
    assert c.take(given, gains, 10.0).tolist() == [True, True, False] and c.any
    q, v = np.array([0.1, 0.1, 0.0]), np.array([0.4, -0.5, 0.0])

    def torque():
        return c.tau + c.kp * (c.q - q) + c.kd * (c.v - v)

    c.update(10.1)
    expected = np.array([5 + 50 * 0.2 + 2 * 0.6, -30 * 0.3 + 0.5, 0.0])
    assert torque() == pytest.approx(expected) and not c.descending
    for t in np.linspace(0.0, DESCENT, 9):
        c.update(10.1 + t + 1e-12)
        share = t / DESCENT
        assert torque() == pytest.approx((1 - share) * expected - share * damping * v * c.which, abs=1e-9)
    c.update(99.0)
    assert c.descending and (c.kp == 0).all() and c.kd.tolist() == [5.0, 2.0, 0.0] and (c.tau == 0).all()
    c.release()
    assert not c.any and not c.descending


def test_a_blend_of_targets_has_the_mean_torque_wherever_the_joints_are():
    rng = np.random.default_rng(3)
    a, b = (np.vstack([rng.normal(size=(3, 4)), rng.uniform(1, 90, size=(2, 4))]) for _ in range(2))
    for share in (0.0, 0.4, 1.0):
        q, v = rng.normal(size=(2, 4))
        torque = [x[3] * (x[0] - q) + x[4] * (x[1] - v) + x[2] for x in (a, b, blend(a, b, share))]
        assert torque[2] == pytest.approx((1 - share) * torque[0] + share * torque[1])


class Commander:
    """Sends a command with gains each 20 ms."""

    def __init__(self, rig, kp=60.0, kd=1.5, every=0.02):
        self.rig, self.gains, self.every, self.due, self.q, self.tau = rig, (kp, kd), every, 0.0, None, 0.0
        self.silent = False

    def run(self, seconds, q=None, until=None):
        rig, n = self.rig, len(self.rig.names)
        start = rig.driver.reference.q.copy() if self.q is None else self.q
        self.q = start if q is None else np.asarray(q, dtype=float)
        for _ in range(round(seconds / 0.002)):
            if rig.clock.now >= self.due and not self.silent:
                self.due = rig.clock.now + self.every
                command = JointCommand(self.q.copy(), np.zeros(n), np.full(n, self.tau))
                gains = Gains(*np.broadcast_to(np.array(self.gains)[:, None], (2, n)).copy())
                rig.driver.command(command, rig.clock.now, rig.clock.now, gains)
            rig.run(0.002)
            if until is not None and rig.state is until:
                return
        assert until is None, rig.driver.machine


def sent(rig):
    """What the drive of the left elbow was told: q, v, tau, kp, kd."""
    c = rig.driver.buses.command
    return np.array([c.q[0], c.v[0], c.tau[0], c.kp[0], c.kd[0]])


@pytest.fixture
def rig(robot, clock):
    made = Rig(robot, clock, joint=IMPEDANCE)
    made.enabled()
    made.to(PowerState.HOLD)
    return made


def test_a_target_reaches_the_drive_at_once_with_its_own_gains_and_speed(rig):
    c = Commander(rig)
    c.run(3.0, until=PowerState.RUN)
    c.run(0.5)
    there = rig.driver.joints.q.copy()
    c.due = 0.0
    c.run(0.004, there + 0.15)  # 75 rad/s for a position drive
    assert sent(rig).tolist() == [*(there + 0.15)[:1], 0.0, 0.0, 60.0, 1.5], "neither interpolated nor limited"
    c.run(1.0)
    assert rig.state is PowerState.RUN and rig.driver.joints.q == pytest.approx(there + 0.15, abs=0.03)
    assert rig.driver.gained.acted == 0 and not rig.driver.findings


def test_the_gains_that_held_the_robot_are_handed_over_without_a_step(rig):
    c, told = Commander(rig, kp=20.0), []
    rig.run(0.6)  # its own gains have grown
    c.run(3.0, until=PowerState.BLEND)
    for _ in range(200):
        c.run(0.002)
        told.append(sent(rig))
    kp = np.array(told)[:, 3]
    assert kp[0] > 75.0 and kp[-1] == 20.0 and np.abs(np.diff(kp)).max() < 60.0 * 0.002 / 0.3 + 1e-9


def test_a_torque_beyond_the_limit_is_cut_about_the_measured_state(rig):
    c = Commander(rig)
    c.run(3.0, until=PowerState.RUN)
    c.run(0.2)
    c.due, c.tau = 0.0, 500.0
    c.run(0.004)
    q, _, tau, kp, kd = sent(rig)
    assert tau == 30.0 and kp == 60.0 and kd == 1.5, "the effort limit of the joint"
    assert abs(q - rig.driver.joints.q[0]) < 1e-3 and rig.driver.gained.acted > 0


def test_a_limit_that_is_given_decides_and_where_it_does_not_act_nothing_changes_bit_by_bit(rig):
    c, seen = Commander(rig), []

    def limit(target, measured):
        q, v, tau, kp, kd = target
        seen.append((target.copy(), measured.copy()))
        raw = kp * (q - measured[0]) + kd * (v - measured[1]) + tau
        return np.where([True, False], raw, np.minimum(raw, -1.0))

    c.run(3.0, until=PowerState.RUN)
    c.run(0.2)
    rig.driver.gained.limit, c.due = limit, 0.0
    c.run(0.004, rig.driver.joints.q + 0.123456789)
    assert sent(rig)[0] == c.q[0] and seen
    told = rig.driver.buses.command
    assert told.tau[1] == -1.0 and told.q[1] == seen[-1][1][0, 1], "the other joint's torque was cut"


def test_silence_lets_the_joints_down_and_stop_does_so_at_once(rig):
    c = Commander(rig)
    rig.driver.gained.set_damping(np.array([0.7, 0.9]))
    c.run(3.0, until=PowerState.RUN)
    c.silent = True
    rig.run(0.15)
    assert rig.state is PowerState.STOPPING and 0.0 < sent(rig)[3] < 60.0
    rig.run(0.6)
    assert rig.state is PowerState.STOPPING and sent(rig)[3] < 15.0
    stiffness = []
    for _ in range(400):
        rig.run(0.002)
        stiffness.append(sent(rig)[3])
    assert min(stiffness) < 0.5, "no last posture is held"
    assert rig.state is PowerState.HOLD and "silent" in rig.reason
    c.silent = False
    c.run(3.0, until=PowerState.RUN)
    assert rig.driver.stop() == ""
    rig.run(0.2)
    assert rig.driver.gained.command.descending and rig.state is PowerState.STOPPING


@pytest.mark.parametrize("mode", [Mode.POSITION, Mode.VELOCITY])
def test_position_and_velocity_drives_refuse_gains_by_name(robot, clock, mode):
    rig = Rig(robot, clock, joint={"mode": mode})
    with pytest.raises(ConfigError, match=r"joint_gains: the drive of (l|r)_elbow_flexion does not accept gains"):
        rig.driver.gained.check(Gains(np.full(2, 50.0), np.full(2, 1.0)))
    rig.driver.gained.check(Gains(np.full(2, np.nan), np.full(2, np.nan)))


def test_for_torque_drives_the_driver_closes_the_loop(robot, clock):
    rig = Rig(robot, clock, joint={**IMPEDANCE, "mode": Mode.EFFORT})
    rig.driver.gained.check(Gains(np.full(2, 50.0), np.full(2, 1.0)))
    rig.enabled()
    rig.to(PowerState.HOLD)
    c = Commander(rig)
    c.run(3.0, until=PowerState.RUN)
    goal = rig.driver.joints.q + 0.2
    c.run(1.5, goal)
    j = rig.driver.joints
    expected = 60.0 * (goal - j.q) - 1.5 * j.v
    assert rig.driver.buses.command.tau == pytest.approx(expected, abs=0.5) and j.q == pytest.approx(goal, abs=0.05)
