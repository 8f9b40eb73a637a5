"""A policy in the panel: state, buttons and the observation as bars, without a browser."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("viser")

from humanoid_control.robots import load_robot
from humanoid_control.viewer import policy_controls
from humanoid_control.viewer.page import ViewState
from humanoid_control.viewer.policy_controls import PolicyActions, PolicyControls, bars_of


class Handle(SimpleNamespace):
    """A widget of the page."""

    def on_click(self, function):
        self.click = function
        return function

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def controls(monkeypatch):
    buttons, asked, there, allowed = {}, [], [True], [True]
    gui = SimpleNamespace(
        add_folder=lambda name, visible: Handle(visible=visible),
        add_html=lambda text, visible=True: Handle(content=text, visible=visible),
        add_button=lambda label, **_: buttons.setdefault(label, Handle()),
    )
    monkeypatch.setattr(policy_controls, "may_command", lambda server, event: allowed[0])
    made = PolicyControls(SimpleNamespace(gui=gui), PolicyActions(lambda r: asked.append(r) or there[0]))
    return made, buttons, asked, there, allowed


def test_it_shows_itself_once_a_policy_was_heard_and_why_it_is_in_its_state(controls):
    made, *_ = controls
    made.set_state("")
    assert not made._folder.visible
    made.set_state("SIT", "tilted by 0.6 rad <b>")
    assert made._folder.visible and "SIT" in made._state.content and "&lt;b&gt;" in made._state.content


def test_a_stop_needs_no_token_and_a_start_does(controls):
    made, buttons, asked, there, allowed = controls
    allowed[0] = False
    buttons["STOP"].click(None)
    buttons["START"].click(None)
    assert asked == ["stop"] and "start" in made._answer.content
    allowed[0], there[0] = True, False
    buttons["SWITCH"].click(None)
    assert asked == ["stop", "switch"] and "no policy node is running" in made._answer.content


def test_terms_are_bars_of_their_height_about_the_middle():
    text = bars_of({"gravity": [0.0, 1.5, -3.0, 9.0, float("nan")], "<x>": [0.3]})
    heights = [int(h) for h in re.findall(r"height:(\d+)%", text)]
    tops = [int(t) for t in re.findall(r"top:(\d+)%", text)]
    assert heights == [2, 25, 50, 50, 2, 5] and tops == [50, 25, 50, 0, 50, 45]
    assert text.count("#c92a2a") == 2 and "&lt;x&gt;" in text and bars_of({}) == ""


def test_the_page_splits_the_terms_by_the_dimensions_of_the_message():
    state = ViewState(load_robot("hrp2", "fixed"))
    dims = [SimpleNamespace(label="a", size=2), SimpleNamespace(label="b", size=3)]
    message = SimpleNamespace(layout=SimpleNamespace(dim=dims), data=np.arange(5.0))
    state.on_terms(message)
    assert state.terms == {"a": [0.0, 1.0], "b": [2.0, 3.0, 4.0]}
    state.on_policy(SimpleNamespace(data="RUN"))
    assert state.policy == "RUN"
