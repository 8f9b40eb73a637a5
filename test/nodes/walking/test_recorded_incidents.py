"""`humanoid why` on recordings of a robot that walks: a healthy run says nothing, each injected fault comes first.

Simulator and walker are the real nodes in one process; everything that they publish is written to a bag as it is.
"""

import contextlib
import copy
import json

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import Twist, WrenchStamped
from rclpy.clock import Clock
from rclpy.serialization import serialize_message
from rclpy.time import Time
from rosbags.serde.errors import SerdeError
from sensor_msgs.msg import JointState

from humanoid_control.cli.main import main
from humanoid_control.evaluation.bag import BagWriter
from humanoid_control.evaluation.incidents import compare_runs, find_violations, read_streams
from humanoid_control.robots import load_robot
from test.evaluation.messages import TYPES
from test.nodes.walking.direct import Direct
from test.robots_under_test import nightly

BEGIN = 1.0  # [s] of walking before the fault
ROBOT = "lola"


def _bytes(message):
    """A message as it is on the wire: `serialize_message` leaves bytes at the end where an array is empty."""
    data, kind = serialize_message(message), type(message)
    name = f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"
    if kind is JointState and not all((message.position, message.velocity, message.effort)):
        for spare in range(0, 16, 4):
            with contextlib.suppress(SerdeError):
                TYPES.deserialize_cdr(data[: len(data) - spare], name)
                return data[: len(data) - spare]
    return data


class Recorded(Direct):
    """Everything on the bus goes to a bag, except what is lost on the way from a publisher, as a recorder hears it."""

    def __init__(self, monkeypatch, folder):
        self.bag = None
        # Stamps of commands come from the clock of ROS, which here goes as fast as the walk.
        monkeypatch.setattr(Clock, "now", lambda s: Time(nanoseconds=round(1e9 * self.now), clock_type=s.clock_type))
        super().__init__(monkeypatch, robot=ROBOT)
        self.bag, publish = BagWriter(folder), self.bus.publish

        def recorded(topic, message, gid=b""):
            if topic not in self.bus.silent:
                heard = self.bus.change.get(topic, lambda m: m)(message)
                name = f"/{topic.lstrip('/')}".replace("~", "simulator")
                if name not in self.bag.counts:
                    kind = type(message)
                    self.bag.add_topic(name, f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}")
                self.bag.write(name, round(1e9 * self.now), _bytes(heard))
            publish(topic, message, gid)

        self.bus.publish = recorded

    def walk(self, seconds):
        m = Twist()
        m.linear.x = 0.2
        self.run(seconds, meanwhile=lambda: self.bus.publish("cmd_vel", m))


def lean(message):
    """An IMU that leans: its orientation is turned by 15 degrees about the forward axis."""
    m = copy.deepcopy(message)
    o = m.orientation
    turned = pin.Quaternion(o.w, o.x, o.y, o.z) * pin.Quaternion(pin.exp3(np.radians([15.0, 0.0, 0.0])))
    o.x, o.y, o.z, o.w = map(float, turned.coeffs())
    return m


def beyond(message):
    """A command whose left elbow is 0.3 rad beyond its range."""
    m, robot = copy.deepcopy(message), load_robot(ROBOT, "fixed")
    j = next(k for k, n in enumerate(m.name) if "elbow" in n)
    m.position[j] = float(robot.upper[robot.index[m.name[j]]] + 0.3)
    return m


def inject(d, fault):
    """Let a fault happen now."""
    if fault == "late tick":
        d.bus.silent.add("joint_commands")
        d.walk(0.4)
        d.bus.silent.clear()
    elif fault == "estimate":
        d.bus.change["imu"] = lean
    elif fault == "limit":
        d.bus.change["joint_commands"] = beyond
        d.walk(0.02)
        d.bus.change.clear()
    elif fault == "contact":
        push = WrenchStamped()
        push.header.frame_id = d.engine.robot.root_link
        push.wrench.force.y = 800.0
        d.run(0.5, meanwhile=lambda: d.bus.publish("~/push", push))


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """Fault -> bag, and when it was injected after the first message [s]; recorded when asked for."""
    found = {}

    def record(fault):
        if fault not in found:
            folder = tmp_path_factory.mktemp("runs") / "recording"
            with pytest.MonkeyPatch.context() as patch:
                d = Recorded(patch, folder)
                try:
                    begin = d.now
                    d.stand()
                    d.walk(BEGIN)
                    at = d.now - begin
                    inject(d, fault)
                    d.walk(1.3)
                finally:
                    d.bag.close()
                    d.close()
            found[fault] = folder, at
        return found[fault]

    return record


@pytest.mark.slow
def test_a_healthy_walk_says_nothing(recordings, capsys):
    folder, _ = recordings("none")
    found = find_violations(read_streams(folder), load_robot(ROBOT, "fixed"))
    assert not found.violations, found.violations[:5]
    assert {"limits", "contact of the feet", "estimate of the base", "commands", "falls"} <= set(found.checked)
    assert main(["why", str(folder), "--robot", ROBOT]) == 0
    assert "nothing was violated" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "source"),
    [
        nightly("late tick", "/joint_commands"),
        nightly("estimate", "/odom"),
        nightly("limit", "/joint_commands"),
        ("contact", ""),
    ],
)
def test_the_injected_fault_is_the_first_on_the_time_line(recordings, capsys, tmp_path, fault, source):
    folder, at = recordings(fault)
    page = tmp_path / "why.html"
    assert main(["why", str(folder), "--robot", ROBOT, "--json", "--html", str(page)]) == 1
    first = json.loads(capsys.readouterr().out)["runs"][0]["first"]
    assert first["kind"] == fault and source in first["source"], first
    assert at - 0.05 < first["begin"] < at + 1.2, (at, first)
    assert first["text"].split(":")[0] in page.read_text()


@pytest.mark.slow
def test_two_runs_differ_from_the_fault_on(recordings):
    (good, _), (bad, at) = recordings("none"), recordings("estimate")
    a, b = read_streams(good), read_streams(bad)
    robot = load_robot(ROBOT, "fixed")
    difference = compare_runs(a, b, (find_violations(a, robot), find_violations(b, robot)))
    states = next(s for s in difference.streams if s.topic == "/joint_states")
    begin = b.robots[""].joints["joint_commands"].received[0]
    assert states.first is not None and at - begin - 0.01 < states.first < at - begin + 1.0
    assert not difference.only_a and any(t.startswith("estimate") for t in difference.only_b)
    same = compare_runs(a, a, (find_violations(a, robot), find_violations(a, robot)))
    assert all(s.first is None and s.largest == 0 for s in same.streams) and not same.only_a
