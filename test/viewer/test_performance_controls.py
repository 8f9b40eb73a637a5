"""Buttons of a robot that performs a clip."""

import time

import pytest

from humanoid_control.robots import load_robot
from humanoid_control.viewer import page_address
from humanoid_control.viewer.browser import find_chromium
from humanoid_control.viewer.page import ViewerPage
from humanoid_control.viewer.panel import HIDDEN, PanelActions
from test.places import port

LABELS = ("start", "stop", "restart")


@pytest.mark.nightly
@pytest.mark.browser
@pytest.mark.patient
@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="needs Chromium: install the package 'chromium'")
def test_a_performance_is_started_and_stopped_and_its_time_is_only_shown(chromium):
    clicked = []
    calls = [lambda name=name: clicked.append(name) for name in LABELS]
    actions = PanelActions(lambda *_: None, lambda _: None, *calls, labels=LABELS, seekable=False)
    p = port(9)
    page = ViewerPage("127.0.0.1", p, load_robot("hrp2", "fixed"), actions, hidden=(*HIDDEN, "shadows"))
    try:
        chromium.open(page_address(p, "127.0.0.1"), 1)
        assert chromium.wait_for("restart", 60)
        assert "Error of each target" not in chromium.text() and "pause" not in chromium.text()
        assert chromium.evaluate("document.querySelectorAll('[data-disabled=true]').length") > 0, "the time"
        for label in LABELS:
            find = f"[...document.querySelectorAll('button')].find(b => b.innerText.trim() == '{label}').click()"
            chromium.evaluate(find)
            end = time.monotonic() + 60.0
            while clicked[-1:] != [label]:
                assert time.monotonic() < end, f"{label}: {clicked}"
                chromium.sleep(0.05)
    finally:
        page.stop()
