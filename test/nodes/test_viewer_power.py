"""The page's power controls and the driver over DDS, without a browser: buttons, answers, what the page is told."""

from dataclasses import replace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")
pytest.importorskip("viser", reason="needs viser: pip install 'humanoid_control[viewer]'")

from humanoid_control.nodes.viewer import Viewer
from humanoid_control.viewer.page import ViewerPage
from test.nodes.test_robot_driver import Desk
from test.places import port

pytestmark = [pytest.mark.ros, pytest.mark.patient]


@pytest.fixture
def viewer(graph, monkeypatch):
    """The node in this process, with a page that it takes for open."""
    monkeypatch.setattr(ViewerPage, "clients", 1)
    node = Viewer()
    node.params = replace(node.params, robot="hrp2", port=port(11), shadows=False, priority=0)
    assert "success" in str(node.trigger_configure()).lower()
    node.trigger_activate()
    graph.executor.add_node(node)
    yield node
    node.close()
    graph.executor.remove_node(node)
    node.destroy_node()


def test_buttons_reach_the_driver_and_its_words_the_page(graph, viewer):
    desk, power = Desk(graph), viewer.page.panel.power

    def shows(what, *words):
        graph.until(lambda: all(w in what.content for w in words), f"{words} on the page", meanwhile=tick)

    def tick():
        viewer.run_tick(0)

    shows(power._state, "MONITOR")
    shows(power._figures, "bus both", "supply of both", "48.0 V", "l_elbow_flexion", "25.0")
    assert power._folder.visible

    graph.until(lambda: all(c.service_is_ready() for c in viewer.requests.values()), "services", meanwhile=tick)
    power.ask("stop")
    shows(power._answer, "stop refused", "nothing to stop: MONITOR")
    power.ask("enable")
    shows(power._answer, "enable</b>: done")
    shows(power._state, "HOLD")
    power.ask("disable")
    shows(power._state, "MONITOR")
    power.ask("estop")
    shows(power._state, "ESTOP", "emergency stop by ~/emergency_stop")
    power.ask("enable")
    shows(power._answer, "enable refused", "state is ESTOP")
    power.ask("clear")
    shows(power._answer, "clear refused", "emergency stop by ~/emergency_stop")
    power.ask("release")
    shows(power._answer, "release</b>: done")
    power.ask("clear")
    shows(power._state, "MONITOR")

    assert graph.stop(desk.process)[0] == 0
    shows(power._state, "OFFLINE", "the driver has ended")
