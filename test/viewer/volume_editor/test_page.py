"""The editor's page in a real browser: clicked, dragged and written to as a user does; the saved file is right."""

import socket

import numpy as np
import pytest

from humanoid_control.collision.ssv.segments import read_segment_file
from humanoid_control.viewer.browser import find_chromium
from humanoid_control.viewer.volume_editor.page import VolumeEditorPage

pytestmark = [
    pytest.mark.browser,
    pytest.mark.patient,
    pytest.mark.slow,
    pytest.mark.skipif(find_chromium() is None, reason="needs Chromium: install the package 'chromium'"),
]
WIDTH, HEIGHT, VIEW = 1000, 700, np.radians(75)  # of viser's camera, from top to bottom


@pytest.fixture
def page(editor):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    made = VolumeEditorPage("127.0.0.1", port, editor)
    made.url = f"http://127.0.0.1:{port}"
    yield made
    made.stop()


class User:
    """Hands and eyes on a page."""

    def __init__(self, page, browser):
        self.page, self.browser = page, browser
        size = {"width": WIDTH, "height": HEIGHT}
        browser.call("Emulation.setDeviceMetricsOverride", **size, deviceScaleFactor=1, mobile=False)
        browser.open(f"{page.url}/?fixedDpr=0.25", 1)  # a sixteenth of the pixels in the scene
        assert browser.wait_for("vertex 1")
        browser.evaluate("document.querySelectorAll('[class*=Notification-closeButton]').forEach(b => b.click())")
        browser.settle((0, 0, 600, HEIGHT))  # the camera is where it begins, and everything is drawn

    def until(self, condition, what):
        """Wait until something is the case: drawing without a graphics card takes its time."""
        for _ in range(150):
            if condition():
                return
            self.browser.sleep(0.2)
        raise AssertionError(f"waited in vain: {what}; the page says: {self.browser.text()[:300]}")

    def mouse(self, kind, x, y, held=False):
        down = held or kind == "mousePressed"
        button = "left" if down or kind == "mouseReleased" else "none"
        self.browser.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=int(down), clickCount=1
        )

    def click(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.mouse(kind, x, y)
        self.browser.sleep(0.6)

    def drag(self, start, end, steps=6):
        self.mouse("mouseMoved", *start)
        self.browser.sleep(1.0)
        self.mouse("mousePressed", *start)
        self.browser.sleep(0.5)
        for t in np.linspace(0, 1, steps + 1)[1:]:
            self.mouse("mouseMoved", *((1 - t) * start + t * end), held=True)
            self.browser.sleep(0.3)
        self.mouse("mouseReleased", *end)
        self.browser.sleep(1.5)

    def click_on(self, text, of="button"):
        script = (
            f"(() => {{ const e = [...document.querySelectorAll('{of}')].find(b => b.innerText.trim() == '{text}');"
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()"
        )
        place, before = self.browser.evaluate(script), None
        while place != before:  # what was clicked before may still move the page
            self.browser.sleep(0.3)
            place, before = self.browser.evaluate(script), place
        self.click(*place)

    def open_tab(self, name):
        """Click on a tab until it is the one shown: a panel that is still being laid out loses clicks."""
        tab = f"[...document.querySelectorAll('[role=tab]')].find(t => t.innerText.trim() == '{name}')"
        for _ in range(10):
            self.click_on(name, "[role=tab]")
            if self.browser.evaluate(f"{tab}.getAttribute('aria-selected')") == "true":
                return
        raise AssertionError(f"the tab {name} does not open")

    def write(self, label, text):
        script = (
            "(() => { const l = [...document.querySelectorAll('label, div')].filter(e => e.children.length == 0 &&"
            f" e.innerText == '{label}')[0]; let p = l; while (!p.querySelector('input')) p = p.parentElement;"
            "const i = p.querySelector('input'); i.focus(); i.select(); })()"
        )
        self.browser.evaluate(script)
        self.browser.call("Input.insertText", text=text)
        self.browser.sleep(0.3)

    def pixel(self, point):
        """Where a point of the world (3,) is seen, by the camera that the page begins with."""
        camera = self.page.server.initial_camera
        eye, at = np.array(camera.position), np.array(camera.look_at)
        z = (at - eye) / np.linalg.norm(at - eye)
        x = np.cross(z, [0.0, 0.0, 1.0])
        x /= np.linalg.norm(x)
        d = np.asarray(point) - eye
        scale = HEIGHT / 2 / np.tan(VIEW / 2) / (d @ z)
        return np.array([WIDTH / 2 + scale * (d @ x), HEIGHT / 2 - scale * (d @ np.cross(x, z))])


@pytest.mark.nightly
def test_a_volume_is_picked_added_dragged_written_and_saved(page, chromium):
    editor = page.editor
    robot, document = editor.robot, editor.document
    browser = chromium
    user = User(page, browser)
    assert "not saved" in browser.text() and "smallest gap" in browser.text()
    poses = robot.link_poses(robot.q(editor.joints))

    user.click(*user.pixel(poses["r_shank"].act(np.array([0.0, 0.0, -0.3]))))
    user.until(lambda: document.selection.segment == "r_shank", "a click in the scene selects")
    before = document.volume
    tip = poses["r_shank"].act(np.array(before.vertices[1]) + [0.0, 0.0, 0.03])
    user.drag(user.pixel(tip), user.pixel(tip + [0.0, 0.0, 0.12]))
    user.until(lambda: document.volume != before, "a drag moves a vertex")
    browser.sleep(1.0)
    after = document.volume
    moved = np.array(after.vertices) - np.array(before.vertices)
    assert moved[0] == pytest.approx(0.0) and moved[1, :2] == pytest.approx(0.0, abs=1e-5)
    assert 0.06 < moved[1, 2] < 0.2, "dragged up along the axis of its vertex"
    user.click_on("undo")
    user.until(lambda: document.volume == before, "one drag, one step")
    user.click_on("redo")
    user.until(lambda: document.volume == after, "done again")

    user.click_on("point")
    user.until(lambda: document.volume not in (before, after), "a new volume")
    user.write("radius [mm]", "42.5")
    user.until(lambda: document.volume.radius == pytest.approx(0.0425), "the radius")
    user.write("name", "calf")
    user.until(lambda: document.volume.name == "calf", "the name")
    user.write("name", "shin")
    user.until(lambda: "already" in browser.text(), "a name that is taken is refused, in words")
    user.click_on("save")
    user.until(lambda: "written:" in browser.text(), "saved")
    assert "not saved" not in browser.text()
    file = read_segment_file(document.path)
    assert file == document.file

    user.open_tab("Posture")
    user.click_on("zero")
    user.until(lambda: np.allclose(editor.joints, robot.postures["zero"]), "the posture")
    user.open_tab("Pairs")
    user.until(lambda: "2 pairs watched" in browser.text() and "l_thigh.inner" in browser.text(), "the pairs")
    user.click_on("search pairs by random postures")
    user.until(lambda: "r_thigh - r_shank: one joint connects them" in browser.text(), "left out by the search")
    user.click_on("undo")
    user.until(lambda: document.file == file, "undone")
    shank = next(s for s in file.segments if s.name == "r_shank")
    assert [(v.name, v.radius) for v in shank.volumes] == [("shin", 0.05), ("calf", 0.0425)]
    assert shank.volumes[0].vertices == after.vertices
