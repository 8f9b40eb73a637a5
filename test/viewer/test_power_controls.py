"""Controls of a robot's power on the page: state, buttons, refusals in words, joints by temperature, buses."""

import time
from types import SimpleNamespace

import pytest

from humanoid_control.kinematics import NodeStatus
from humanoid_control.robots import load_robot
from humanoid_control.viewer import page_address
from humanoid_control.viewer.browser import find_chromium
from humanoid_control.viewer.page import ViewerPage, ViewState
from humanoid_control.viewer.panel import HIDDEN, PanelActions
from humanoid_control.viewer.power_controls import PATIENCE, PowerActions, bus_line, joint_table
from test.places import port

NOTHING = [lambda *_: None] * 5
JOINTS = NodeStatus(
    0, "ok", {"temperature cold": "21.0", "temperature hot": "61.5", "temperature warm": "40.2",
              "following_error hot": "0.0123", "following_error blind": "0.5"},
)  # fmt: skip
BUS = NodeStatus(
    1, "3.0 % of the samples are lost", {"load_percent": "45.0", "sent_hz": "500.2", "received_hz": "2500.0",
                                         "missed_percent": "3.0", "lost_samples": "17", "errors": "2"},
)  # fmt: skip


def test_joints_are_ordered_by_temperature_where_it_is_measured():
    table = joint_table(JOINTS)
    assert table.index(">hot<") < table.index(">warm<") < table.index(">cold<")
    assert "61.5" in table and "0.012" in table and "blind" not in table
    assert joint_table(NodeStatus(0, "ok", {"following_error blind": "0.5"})) == "", "nothing is measured"
    wrong = joint_table(NodeStatus(0, "ok", {"temperature <b>": "much"}))
    assert "&lt;b&gt;" in wrong and "<b>" not in wrong


def test_a_bus_is_told_in_a_line():
    line = bus_line("bus <legs>", BUS)
    for words in (
        "bus &lt;legs&gt;",
        "3.0 % of the samples are lost",
        "45.0 % full",
        "500/s out, 2500/s in",
        "17 lost",
    ):
        assert words in line
    assert "full" not in bus_line("bus b", NodeStatus(0, "ok", {"load_percent": "0.0"})), "where it does not matter"


@pytest.fixture(scope="module")
def page():
    asked, there = [], [True]
    actions = PanelActions(*NOTHING, None, PowerActions(lambda r: asked.append(r) or there[0]))
    page = ViewerPage("127.0.0.1", port(8), load_robot("hrp2", "fixed"), actions, hidden=(*HIDDEN, "shadows"))
    page.asked, page.there = asked, there  # what was asked for; whether there is a driver
    yield page
    page.stop()


def test_what_nobody_answers_is_said(page):
    power, page.there[0] = page.panel.power, True
    assert not power._folder.visible, "a robot without a driver has no such bar"
    power.set_state("MONITOR")
    assert power._folder.visible
    power.ask("enable")
    now = time.monotonic()
    power.update(now + 0.5 * PATIENCE)
    assert not power._answer.visible
    power.update(now + PATIENCE + 1.0)
    assert "no response for 5 s" in power._answer.content
    power.answer("enable", True, "")
    power.update(now + 3 * PATIENCE)
    assert "enable</b>: done" in power._answer.content, "it was answered in the end"
    page.there[0] = False
    power.ask("stop")
    assert "no driver node is running" in power._answer.content
    power.set_state("")
    assert not power._folder.visible


def test_words_of_the_supply(page):
    state = ViewState(page.robot)
    nan = float("nan")
    state.on_battery(SimpleNamespace(location="legs", voltage=47.96, current=-0.001, percentage=nan))
    state.on_battery(SimpleNamespace(location="arms", voltage=nan, current=nan, percentage=0.83))
    assert state.supplies == {"legs": "48.0 V, 0.0 A", "arms": "83 % charged"}


@pytest.mark.browser
@pytest.mark.patient
@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="needs Chromium: install the package 'chromium'")
def test_the_bar_in_the_browser(chromium, page):
    """State and reason, every button, a refusal on the page, the hottest joint first. Some 10 s."""
    page.there[0] = True
    state = ViewState(page.robot)
    state.joints[:] = page.robot.postures["neutral"]

    def until(condition, what):
        end = time.monotonic() + 60.0
        while not condition():
            assert time.monotonic() < end, f"{what}: {page.asked} {chromium.text()[:800]}"
            page.draw(state, 0.0, time.monotonic())
            chromium.sleep(0.05)

    def press(label):
        find = f"[...document.querySelectorAll('button')].find(b => b.innerText.trim() == '{label}').click()"
        chromium.evaluate(find)

    chromium.open(page_address(port(8), "127.0.0.1"), 1)
    until(lambda: "play" in chromium.text(), "the panel")
    assert "EMERGENCY STOP" not in chromium.text(), "without a driver"
    state.power = "HOLD: stopped: joint_commands silent for 0.10 s"
    state.parts = {("robot_driver", "joints"): JOINTS, ("robot_driver", "bus legs"): BUS}
    state.supplies = {"legs": "48.0 V, -1.2 A"}
    until(lambda: "joint_commands silent for 0.10 s" in chromium.text(), "the reason")
    text = chromium.text()
    assert "HOLD" in text and text.index("hot") < text.index("warm") < text.index("cold")
    assert "48.0 V, -1.2 A" in text and "45.0 % full" in text
    labels = {
        "ENABLE": "enable",
        "STOP": "stop",
        "EMERGENCY STOP": "estop",
        "switch off": "disable",
        "release e-stop": "release",
        "clear faults": "clear",
        "home": "home",
    }
    for label, request in labels.items():
        press(label)
        until(lambda r=request: page.asked[-1:] == [r], label)
    page.panel.power.answer("enable", False, "l_knee 0.31 rad outside its range; r_hip not calibrated")
    until(lambda: "l_knee 0.31 rad outside its range; r_hip not calibrated" in chromium.text(), "the refusal")
    assert "enable refused" in chromium.text()
    state.power = ""
    until(lambda: "EMERGENCY STOP" not in chromium.text(), "no driver any more")
