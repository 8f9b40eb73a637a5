"""The pad for a velocity: what it takes for one, when it asks for nothing, and how a page shows it for a policy."""

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("viser")

from humanoid_control.robots import load_robot
from humanoid_control.viewer import page_address, velocity_pad
from humanoid_control.viewer.browser import find_chromium
from humanoid_control.viewer.page import SILENT, ViewerPage, ViewState
from humanoid_control.viewer.panel import HIDDEN, PanelActions
from humanoid_control.viewer.policy_controls import PolicyActions
from humanoid_control.viewer.velocity_pad import ALIVE, VelocityPad, read_pad
from test.places import port

NAME = "/robot/policy"


def test_only_three_numbers_of_the_pad_are_a_velocity():
    assert read_pad("pad 0.5 -2 0 17").tolist() == [0.5, -1.0, 0.0], "no more than the rim"
    for text in ("pad", "pad 0.5 0.1", "pad a b c 1", "0.5 0 0 1", "pad nan 0 0 1", ""):
        assert read_pad(text) is None


@pytest.fixture
def pad(monkeypatch):
    """A pad without a page: what it asked for, and whether its browser has the token."""
    moved, allowed, clock = [], [True], [100.0]

    def made(value, visible):
        handle = SimpleNamespace(value=value, visible=visible)
        handle.on_update = lambda function: setattr(handle, "call", function)
        return handle

    gui = SimpleNamespace(
        add_html=lambda text, visible: made("", visible), add_text=lambda label, value, visible: made(value, visible)
    )
    monkeypatch.setattr(velocity_pad, "may_command", lambda server, event: allowed[0])
    monkeypatch.setattr(velocity_pad, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    one = VelocityPad(SimpleNamespace(gui=gui), lambda v: moved.append(v.tolist()))

    def say(text):
        one._field.value = text
        one._field.call(None)

    return SimpleNamespace(pad=one, moved=moved, allowed=allowed, clock=clock, say=say)


def test_a_page_that_is_silent_asks_for_zero_once(pad):
    pad.say("pad 1 0 0 1")
    pad.pad.update(100.0 + 0.9 * ALIVE)
    pad.pad.update(100.0 + 1.1 * ALIVE)
    pad.pad.update(100.0 + 2.0 * ALIVE)
    assert pad.moved == [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def test_a_pad_that_is_hidden_asks_for_zero_once(pad):
    pad.say("pad 0 0 -1 1")
    pad.pad.update(100.0)
    pad.pad.show(False)
    pad.pad.update(100.0)
    pad.pad.update(100.0)
    assert pad.moved == [[0.0, 0.0, -1.0], [0.0, 0.0, 0.0]] and not pad.pad._field.visible


def test_a_pad_that_is_shown_again_has_forgotten_what_it_asked_for(pad):
    pad.say("pad 0 0 -1 1")
    pad.pad.show(False)
    pad.say("pad 1 0 0 2")  # was on its way
    pad.pad.show(True)
    pad.pad.update(100.0)
    assert pad.moved == []


def test_zero_that_overtakes_a_velocity_is_not_forgotten(pad, monkeypatch):
    """Each update is taken by a thread of its own; the first one is paused while it looks for the token."""
    threads = []

    def slow(server, event):
        pad.pad._field.value = "pad 0 0 0 2"
        threads.append(threading.Thread(target=pad.pad._field.call, args=(None,)))
        threads[0].start()
        threads[0].join(0.2)
        return True

    monkeypatch.setattr(velocity_pad, "may_command", slow)
    pad.say("pad 1 0 0 1")
    threads[0].join()
    pad.pad.update(100.0)
    assert pad.moved == []


def test_zero_needs_no_token_and_a_velocity_does(pad):
    pad.allowed[0] = False
    pad.say("pad 1 0 0 1")
    pad.pad.update(100.0)
    assert pad.moved == []
    pad.allowed[0] = True
    pad.say("pad 1 0 0 2")
    pad.pad.update(100.0)
    pad.allowed[0] = False
    pad.say("pad 0 0 0 3")
    pad.pad.update(100.0)
    assert pad.moved == [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def told(state, follows="True", robot=None):
    """What a page has heard of a policy."""
    view = ViewState(robot or load_robot("hrp2", "fixed"))
    view.on_policy(SimpleNamespace(data=state))
    values = [SimpleNamespace(key="follows_velocity", value=follows), SimpleNamespace(key="reason", value="<tilted>")]
    view.on_diagnostics(SimpleNamespace(status=[SimpleNamespace(name=NAME, level=0, message="ok", values=values)]))
    return view


def test_a_policy_is_driven_while_it_runs_and_follows_a_velocity():
    for state, driven in (("STAND_IN", 1), ("RUN", 1), ("CATCH", 1), ("WAITING", 0), ("SIT", 0), ("DAMP", 0), ("", 0)):
        assert told(state).policy_is_driven() == bool(driven), state
    assert told("SIT").policy_status()[1].values["reason"] == "<tilted>"
    assert not told("RUN", "False").policy_is_driven(), "a tracker follows a motion"
    assert not told("RUN").policy_is_driven(time.monotonic() + SILENT + 1.0), "its node has ended"
    assert not ViewState(load_robot("hrp2", "fixed")).policy_is_driven()


@pytest.mark.nightly
@pytest.mark.browser
@pytest.mark.patient
@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="needs Chromium: install the package 'chromium'")
def test_the_page_shows_the_pad_for_a_policy_and_its_keys_end_with_the_page_s_sight(chromium):
    said, nothing = [], [lambda *_: None] * 5
    policy = PolicyActions(lambda request: True, lambda v: said.append(v.tolist()))
    p, robot = port(12), load_robot("hrp2", "fixed")
    page = ViewerPage("127.0.0.1", p, robot, PanelActions(*nothing, policy=policy), hidden=(*HIDDEN, "shadows"))

    def until(condition, what, state="RUN"):
        end = time.monotonic() + 60.0
        while not condition():
            assert time.monotonic() < end, f"{what}: {said[-5:]}"
            page.draw(told(state, robot=robot), 0.0, time.monotonic())
            chromium.sleep(0.05)
            page.panel.policy.pad.update(time.monotonic())

    def seen(name="walk-pad"):
        return chromium.evaluate(f"!!document.getElementById('{name}')?.offsetParent")

    def key(kind):
        chromium.call("Input.dispatchKeyEvent", type=kind, key="ArrowUp", code="ArrowUp")

    def hide(hidden):
        chromium.evaluate(
            f"(() => {{ Object.defineProperty(document, 'hidden', {{value: {hidden}, configurable: true}});"
            "document.dispatchEvent(new Event('visibilitychange')) })()"
        )

    try:
        chromium.open(page_address(p, "127.0.0.1"), 1)
        assert chromium.wait_for("waiting for joint states")
        assert not seen(), "no policy was heard yet"
        until(seen, "the pad of a policy that runs")
        field = "[...document.querySelectorAll('input')].find(i => /^pad/.test(i.value))"
        until(lambda: not chromium.evaluate(f"!!{field}?.offsetParent"), "the field of the pad is not seen")
        key("keyDown")
        until(lambda: said and said[-1] == [1.0, 0.0, 0.0], "an arrow key moves the robot")
        hide("true")
        until(lambda: said[-1] == [0.0, 0.0, 0.0], "a page that nobody sees asks for nothing")
        hide("false")
        key("keyUp")
        key("keyDown")
        until(lambda: said[-1] == [1.0, 0.0, 0.0], "seen again")
        until(lambda: not seen() and said[-1] == [0.0, 0.0, 0.0], "no pad once the robot is lowered", state="SIT")
        key("keyUp")
        until(seen, "and again", state="RUN")
        assert np.allclose(said[-1], 0.0)
    finally:
        page.stop()
