"""The guard on torques of the node `whole_body_controller`: no published torque breaks a limit, whoever made it."""

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.nodes.performing.torque_commands import TorqueGuard
from humanoid_control.robots import load_robot
from humanoid_control.robots.accelerations import ROTOR_PER_EFFORT
from test.nodes.performing.motions import one_step
from test.nodes.performing.test_use import Performing

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
    out = TorqueGuard(robot).torque(robot.effort, q, v)
    assert np.isfinite(out).all() and out[3] == 0.0 and (out[:3] == robot.effort[:3]).all()


@pytest.fixture
def stack(monkeypatch, tmp_path):
    made = []

    def make(robot, *parameters, **options):
        path = tmp_path / "motion.npz"
        one_step(load_robot(robot, "floating")).write(path)
        made.append(Performing(monkeypatch, path, *parameters, robot=robot, **options))
        return made[-1]

    yield make
    for d in made:
        d.close()


@pytest.mark.timeout(900)  # some seconds of a robot
@pytest.mark.parametrize("sign", [1.0, -1.0])
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
