"""The guard on torques of the node `whole_body_controller`: no published torque breaks a limit, whoever made it."""

import functools
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.nodes.performing import torque_commands
from humanoid_control.nodes.performing.torque_commands import TorqueGuard
from humanoid_control.robots import load_robot
from humanoid_control.robots.accelerations import ROTOR_PER_EFFORT
from test.nodes.performing.motions import one_step
from test.nodes.performing.test_use import Performing
from test.robots_under_test import nightly

HORIZON, SETTLING = 0.02, 0.01  # [s] in which a joint may not leave its range; in which its speed is to be reached
WAITS = "whole_body_controller:begin:=false"


@pytest.mark.parametrize("name", ["hrp2", "lola"])
def test_limits_hold_whatever_is_asked(name):
    robot, rng = load_robot(name, "floating"), np.random.default_rng(5)
    guard, effort, changed = TorqueGuard(robot), robot.effort, 0
    model = robot.model.copy()
    model.armature = np.concatenate([np.zeros(6), ROTOR_PER_EFFORT * effort])
    data = model.createData()
    for _ in range(200):
        q = rng.uniform(robot.lower - 0.1, robot.upper + 0.1)
        v = rng.uniform(-1.5, 1.5, robot.n) * robot.velocity
        wanted = rng.uniform(-3.0, 3.0, robot.n) * effort
        out = guard.torque(wanted, q, v)
        assert np.isfinite(out).all() and (np.abs(out) <= effort).all()
        fast = np.abs(v) > robot.velocity
        assert (out[fast] * v[fast] <= 0.0).all(), "no torque along a motion that is too fast"
        inertia = np.diagonal(pin.crba(model, data, np.concatenate([[0, 0, 0, 0, 0, 0, 1], q])))[6:]
        ahead = q + HORIZON * v
        for limit, beyond, sign in ((robot.upper, ahead > robot.upper, 1.0), (robot.lower, ahead < robot.lower, -1.0)):
            back = np.clip(inertia * ((limit - q) / HORIZON - v) / SETTLING, -effort, effort)
            back = np.where(fast, np.maximum(sign * back, 0.0), sign * back)  # one that is too fast only brakes
            assert (sign * out[beyond] <= back[beyond] + 1e-9).all(), "driven back into its range"
        free = (ahead <= robot.upper) & (ahead >= robot.lower) & ~fast
        assert np.array_equal(out[free], np.clip(wanted, -effort, effort)[free]), "untouched otherwise"
        changed += not free.all()
    assert 0 < guard.acted <= changed


def test_readings_that_are_no_numbers_give_no_torque():
    robot = load_robot("hrp2", "floating")
    q, v = robot.joints(robot.q("neutral")), np.zeros(robot.n)
    q[3] = np.nan
    guard = TorqueGuard(robot)
    out = guard.torque(robot.effort, q, v)
    assert np.isfinite(out).all() and out[3] == 0.0 and (out[:3] == robot.effort[:3]).all()
    # Nor where the last place was beyond the range: nobody knows where the joint is now.
    q[3] = robot.upper[3] + 0.05
    assert guard.torque(robot.effort, q, v)[3] < 0.0
    q[3] = np.nan
    assert guard.torque(robot.effort, q, v)[3] == 0.0
    # The hip's inertia needs the knee: it is that of the knee's last place.
    q[3], q[2], v[2] = 0.5, robot.upper[2] - 1e-3, 0.06
    known = guard.torque(robot.effort, q, v)
    q[3] = np.nan
    out = guard.torque(robot.effort, q, v)
    assert -robot.effort[2] < out[2] < 0.0 and out[2] == known[2]


def test_a_joint_that_is_too_fast_is_still_braked():
    robot = load_robot("hrp2", "floating")
    q = robot.joints(robot.q("neutral"))
    one, sign = robot.index["l_elbow_flexion"], np.where(np.arange(robot.n) % 2, 1.0, -1.0)
    for way in (1.0, -1.0):
        guard, v = TorqueGuard(robot), np.zeros(robot.n)
        v[one] = 1.01 * way * robot.velocity[one]
        kept, braked = (guard.torque(s * robot.effort, q, v)[one] for s in (way, -way))
        assert kept == 0.0 and braked == -way * robot.effort[one] and guard.acted == 1
        v[one] = 0.99 * way * robot.velocity[one]
        assert guard.torque(way * robot.effort, q, v)[one] == way * robot.effort[one] and guard.acted == 1
    # More torque than the limit, in all joints at once: all of the limit, and no rule acted.
    assert np.array_equal(guard.torque(3.0 * sign * robot.effort, q, 0 * q), sign * robot.effort) and guard.acted == 1


def test_a_joint_is_braked_before_its_range_ends():
    """1 mrad before the end, at a speed that reaches it in half the horizon, and at one that does not."""
    robot = load_robot("hrp2", "floating")
    one, v = robot.index["l_elbow_flexion"], np.zeros(robot.n)
    for end, way in ((robot.upper, 1.0), (robot.lower, -1.0)):
        q = robot.joints(robot.q("neutral"))
        q[one] = end[one] - way * 1e-3
        guard = TorqueGuard(robot)
        v[one] = way * 1e-3 / (2.0 * HORIZON)
        assert guard.torque(way * robot.effort, q, v)[one] == way * robot.effort[one] and guard.acted == 0
        v[one] = way * 2.0 * 1e-3 / HORIZON
        assert way * guard.torque(way * robot.effort, q, v)[one] < 0.0 and guard.acted == 1


