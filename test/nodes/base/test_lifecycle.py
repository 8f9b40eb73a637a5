"""A node cleaned up and configured again is the same node: nothing twice on the graph, no message taken twice."""

import time

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from humanoid_control.nodes import NODES
from test.nodes.needed_files import policy_parameters, winch_parameters
from test.places import port
from test.robots_under_test import nightly

pytestmark = [pytest.mark.ros, pytest.mark.patient]
CONFIGURE, CLEANUP, ACTIVATE, DEACTIVATE = (
    Transition.TRANSITION_CONFIGURE,
    Transition.TRANSITION_CLEANUP,
    Transition.TRANSITION_ACTIVATE,
    Transition.TRANSITION_DEACTIVATE,
)
SHORT = ("simulator", "whole_body_ik")  # in the default lane; the others nightly
OWN = {
    "viewer": (f"port:={port(10)}", "walking:=true"),
    "trajectory_streamer": ("solve:=true",),
    "simulator": ("robot:=lola", "base:=floating", "tendons:=false"),
    "walker": ("robot:=lola",),
    "robot_driver": ("hardware:=loopback",),
}

COUNTER = """
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.tick_node import TickNode
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

class Counter(TickNode):
    node_name = "counter"
    taken = served = polled = 0

    def configure(self):
        self.heard = self.create_publisher(JointState, "heard", 50)
        self.listen(JointState, "numbers", self.on_numbers, 50)
        self.look = self.poll(JointState, "waiting", self.on_waiting)
        self.create_service(Trigger, "~/count", self.on_count)
        self.create_timer(0.01, self.on_timer)
        self.timed = 0
        return 50.0

    def on_numbers(self, message):
        self.taken += 1
        self.heard.publish(message)

    def on_waiting(self, data):
        self.polled += 1
        assert len(data) > 100, "too short"

    def on_count(self, request, response):
        self.look()
        self.served += 1
        return response

    def on_timer(self):
        self.timed += 1

    def values(self):
        return {"taken": self.taken, "served": self.served, "polled": self.polled,
                "timers": len(list(self.timers)), "timed": self.timed}

if __name__ == "__main__":
    main_of(Counter)
"""


def change(graph, node: str, *transitions: int) -> None:
    for transition in transitions:
        request = ChangeState.Request(transition=Transition(id=transition))
        assert graph.call(ChangeState, f"/{node}/change_state", request).success, f"{node}: transition {transition}"


def endpoints(graph, node: str) -> dict[str, tuple[int, int]]:
    """Publishers and subscriptions of a node by topic; servers and clients of its services and those it calls."""
    found, mine = {}, graph.node
    for topic, _ in mine.get_topic_names_and_types():
        ours = [
            sum(end.node_name == node for end in ends(topic))
            for ends in (mine.get_publishers_info_by_topic, mine.get_subscriptions_info_by_topic)
        ]
        if any(ours):
            found[topic] = tuple(ours)
    for service, _ in mine.get_service_names_and_types_by_node(node, "/"):
        if not service.endswith("change_state"):  # which this test itself calls
            found[service] = (mine.count_services(service), 0)
    for service, _ in mine.get_client_names_and_types_by_node(node, "/"):
        found[service] = (0, mine.count_clients(service))
    return found


@pytest.mark.parametrize("node", [n if n in SHORT else nightly(n) for n in NODES])
def test_five_rounds_of_configuring_leave_nothing_twice_on_the_graph(graph, node):
    own = OWN.get(node, ())
    if node == "tendon_driver":
        own = winch_parameters(graph.folder)
    elif node == "policy" and (own := policy_parameters()) is None:
        pytest.skip("needs a public policy: set HUMANOID_TEST_DATA to the folder that holds them")
    process = graph.start(node, "autostart:=false", *own)
    graph.until(lambda: f"/{node}/change_state" in dict(endpoints_of_services(graph, node)), "its services")
    settled(graph, lambda: endpoints(graph, node))
    bare, first = endpoints(graph, node), None
    for _ in range(5):
        change(graph, node, CONFIGURE)
        graph.until(lambda: endpoints(graph, node) != bare, f"{node} on the graph")
        if first is None:
            first = settled(graph, lambda: endpoints(graph, node))
            assert len(first) > len(bare)
        graph.until(
            lambda first=first: endpoints(graph, node) == first, f"the endpoints of {node} as at first: {first}"
        )
        change(graph, node, CLEANUP)
        graph.until(lambda: endpoints(graph, node) == bare, f"nothing of {node} left: {bare}")
    change(graph, node, CONFIGURE)
    said = graph.diagnostics(node)
    assert said["state"] == "inactive" and "failed" not in said["message"], said
    change(graph, node, ACTIVATE)
    assert graph.stop(process)[0] == 0, graph.output(process)


def endpoints_of_services(graph, node):
    try:
        return graph.node.get_service_names_and_types_by_node(node, "/")
    except rclpy.node.NodeNameNonExistentError:
        return []


def settled(graph, look, quiet: float = 1.5):
    """What is seen once it has not changed for a while [s]."""
    seen, since = look(), time.monotonic()

    def still() -> bool:
        nonlocal seen, since
        if (now := look()) != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since > quiet

    graph.until(still, "a graph that does not change")
    return seen


@pytest.mark.nightly
def test_after_five_rounds_each_message_is_taken_once(graph, tmp_path):
    script = tmp_path / "counter.py"
    script.write_text(COUNTER)
    graph.start(str(script))
    for _ in range(5):
        change(graph, "counter", DEACTIVATE, CLEANUP, CONFIGURE, ACTIVATE)
    heard, numbers = graph.listen(JointState, "heard"), graph.publisher(JointState, "numbers", 50)
    asked = JointState(position=[-1.0])  # until both ends have found each other: what is sent before that is lost
    graph.until(lambda: heard, "an answer", meanwhile=lambda: numbers.publish(asked))
    graph.spin(0.3)
    before = int(graph.diagnostics("counter")["taken"])
    heard.clear()
    for k in range(20):
        numbers.publish(JointState(position=[float(k)]))
        graph.until(lambda k=k: any(m.position[0] == k for m in heard), f"message {k}")
    assert int(graph.diagnostics("counter")["taken"]) - before == 20
    assert [m.position[0] for m in heard] == list(range(20))
    assert int(graph.diagnostics("counter")["timers"]) == 1
    waiting = graph.publisher(JointState, "waiting", 50)

    def polled() -> int:
        return int(graph.diagnostics("counter")["polled"])

    def look() -> None:
        graph.call(Trigger, "/counter/count", Trigger.Request())

    def found() -> bool:
        waiting.publish(JointState(name=["a" * 100]))
        look()
        return polled() > 0

    graph.until(found, "one that polls")
    graph.spin(0.3)
    look()
    graph.spin(1.5)  # of diagnostics
    before = polled()
    for k in range(5):
        waiting.publish(JointState(name=["a" * 100 if k < 4 else ""]))
    graph.spin(1.5)
    assert polled() == before, "nobody has looked"
    look()
    graph.until(lambda: polled() == before + 5, "all of them at one look")
    assert "message on waiting failed, ignored: AssertionError: too short" in graph.diagnostics("counter")["message"]
