"""Who operates a soaked robot: a node that waits to be told to go on is told so, and no other is."""

import threading

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import Trigger

from evidence.studies.companion import Companion
from evidence.studies.soak.intruder import NOTHING_DONE, OPERATE, TOLD_TO_GO_ON
from humanoid_control.nodes.base.messages import EVENTS
from test.places import domain

pytestmark = [pytest.mark.ros, pytest.mark.patient]


class Stopped:
    """A node that says on /diagnostics what it waits for, until it is told to go on."""

    def __init__(self, message):
        self.message, self.told = message, 0
        self.node = rclpy.create_node("whole_body_ik")
        self.publisher = self.node.create_publisher(DiagnosticArray, "/diagnostics", EVENTS)
        self.node.create_service(Trigger, "~/resync", self.resync)
        self.node.create_timer(0.2, self.tell)

    def resync(self, _, response):
        self.told, self.message, response.success = self.told + 1, "", True
        return response

    def tell(self):
        status = DiagnosticStatus(name="whole_body_ik", message=self.message)
        self.publisher.publish(DiagnosticArray(status=[status]))


@pytest.fixture
def intruder(monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", domain("nodes"))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    monkeypatch.setenv("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")
    with Companion("soak.intruder", "hrp2") as companion:
        assert companion.heard() == "ready"
        yield companion


@pytest.mark.nightly
def test_a_node_that_waits_is_told_to_go_on_once_and_one_that_does_not_is_left_alone(intruder):
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    stopped, executor = Stopped("hip: 0.22 rad from its command: stopped; ~/resync resumes"), SingleThreadedExecutor()
    executor.add_node(stopped.node)
    thread = threading.Thread(target=executor.spin, daemon=True)
    thread.start()
    try:
        for answer in (TOLD_TO_GO_ON, NOTHING_DONE):
            intruder.say(OPERATE)
            assert intruder.heard() == answer
        assert stopped.told == 1
    finally:
        executor.shutdown()
        thread.join(5.0)
        stopped.node.destroy_node()
        rclpy.try_shutdown()