class Node:
    """What `TorqueCommands` needs of a node."""

    params = SimpleNamespace(rate=500.0)

    def get_clock(self):
        return SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=10**9))


def test_a_torque_that_is_no_number_is_not_published(monkeypatch):
    sent = []
    owner = SimpleNamespace(publish=lambda m: sent.append(list(m.effort)))
    monkeypatch.setattr(torque_commands, "CommandOwner", lambda node, topic: owner)
    robot = load_robot("hrp2", "floating")
    commands, q = torque_commands.TorqueCommands(Node(), robot), robot.joints(robot.q("neutral"))
    for bad in (np.nan, np.inf, -np.inf):
        torque = np.zeros(robot.n)
        torque[-1] = bad
        assert not commands.send(torque, q, 0 * q) and not sent and commands.ticks == 0
    assert commands.send(2.0 * robot.effort, q, 0 * q) and sent == [robot.effort.tolist()]
    assert commands.values() == {
        "torque_share": 1.0, "torque_saturated_percent": 100.0, "guarded_ticks": 0, "control_ticks": 1,
    }  # fmt: skip
    assert commands.send(robot.effort, q, 1.01 * robot.velocity) and not any(sent[-1]), "the guard knows the speeds"
    assert commands.values()["guarded_ticks"] == 1


@pytest.fixture(scope="module")
def motion_of(tmp_path_factory):
    """Return a function that gives the file of a robot's step."""

    @functools.cache
    def find(robot):
        path = tmp_path_factory.mktemp(robot) / "motion.npz"
        one_step(load_robot(robot, "floating")).write(path)
        return path

    return find


@pytest.fixture
def stack(monkeypatch, motion_of):
    made = []

    def make(robot, *parameters, **options):
        path = motion_of(robot)
        made.append(Performing(monkeypatch, path, *parameters, robot=robot, **options))
        return made[-1]

    yield make
    for d in made:
        d.close()


@pytest.mark.timeout(900)  # some seconds of a robot
@pytest.mark.parametrize("sign", [1.0, nightly(-1.0)])
def test_a_controller_gone_mad_drives_no_joint_into_its_stop(stack, sign):
    """Both elbows and wrists get all their torque in one direction; ends of their ranges are met softly."""
    d = stack("hrp2", WAITS)
    robot, efforts = d.walker.robot, []
    d.bus.listeners["joint_commands"].append(lambda m: efforts.append(list(m.effort)))
    d.prepare()
    mad = [k for k, name in enumerate(robot.joint_names) if "elbow" in name or "wrist" in name]
    assert mad and d.state == "STAND"
    step, excess, reached = d.walker.stage.step, [], []

    def gone_mad(measured, dt):
        torque = step(measured, dt).copy()
        torque[mad] = sign * 10.0 * robot.effort[mad]
        return torque

    d.walker.stage.step = gone_mad

    def look():
        q = d.engine.joints
        excess.append(np.maximum(robot.lower - q, q - robot.upper)[mad].max())
        reached.append(np.minimum(q - robot.lower, robot.upper - q)[mad])
        return False

    d.run(2.0, look)
    assert max(excess) < 0.01, "beyond a range [rad]"
    assert np.min(reached, axis=0).max() < 0.05, "all were driven to an end"
    assert (np.abs(efforts) <= robot.effort + 1e-9).all() and d.walker.values()["guarded_ticks"] > 10


@pytest.mark.timeout(900)
@pytest.mark.parametrize("where", ["controller", nightly("stage")])
def test_a_controller_without_numbers_is_damped_and_stands_anew(stack, where):
    """Once by the controller, whose stage notices, and once by all that comes before the commands."""
    d = stack("hrp2", WAITS)
    efforts = []
    d.bus.listeners["joint_commands"].append(lambda m: efforts.append((list(m.effort), list(m.velocity))))
    d.prepare()
    owner = d.walker.stage.controller if where == "controller" else d.walker.stage
    step = owner.step
    owner.step = lambda measured, dt: step(measured, dt) * np.nan
    efforts.clear()
    assert d.run(0.1, lambda: d.state == "WAITING")
    owner.step = step
    torques, speeds = efforts[-1]
    assert "number" in d.open and not torques and not any(speeds), "damped"
    d.until_state("STAND")
    assert all(np.isfinite(torques).all() for torques, _ in efforts) and "FALLEN" not in d.states


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("robot", "engine"), [("hrp2", "mujoco"), ("lola", "multibody")])
def test_another_robot_and_the_other_engine_perform_by_the_node(stack, robot, engine):
    d = stack(robot, WAITS, simulated=("rate:=250.0", f"engine:={engine}"))
    own, efforts = d.walker.robot, []
    d.bus.listeners["joint_commands"].append(lambda m: efforts.append(list(m.effort)))
    d.prepare()
    assert d.call("start").success
    d.until_state("PERFORM")
    d.until_state("STAND")
    values = d.walker.values()
    assert values["performed"] == 1 and values["failed_programs"] == 0
    assert len(efforts) > 100 and (np.abs(efforts) <= own.effort + 1e-9).all()
