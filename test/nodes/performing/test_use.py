"""Bad input and the simulator's tricks while a robot performs: simulator and node in one process, without DDS."""

import copy
import select
import signal

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from humanoid_control.nodes.whole_body_controller import WholeBodyControllerNode
from humanoid_control.performing import DynamicMotion
from humanoid_control.robots import load_robot
from test.nodes.performing.motions import one_step
from test.nodes.walking.direct import Direct, Publisher

WAITS = "whole_body_controller:begin:=false"
PREPARED = 120.0  # [s] of the clock on the wall, for the process that prepares


class Performing(Direct):
    """The simulator and the node `whole_body_controller`."""

    def __init__(self, monkeypatch, path, *parameters, robot="hrp2", simulated=("rate:=250.0",)):
        super().__init__(
            monkeypatch, f"whole_body_controller:motion:={path}", *parameters, robot=robot,
            kind=WholeBodyControllerNode, rate=250.0, simulated=simulated,
        )  # fmt: skip

    def prepare(self):
        """Let the other process answer: its time is not the test's."""
        node = self.walker
        for _ in range(100):
            self.run(0.02)
            if self.states[-1] != "WAITING" and not node.preparation.pending:
                return
            if node.preparation.pending:
                select.select([node.preparation._process.stdout], [], [], PREPARED)
        raise AssertionError(self.open)

    def until_state(self, state, longest=12.0):
        for _ in range(3):
            if self.run(longest, lambda: self.state == state or bool(self.walker.preparation.pending)):
                if self.state == state:
                    return
                select.select([self.walker.preparation._process.stdout], [], [], PREPARED)
        assert self.run(longest, lambda: self.state == state), (self.states, self.open)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("motion") / "motion.npz"
    one_step(load_robot("hrp2", "floating")).write(path)
    return path


@pytest.fixture
def stack(monkeypatch, path):
    made = []

    def make(*parameters, **options):
        made.append(Performing(monkeypatch, path, *parameters, **options))
        return made[-1]

    yield make
    for d in made:
        d.close()


def in_the_air(d):
    return d.state == "PERFORM" and not d.bus.newest["wrench/l_foot"].wrench.force.z


@pytest.mark.timeout(900)  # some ten seconds of a robot
def test_it_performs_stops_begins_again_and_holds_its_limits(stack):
    d = stack(WAITS)
    robot, efforts = d.walker.robot, []
    d.bus.listeners["joint_commands"].append(lambda m: efforts.append(list(m.effort)))
    d.prepare()
    assert d.states == ["WAITING", "STAND"]
    assert d.call("start").success
    d.until_state("PERFORM")
    assert d.run(6.0, lambda: in_the_air(d))
    assert d.call("start").message == "performing" and not d.walker.wanted, "it does so already"
    assert d.call("stop").success and d.state == "PERFORM"
    d.until_state("STOP")
    d.until_state("STAND")
    d.run(0.5)
    assert d.state == "STAND" and d.walker.stage.performed == 0
    assert d.call("play").success
    d.until_state("PERFORM")
    d.run(0.5)
    assert set(d.states) == {"WAITING", "STAND", "PERFORM", "STOP"}
    assert (np.abs(efforts) <= robot.effort + 1e-9).all()
    values = d.walker.values()
    assert values["performed"] == 0 and values["failed_programs"] == 0 and values["guarded_ticks"] == 0


def test_a_silent_sensor_is_waited_for_and_then_the_robot_rests_on_both_feet(stack):
    d = stack()
    d.prepare()
    d.until_state("PERFORM")
    assert d.run(6.0, lambda: in_the_air(d))
    d.bus.silent = {"imu"}
    d.run(0.04)
    assert "late" in d.open and "lost" not in d.open and d.state == "PERFORM", "the last readings are used"
    d.bus.silent = set()
    d.run(0.05)
    assert "late" not in d.open and d.state == "PERFORM"
    d.bus.silent = {"wrench/r_foot"}
    d.run(0.1)
    assert "lost" in d.open and d.state == "STOP"
    d.bus.silent = set()
    d.until_state("STAND")
    d.run(0.5)
    assert d.state == "STAND" and "lost" in d.walker.stopped and "lost" in d.open, "until it is asked again"
    assert d.call("start").success
    d.until_state("PERFORM")
    assert "lost" not in d.open and "FALLEN" not in d.states


