"""The page without a browser: who dances, what is asked for, and what becomes of files that are dropped."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from humanoid_control.cli.dance import _grade
from humanoid_control.errors import RobotError
from humanoid_control.paths import share_dir
from humanoid_control.viewer.dance.controls import NO_JOINT, ControlRow, row_html
from humanoid_control.viewer.dance.loader import Loader, error_line
from humanoid_control.viewer.dance.page import DancePage, Programme
from humanoid_control.viewer.dance.stage import (
    ASIDE,
    FAIR,
    GOOD,
    POOR,
    SPACING,
    error_colors,
    slot_places,
    stage_camera,
)
from test.viewer.dance.conftest import until

CLIPS = {"dance": "dance", "gentle_dance": "gentle_dance"}


@pytest.fixture
def page(monkeypatch):
    programme = Programme(CLIPS, ("hrp2", "lola", "armar3"), ("recommended",), ("hrp2",), grade=_grade)
    made = DancePage(programme, 0)
    monkeypatch.setattr(made.server, "get_clients", lambda: {0: None})  # so that it draws
    monkeypatch.setattr(made, "_bring_cameras", lambda: None)
    yield made
    made.stop()
    assert not made.uploads.folder.exists()


def names(page):
    return [d.robot.name for d in page.dancers]


def ready(page, *robots):
    until(page, lambda: names(page) == list(robots) and not page.loader.busy, f"{robots} must dance")


@pytest.mark.nightly
def test_robots_join_and_leave_while_the_others_dance_on(page):
    ready(page, "hrp2")
    first = page.dancers[0]
    until(page, lambda: page.time > 0.5, "it plays")
    page.controls._boxes["lola"].handle.value = True
    ready(page, "hrp2", "lola")
    assert page.dancers[0] is first, "who was there dances on"
    assert page.dancers[1].time == pytest.approx(first.time, abs=0.05), "who joins is where the others are"
    until(page, lambda: page.time > 2.5, "all go on")
    assert page.dancers[1].time == pytest.approx(first.time, abs=0.05)
    places = [page.stage._robots[id(d)].frame.position[1] for d in page.dancers]
    assert np.diff(places) == pytest.approx(SPACING) and np.mean(places) == pytest.approx(0.0)
    page.controls._boxes["hrp2"].handle.value = False
    ready(page, "lola")
    page.controls._others.handle.value = "recommended"
    ready(page, "lola", "recommended")
    assert page.controls._boxes["recommended"].value


def test_play_pause_seek_speed_and_loop(page):
    ready(page, "hrp2")
    page.press("pause")
    page.tick(0.1)
    now = page.time
    for _ in range(10):
        page.tick(0.1)
    assert page.time == now
    page.controls.time.handle.value = 5.0
    page.tick(0.0)
    assert page.time == pytest.approx(5.0, abs=0.01)
    page.press("play")
    page.controls._speed.value = 0.5
    for _ in range(20):
        page.tick(0.1)
    assert page.time == pytest.approx(6.0, abs=0.03)
    page.press("restart")
    assert page.time == 0.0 and page.playing
    page.controls._loop.value = False
    page.controls._speed.value = 2.0
    for _ in range(135):
        page.tick(0.1)
    assert page.time == page.dancers[0].duration, "and there it stays"
    assert page.controls.time.value == pytest.approx(page.time, abs=0.02)
    page.press("play")
    page.tick(0.1)
    assert page.time < 1.0


def test_a_clip_that_is_dropped_is_danced_to_and_a_grade_follows(page, short_clip):
    ready(page, "hrp2")
    page.receive(short_clip.name, short_clip.read_bytes())
    until(page, lambda: page.cast.clip.endswith(short_clip.name), "the clip that was dropped")
    assert page.controls.clips.value == short_clip.name and not page.error
    duration = page.dancers[0].duration
    assert duration == pytest.approx(3.0, abs=0.05)
    until(page, lambda: "<b>hrp-2" in page.controls._table.content.lower() and page.loader.busy == "", "its row")
    assert "no grade until" in page.controls._table.content
    until(page, lambda: "grading" not in page.controls._table.content and page._grades, "a grade", passed=0.05)
    until(page, lambda: page._graded(page.dancers[0])[0] in tuple("ABCDF"), "a grade", passed=0.05)
    grade, verdict = page._graded(page.dancers[0])
    until(page, lambda: verdict in page.controls._table.content, "and why")
    assert verdict.startswith(grade)
    page.choose_clip("dance")
    until(page, lambda: page.cast.clip == CLIPS["dance"], "another clip")
    here = {id(d) for d in page.dancers}
    assert page._grades.keys() <= here and page._left.keys() <= here, "who left has no grade that another could inherit"


def test_a_broken_file_is_told_in_one_line_and_nothing_else_changes(page):
    ready(page, "hrp2")
    dancer = page.dancers[0]
    for name, content, says in (
        ("broken.bvh", b"HIERARCHY nonsense", "broken.bvh"),
        ("notes.txt", b"hello", "neither a clip nor a robot"),
        ("broken.c3d", bytes(range(256)) * 8, "broken.c3d"),
        ("broken.npz", b"PK\3\4 nothing", "broken.npz"),
    ):
        page.receive(name, content)
        until(page, lambda says=says: says in page.error and not page.loader.busy, f"{name} must be told")
        until(page, lambda says=says: says in page.controls._error.content, "on the page")
        assert len(page.error.splitlines()) == 1
        assert page.error.startswith(name), "by its name, not by the place where it is kept"
        assert page.dancers == [dancer] and page.controls.clips.value == "dance"
        assert tuple(page.controls.clips.handle.options) == tuple(CLIPS), "and is offered no more"
    before = page.time
    until(page, lambda: page.time > before + 0.2, "and the dance goes on")


@pytest.mark.nightly
def test_a_robot_that_is_dropped_dances_too(page):
    ready(page, "hrp2")
    folder = share_dir() / "urdf"
    page.receive("mine.urdf", (folder / "wabian2.urdf").read_bytes())
    until(page, lambda: len(page.dancers) == 2 or page.error, "it must join", 120)
    assert not page.error and page.dancers[1].view().error < 0.3
    path = next(name for name in page.cast.dancers if name.endswith("mine.urdf"))
    assert Path(path).with_suffix(".yaml").is_file() and page.titles[path] == "mine.urdf"
    page.receive("bare.urdf", b'<robot name="bare"><link name="a"/></robot>')
    until(page, lambda: page.error and not page.loader.busy, "one without arms cannot")
    assert len(page.dancers) == 2 and len(page.robots) == 2
    assert not [box for name, box in page.controls._boxes.items() if name.endswith("bare.urdf") and box.value]


def test_a_joint_that_is_picked_is_plotted_between_its_limits(page):
    ready(page, "hrp2")
    plot, robot = page.controls.plots[0], page.dancers[0].robot
    joint = robot.joint_names[robot.imitation_joints[-1]]
    choice = f"{robot.title}: {joint}"
    assert choice in plot.picker.options and not plot._plot.visible
    plot.picker.value = choice
    for _ in range(60):
        page.tick(1 / 30)
    t, angle, low, high = plot._plot.data
    k = robot.index[joint]
    assert plot._plot.visible and len(t) > 10 and t[-1] == 0.0
    assert angle[-1] == pytest.approx(np.degrees(page.dancers[0].joints[k]), abs=2.0)
    assert low[0] == pytest.approx(np.degrees(robot.lower[k])) and high[0] == pytest.approx(np.degrees(robot.upper[k]))
    plot.picker.value = NO_JOINT
    for _ in range(3):
        page.tick(1 / 30)
    assert not plot._plot.visible


def test_what_is_not_wanted_is_hidden(page):
    ready(page, "hrp2")
    page.tick(1 / 30)
    robot = page.stage._robots[id(page.dancers[0])]
    for what, handle in (("ghost", robot._lines["ghost"]), ("robots", robot.robot_frame), ("names", robot.label)):
        assert handle.visible
        page.stage.show(what, False)
        assert not handle.visible
    page.controls._boxes["lola"].handle.value = True
    ready(page, "hrp2", "lola")
    page.tick(1 / 30)
    other = page.stage._robots[id(page.dancers[1])]
    assert not other.label.visible and not other._lines["ghost"].visible, "of who joins later, too"


def test_it_runs_until_it_is_stopped(page):
    stopped = threading.Event()
    thread = threading.Thread(target=page.run, args=(stopped,))
    thread.start()
    end = time.monotonic() + 60
    while page.time < 0.5:
        assert time.monotonic() < end
        time.sleep(0.05)
    stopped.set()
    thread.join(60)
    assert not thread.is_alive()


def test_the_loader_does_what_was_asked_for_last():
    asked, gate = [], threading.Event()

    def make(body, name):
        gate.wait(10)
        asked.append(name)
        if name == "bad":
            raise RobotError("it is bad")
        if name == "worse":
            raise ZeroDivisionError("oh")
        return type("Dancer", (), {"notes": []})()

    loader = Loader(make=make)
    try:
        loader.want("dance", ["a"])
        while loader.busy == "loading" or "preparing" not in loader.busy:
            time.sleep(0.01)
        loader.want("dance", ["b"])
        loader.want("dance", ["a", "bad", "worse", "c"])
        gate.set()
        end = time.monotonic() + 60
        while (cast := loader.take()) is None or "c" not in cast.dancers:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert asked == ["a", "bad", "worse", "c"], "b was asked for no more, and a was there"
        assert cast.failed["bad"] == "it is bad" and "ZeroDivisionError" in cast.failed["worse"]
        assert loader.take() is None
    finally:
        loader.close()
    assert error_line(ValueError("a\nb")).count("\n") == 0


def test_errors_have_the_colours_of_their_lengths():
    assert [tuple(c) for c in error_colors(np.array([0.0, 0.05, 0.12, 1.0]))] == [GOOD, FAIR, POOR, POOR]
    red = error_colors(np.linspace(0.02, 0.12, 50))[:, 1].astype(int)
    assert (np.diff(red) <= 0).all()


@pytest.mark.parametrize("n", [1, 2, 5, 9])
@pytest.mark.parametrize(("aspect", "panel"), [(1.6, 0.27), (1.0, 0.0), (2.2, 0.2)])
def test_the_camera_sees_all_of_a_row_in_what_the_panel_leaves(n, aspect, panel):
    import math

    from humanoid_control.viewer.dance.stage import VIEW
    from humanoid_control.viewer.raster import look_at

    eye, at = stage_camera(n, aspect, panel)
    camera = look_at(eye, at, VIEW, 1000)
    for place in slot_places(n):
        for side in (-0.7, 0.7 + ASIDE[1]):
            for z in (0.0, 1.8):
                x, y, depth = camera.R @ (place + [0.0, side, z] - eye)
                u, v = 0.5 * 1000 * aspect + camera.focal * x / depth, 500 - camera.focal * y / depth
                assert 0 <= u <= (1 - panel) * 1000 * aspect + 1 and 0 <= v <= 1000
    assert math.isfinite(eye.sum())


def test_a_row_tells_numbers_and_no_html_of_others():
    row = ControlRow("<b>x</b>", True, 0.012, np.array([1, 0, 0, 1], bool), 1e-4, 2e-3, 3e-4, "A", "A: <i>fine</i>")
    text = row_html(row)
    assert "&lt;b&gt;x" in text and "A: &lt;i&gt;" in text
    assert "1.2 cm" in text and "0.10 mm" in text and "2.00 mm" in text and "0.30 ms" in text
    assert text.count("#2b8a3e") == 2
