"""Controls of a walking robot: the pad by mouse and by arrow keys, buttons, and what a page that is closed asks for."""

import time

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.robots import load_robot
from humanoid_control.viewer import page_address
from humanoid_control.viewer.browser import find_chromium
from humanoid_control.viewer.page import ViewerPage
from humanoid_control.viewer.panel import HIDDEN, PanelActions
from humanoid_control.viewer.velocity_pad import ALIVE
from humanoid_control.viewer.walk_controls import WalkActions, in_root_axes
from test.places import port


def test_a_push_goes_where_the_robot_looks():
    """Lola's root is turned against her heading; a push forward is one along the heading, whatever the root's axes."""
    robot = load_robot("lola", "fixed")
    upright = robot.link_poses(robot.q("neutral"))[robot.root_link].rotation
    for yaw in (0.0, 0.7, -2.0):
        heading = pin.rpy.rpyToMatrix(0.0, 0.0, yaw)
        X = pin.SE3(heading @ upright, np.zeros(3))
        f = in_root_axes(np.array([100.0, 0.0, 0.0]), X, upright)
        np.testing.assert_allclose(X.rotation @ f, heading @ [100.0, 0.0, 0.0], atol=1e-9)


@pytest.mark.nightly
@pytest.mark.browser
@pytest.mark.patient
@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="needs Chromium: install the package 'chromium'")
def test_pad_keys_and_buttons_of_the_page(chromium):
    """Some 15 s, most of them the browser's."""
    said, nothing = [], [lambda *_: None] * 5
    walk = WalkActions(
        lambda v: said.append(("move", *v.tolist())),
        lambda f: said.append(("push", *f.tolist())),
        lambda name: said.append(("call", name)),
    )
    p = port(7)
    actions = PanelActions(*nothing, walk)
    page = ViewerPage("127.0.0.1", p, load_robot("hrp2", "fixed"), actions, hidden=(*HIDDEN, "shadows"))

    def until(condition, what):
        end = time.monotonic() + 60.0
        while not condition():
            assert time.monotonic() < end, f"{what}: {said[-5:]}"
            chromium.sleep(0.05)
            page.panel.walk.pad.update(time.monotonic())

    def key(kind, name):
        chromium.call("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def mouse(kind, dx, dy):
        x, y, w = chromium.evaluate(
            "(() => { const r = document.getElementById('walk-pad').getBoundingClientRect();"
            "return [r.left, r.top, r.width] })()"
        )
        at = {"x": x + w / 2 + dx * w, "y": y + w / 2 + dy * w}
        chromium.call("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, clickCount=1, **at)

    try:
        chromium.open(page_address(p, "127.0.0.1"), 1)
        assert chromium.wait_for("emergency stop")
        hidden = "!(e => e && e.offsetParent)([...document.querySelectorAll('input')].find(i => /^pad/.test(i.value)))"
        until(lambda: chromium.evaluate(hidden), "the field of the pad is not seen")
        key("keyDown", "ArrowUp")
        until(lambda: ("move", 1.0, 0.0, 0.0) in said, "an arrow key moves the robot")
        held = len(said)
        until(lambda: len(said) > held + 20, "and goes on while it is held")
        key("keyUp", "ArrowUp")
        until(lambda: said[-1] == ("move", 0.0, 0.0, 0.0), "let go")
        mouse("mousePressed", 0.0, 0.0)
        mouse("mouseMoved", -0.25, -0.25)
        until(lambda: np.allclose(said[-1][1:], [0.5, 0.0, 0.5], atol=0.05), "up and left: forward, turning left")
        mouse("mouseReleased", -0.25, -0.25)
        until(lambda: said[-1] == ("move", 0.0, 0.0, 0.0), "let go")
        for label, answer in (("emergency stop", ("call", "emergency stop")), ("left", ("push", 0.0, 100.0, 0.0))):
            find = f"[...document.querySelectorAll('button')].find(b => b.innerText.trim() == '{label}').click()"
            chromium.evaluate(find)
            until(lambda a=answer: a in said, label)
        key("keyDown", "ArrowLeft")
        until(lambda: said[-1] == ("move", 0.0, 0.0, 1.0), "turning left")
        chromium.open("about:blank", 0.0)
        gone = time.monotonic()
        until(lambda: said[-1] == ("move", 0.0, 0.0, 0.0), "a page that is closed asks for nothing")
        assert time.monotonic() - gone < ALIVE + 5.0
    finally:
        page.stop()
