"""Controls of a tendon-driven robot on the page: requests, a cut tendon, co-contraction, tendons by tension (TC-08)."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from humanoid_control.robots import load_robot
from humanoid_control.robots.tendons import tendons_of
from humanoid_control.viewer import page_address
from humanoid_control.viewer.browser import find_chromium
from humanoid_control.viewer.page import ViewerPage
from humanoid_control.viewer.panel import HIDDEN, PanelActions
from humanoid_control.viewer.tendon_controls import REQUESTS, TendonActions
from test.places import port


@pytest.mark.nightly
@pytest.mark.browser
@pytest.mark.patient
@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="needs Chromium: install the package 'chromium'")
def test_buttons_ask_for_what_they_say(chromium):
    said = []
    robot = load_robot("kengoro_upper", "fixed")
    actions = TendonActions(
        tendons_of(robot).names,
        lambda name: said.append(("request", name)),
        lambda tendon: said.append(("cut", tendon)),
        lambda tension: said.append(("co-contraction", tension)),
    )
    p = port(9)
    page = ViewerPage(
        "127.0.0.1", p, robot, PanelActions(*[lambda *_: None] * 5, tendons=actions), hidden=(*HIDDEN, "shadows")
    )

    def until(condition, what):
        end = time.monotonic() + 60.0
        while not condition():
            assert time.monotonic() < end, f"{what}: {said} {chromium.text()[:500]}"
            chromium.sleep(0.05)

    def press(label):
        find = f"[...document.querySelectorAll('button')].find(b => b.innerText.trim() == '{label}').click()"
        chromium.evaluate(find)

    try:
        chromium.open(page_address(p, "127.0.0.1"), 1)
        until(lambda: "cut this tendon" in chromium.text(), "the controls")
        assert "play" not in chromium.text().split("Tendons")[0], "no clip is played"
        for name in REQUESTS:
            press(name)
            until(lambda n=name: said[-1:] == [("request", n)], name)
        press("cut this tendon")
        until(lambda: said[-1] == ("cut", "l_biceps"), "the tendon that is chosen at first")
        press("repair all tendons")
        until(lambda: said[-1] == ("cut", ""), "none is cut")
        page.panel.tendons.answer("wires are held")
        until(lambda: "wires are held" in chromium.text(), "the answer")
    finally:
        page.stop()


def test_tendons_are_coloured_by_their_tension():
    rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")
    assert rclpy is not None
    from humanoid_control.nodes.estimating.tendon_reports import (
        BLUE,
        EXCLUDED,
        GREEN,
        RED,
        SLACK,
        YELLOW,
        TendonMarkers,
    )
    from humanoid_control.robots.tendons import tendon_groups, tendon_mappings
    from humanoid_control.tendons import EstimatorSettings, TendonEstimator

    robot = load_robot("kengoro_upper", "fixed")
    groups = tendon_groups(robot)
    estimator = TendonEstimator(groups, tendon_mappings(robot, groups), EstimatorSettings("absolute"))
    node = SimpleNamespace(create_publisher=lambda *_: None, params=SimpleNamespace(colour="tension"))
    markers = TendonMarkers(node, robot, estimator)
    names = estimator.muscle_names
    most = {t.name: t.max_tension for t in tendons_of(robot)}
    shares = {names[0]: (0.0, BLUE), names[1]: (1 / 3, GREEN), names[2]: (2 / 3, YELLOW), names[3]: (1.0, RED)}
    markers.tensions = np.full(46, 10.0)
    for name, (share, _) in shares.items():
        markers.tensions[names.index(name)] = 10 + share * (most[name] - 10)
    markers.tensions[5], markers.tensions[6] = 2.0, np.nan
    estimator.faults.excluded[7] = True
    colors = markers.colors()
    for name, (_, color) in shares.items():
        assert colors[names.index(name)] == pytest.approx(color), name
    assert colors[5] == pytest.approx(SLACK) and colors[6] == pytest.approx(SLACK)
    assert colors[7] == pytest.approx(EXCLUDED)
    ends, drawn = markers.lines()
    assert len(ends) == len(drawn) and np.isfinite(drawn).all()