def test_silent_joints_are_damped_and_what_comes_back_stands_anew(stack):
    d = stack(WAITS)
    d.prepare()
    d.bus.silent = {"joint_states"}
    d.run(0.3)
    damped = d.bus.newest["joint_commands"]
    assert d.states[-2:] == ["WAITING", "OFF"] and "off" in d.open
    assert len(damped.position) == 0 and len(damped.velocity) and not np.any(damped.velocity)


def test_readings_that_are_no_numbers_change_nothing(stack):
    d = stack()
    d.prepare()
    d.until_state("PERFORM")

    def bad(m):
        m = copy.deepcopy(m)
        m.wrench.force.z = float("nan")
        return m

    def bad_joint(m):
        m = copy.deepcopy(m)
        m.position[3] = float("inf")
        return m

    efforts = []
    d.bus.listeners["joint_commands"].append(lambda m: efforts.append(list(m.effort)))
    d.bus.change = {"wrench/l_foot": bad, "joint_states": bad_joint}
    d.run(0.015)
    assert {"wrench/l_foot", "joint_states"} <= {k.split(" ")[0] for k in d.open}
    d.bus.change = {}
    d.run(0.5)
    assert np.isfinite(efforts).all() and d.state == "PERFORM"


def test_another_one_who_commands_is_named_and_nothing_is_commanded_beside_it(stack):
    d = stack(WAITS)
    other = Publisher(d.bus, type("Other", (), {"get_name": lambda s: "other"})(), "joint_commands")
    d.run(1.0)
    assert "joint_commands" not in d.bus.newest and "owner" in d.open
    assert "other" in d.walker.health.open["owner"][1]
    d.bus.publishers["joint_commands"].remove(other)
    d.prepare()
    assert d.state == "STAND" and "owner" not in d.open


def test_time_that_stands_still_is_no_silence(stack):
    d = stack()
    d.prepare()
    d.until_state("PERFORM")
    d.simulator.on_pause(SetBool.Request(data=True), SetBool.Response())
    ticks = d.walker.commands.ticks
    d.run(2.0)
    assert d.state == "PERFORM" and d.walker.commands.ticks <= ticks + 1 and not d.walker.stopped
    d.simulator.on_pause(SetBool.Request(data=False), SetBool.Response())
    d.run(0.3)
    assert d.state == "PERFORM" and d.walker.commands.ticks > ticks + 50, "it goes on"


@pytest.mark.nightly
def test_a_robot_that_falls_gives_way_slowly_until_it_is_put_up(stack):
    d = stack()
    d.prepare()
    d.until_state("PERFORM")
    d.engine.push(d.walker.robot.root_link, np.array([900.0, 0, 0, 0, 0, 0]), 0.3)
    d.until_state("FALLEN", 4.0)
    d.run(0.1)
    damped: JointState = d.bus.newest["joint_commands"]
    assert not len(damped.effort) and not np.any(damped.velocity) and "fallen" in d.open
    assert not d.call("start").success and "fallen" in d.call("start").message
    d.simulator.on_reset(Trigger.Request(), Trigger.Response())
    d.run(0.5)
    assert d.call("reset").success
    d.prepare()
    assert d.states[d.states.index("FALLEN") :][1] == "WAITING" and "fallen" not in d.open


@pytest.mark.nightly
def test_preparing_that_fails_is_said_and_nothing_is_commanded(stack):
    d = stack(WAITS)
    node = d.walker
    node.preparation.close()
    d.run(0.1)
    node.preparation._send({"do": "motion", "motion": "/nowhere/motion.npz"})
    select.select([node.preparation._process.stdout], [], [], PREPARED)
    d.run(0.1)
    assert "/nowhere/motion.npz" in node.health.open["prepare"][1]
    node.preparation._process.send_signal(signal.SIGSTOP)  # it cannot answer before it ends
    node.preparation._send({"do": "way", "q": []})
    node.preparation._process.kill()
    node.preparation._process.wait()
    d.run(0.1)
    assert "ended" in node.health.open["prepare"][1] and "joint_commands" not in d.bus.newest
    node.motion = None
    assert d.call("reset").success
    d.prepare()
    assert isinstance(node.motion, DynamicMotion) and d.state == "STAND"
