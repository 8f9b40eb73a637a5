"""The page's pad for a policy over DDS, without a browser: it appears with a policy that follows a velocity."""

import time
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")
pytest.importorskip("viser", reason="needs viser: pip install 'humanoid_control[viewer]'")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Twist, TwistStamped
from std_msgs.msg import String

from humanoid_control.nodes.base.messages import LATCHED
from humanoid_control.nodes.viewer import Viewer
from humanoid_control.viewer.page import ViewerPage
from test.places import port

pytestmark = [pytest.mark.ros, pytest.mark.patient]


@pytest.fixture
def viewer(graph, monkeypatch):
    """The node in this process, with a page that it takes for open."""
    monkeypatch.setattr(ViewerPage, "clients", 1)
    node = Viewer()
    node.params = replace(node.params, robot="hrp2", port=port(13), shadows=False, priority=0, pad_speeds="0.5,0.2,0.8")
    assert "success" in str(node.trigger_configure()).lower()
    node.trigger_activate()
    graph.executor.add_node(node)
    yield node
    node.close()
    graph.executor.remove_node(node)
    node.destroy_node()


def diagnostics(follows):
    value = KeyValue(key="follows_velocity", value=str(follows))
    return DiagnosticArray(status=[DiagnosticStatus(name="/policy", values=[value])])


@pytest.mark.parametrize("kind", [Twist, TwistStamped])
def test_the_pad_of_a_policy_moves_it_by_the_message_that_it_takes(graph, viewer, kind):
    heard = graph.listen(kind, "cmd_vel")
    state, told = graph.publisher(String, "policy/state", LATCHED), graph.publisher(DiagnosticArray, "/diagnostics")
    pad, asked = viewer.page.panel.policy.pad, [np.zeros(3)]
    twist = (lambda m: m.twist) if kind is TwistStamped else (lambda m: m)

    def tick():
        told.publish(diagnostics(True))
        pad._velocity, pad._heard = asked[0], time.monotonic()
        viewer.run_tick(0)

    assert not pad._drawing.visible
    state.publish(String(data="RUN"))
    graph.until(lambda: pad._drawing.visible, "the pad", meanwhile=tick)
    assert not heard and not viewer.count_publishers("cmd_vel"), "a page that nobody uses publishes nothing"
    asked[0] = np.array([1.0, 0.0, -0.5])
    graph.until(lambda: heard, "a velocity", meanwhile=tick)
    found = twist(heard[-1])
    assert (found.linear.x, found.linear.y, found.angular.z) == (0.5, 0.0, -0.4)
    if kind is TwistStamped:
        assert heard[-1].header.frame_id == "" and heard[-1].header.stamp.sec > 0
    state.publish(String(data="SIT"))
    graph.until(lambda: twist(heard[-1]).linear.x == 0.0, "zero once the robot is lowered", meanwhile=tick)
    assert not pad._drawing.visible
