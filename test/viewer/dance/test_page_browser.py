"""The page in a real browser: it is seen to dance, its controls are used, files are dropped, a recording plays."""

import base64
import io
import json
import threading

import numpy as np
import pytest

from humanoid_control.viewer.browser import find_chromium
from humanoid_control.viewer.dance.page import DancePage, Programme
from test.viewer.conftest import HALF

Image = pytest.importorskip("PIL.Image", reason="needs pillow")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.patient,
    pytest.mark.slow,
    pytest.mark.skipif(find_chromium() is None, reason="needs Chromium: install the package 'chromium'"),
]
SCENE = (0, 0, 660, 620)
DROP = """(() => {
  const bytes = Uint8Array.from(atob(%s), c => c.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], %s));
  const canvas = document.querySelector('canvas');
  for (const kind of ['dragenter', 'dragover', 'drop'])
    canvas.dispatchEvent(new DragEvent(kind, {dataTransfer: data, bubbles: true, cancelable: true}));
})()"""
CLICK = """(() => { const all = [...document.querySelectorAll('button'), ...document.querySelectorAll('label')];
const one = all.find(e => e.innerText.trim() === %s); if (!one) return false; one.click(); return true })()"""


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


@pytest.fixture(scope="module")
def page():
    made = DancePage(Programme({"dance": "dance"}, ("hrp2", "lola"), (), ("hrp2",)), 0)
    stopped = threading.Event()
    thread = threading.Thread(target=made.run, args=(stopped,), daemon=True)
    thread.start()
    made.url = f"http://127.0.0.1:{made.server.get_port()}"
    yield made
    stopped.set()
    thread.join(20)
    made.stop()


@pytest.fixture(scope="module")
def browser(page, chromium):
    chromium.call("Emulation.setDeviceMetricsOverride", width=1000, height=620, deviceScaleFactor=1, mobile=False)
    chromium.open(f"{page.url}/{HALF}", 1)
    assert chromium.wait_for("playing at")
    return chromium


def press(browser, words):
    assert browser.evaluate(CLICK % json.dumps(words)), f"there is no '{words}'"


def drop(browser, name, content):
    browser.evaluate(DROP % (json.dumps(base64.b64encode(content).decode()), json.dumps(name)))


def waits(browser, condition, what, seconds=60):
    for _ in range(5 * seconds):
        if condition():
            return
        browser.sleep(0.2)
    raise AssertionError(what)


def test_it_is_seen_to_dance_and_stands_still_when_paused(page, browser):
    first = pixels(browser.picture(SCENE))
    assert first.std() > 10, "a blank page"
    waits(browser, lambda: (np.abs(pixels(browser.picture(SCENE)) - first).max(axis=2) > 40).mean() > 0.003, "it moves")
    press(browser, "pause")
    assert browser.wait_for("paused at") and not page.playing
    now = page.time
    browser.sleep(1.0)
    assert page.time == now, "paused, nothing moves"
    press(browser, "play")
    assert browser.wait_for("playing at") and page.playing
    for word in ("error", "slip", "l heel", "ms a frame", "no grade until"):
        assert browser.wait_for(word), word


def test_a_robot_joins_by_its_check_box(page, browser):
    page.press("pause")
    press(browser, "lola")
    waits(browser, lambda: len(page.dancers) == 2, "Lola joins")
    assert browser.wait_for("Lola")
    press(browser, "lola")
    waits(browser, lambda: len(page.dancers) == 1, "and leaves")
    page.press("play")


def test_a_moment_is_sought_by_the_slider(page, browser):
    page.press("pause")
    assert browser.wait_for("paused at")  # the line above the slider is the last that changes
    box = browser.evaluate("""(() => {
        const slider = [...document.querySelectorAll('[role=slider]')].find(e => +e.getAttribute('aria-valuemax') > 3);
        const track = slider.closest('[class*=Slider-track]') || slider.parentElement;
        const r = track.getBoundingClientRect(); return [r.left, r.top, r.width, r.height] })()""")
    x, y = box[0] + 0.5 * box[2], box[1] + 0.5 * box[3]
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    half = 0.5 * page.dancers[0].duration
    waits(browser, lambda: abs(page.time - half) < 0.06 * half, f"the middle of the clip: {page.time}")
    page.press("play")


@pytest.mark.nightly
def test_files_are_dropped_on_the_page(page, browser, short_clip):
    drop(browser, "notes.txt", b"not a clip at all")
    assert browser.wait_for("notes.txt: neither a clip nor a robot")
    drop(browser, "broken.bvh", b"HIERARCHY nonsense")
    assert browser.wait_for("broken.bvh:")
    assert page.dancers and page.controls.clips.value == "dance"
    drop(browser, "three seconds.trc", short_clip.read_bytes())
    waits(browser, lambda: page.cast.clip.endswith("three seconds.trc"), "the clip that was dropped is danced to")
    assert browser.wait_for("three seconds.trc: playing at") and not page.error
    assert browser.wait_for("of 3.0 s")


def test_nothing_went_wrong_on_the_page(browser):
    assert not [line for line in browser.console if "rror" in line and "WebGL" not in line and "(OK)" not in line], (
        browser.console
    )
