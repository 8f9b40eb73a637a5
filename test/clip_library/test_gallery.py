"""The page of figures: places against pinocchio, worst grade first, and a thousand clips in a real browser."""

import base64
import json
import re

import numpy as np
import pytest

from humanoid_control.clip_library import gallery_page
from humanoid_control.clip_library.figures import figure_of
from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import retarget_clip, retarget_whole_body, scale_to_robot
from humanoid_control.robots import load_robot


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "floating")


@pytest.fixture(scope="module")
def motion(robot):
    return retarget_whole_body(load_body_points("dance").cropped(600), robot)


@pytest.fixture(scope="module")
def figure(robot, motion):
    return figure_of(robot, motion)


def places(figure):
    raw = np.frombuffer(base64.b64decode(figure["places"]), "<i2")
    return raw.reshape(figure["frames"], figure["points"], 3) / 1000.0


def test_a_figure_shows_where_joints_and_soles_are(robot, motion, figure):
    at = places(figure)
    assert figure["frames"] == 80 and figure["rate"] == 10 and len(figure["contacts"]) == 80
    first = round(figure["start"] * motion.rate)
    origin = np.append(motion.root_position[first, :2], 0)
    for k in (0, 33, 79):
        q = motion.q()[first + 5 * k]
        poses = robot.link_poses(q)
        assert at[k, 0] == pytest.approx(motion.root_position[first + 5 * k] - origin, abs=6e-4)
        low = np.array([at[k, p] for edge in figure["soles"] for p in edge])
        corners = np.vstack([[poses[f.link].act(c) for c in f.corners()] for f in robot.feet]) - origin
        distance = np.linalg.norm(low[:, None] - corners[None], axis=2).min(axis=1)
        assert distance.max() < 1e-3
        wrist = robot.point_positions(q, ["l_wrist"])[0] - origin
        assert np.linalg.norm(at[k] - wrist, axis=1).min() < 1e-2
        bits = [int(figure["contacts"][k], 16) >> e & 1 for e in range(4)]
        assert bits == motion.contacts[first + 5 * k].astype(int).tolist()


def test_its_lines_are_the_robots_tree(figure):
    """As long in every frame as in the first: each joins two points of one link."""
    at = places(figure)
    a, b = np.array(figure["lines"]).T
    length = np.linalg.norm(at[:, a] - at[:, b], axis=2)
    assert np.ptp(length, axis=0).max() < 3e-3 and length[0].min() > 5e-3
    joined = {0}
    for parent, child in figure["lines"]:
        assert parent in joined
        joined.add(child)


def test_the_worst_moment_is_shown(motion, figure):
    worst = np.argmax(motion.errors[:, :12].mean(axis=1)) / motion.rate
    assert figure["start"] <= worst <= figure["start"] + 8.0


def test_a_short_clip_and_an_upper_body_have_figures_too():
    robot = load_robot("wabian2", "fixed")
    targets = scale_to_robot(load_body_points("dance").cropped(12), robot)
    small = figure_of(robot, retarget_clip(targets, robot))
    assert small["frames"] == 3 and small["contacts"] == "" and small["soles"] == [] and small["lines"]
    json.dumps(small)


# -------- The page


def rows(count, figure):
    rng = np.random.default_rng(2)
    grades = rng.choice(list("ABCDF"), count)
    out = []
    for k, grade in enumerate(grades):
        numbers = {"slip_mm": 0.5 * k, "error_cm": 3.0}
        row = {"clip": f"walk/{k:04d}.bvh", "robot": ("hrp2", "lola")[k % 2], "failed": "", "reason": ""}
        out.append(row | {"grade": grade, "verdict": f"{grade}: told", "numbers": numbers, "warnings": ["tilted"]})
    for row in out[6:8]:
        row |= {"clip": "bad", "failed": "bad input", "reason": "cut off </script><b>at line 3"}
    return out


def test_the_page_begins_with_what_is_worst_and_needs_no_network(figure):
    text = "".join(gallery_page(rows(50, figure), lambda r: figure))
    body = re.search(r"const CLIPS = \[\n(.*?)\n\];", text, re.S)[1]
    clips = json.loads(f"[{body.rstrip(',')}]")
    order = [c["grade"] for c in clips]
    assert order == sorted(order, key=["failed", "F", "D", "C", "B", "A"].index) and order[0] == "failed"
    assert clips[0]["robots"] == ["hrp2", "lola"] and len(clips) == 49, "they failed for the same reason"
    assert "figure" not in clips[0] and clips[0]["why"] == "cut off </script><b>at line 3"
    assert "</script><b>" not in text and text.count("</script>") == 1
    assert not re.search(r"https?://|@import|src=", text)
    assert text.count('"lines"') == 1, "a robot's tree stands once"


@pytest.mark.nightly
@pytest.mark.browser
@pytest.mark.patient
def test_a_thousand_clips_in_a_browser(figure, tmp_path):
    """Only what is in sight is made and drawn; filters leave what they say."""
    from humanoid_control.viewer.browser import Browser, find_chromium

    if find_chromium() is None:
        pytest.skip("needs Chromium")
    page = tmp_path / "gallery.html"
    records = rows(1000, figure)
    page.write_text("".join(gallery_page(records, lambda r: figure)))
    with Browser(1200, 800) as browser:
        browser.open(f"file://{page}", 0.5)
        assert browser.wait_for("1000 of 1000", 30)
        counts = "[document.querySelectorAll('article').length, gallery.seen.size, gallery.drawn]"
        for _ in range(100):
            cards, seen, drawn = browser.evaluate(counts)
            if seen >= 5 and drawn > 2 * seen:
                break
            browser.sleep(0.3)
        assert cards <= 240 and 5 <= seen <= 40 and drawn > 2 * seen, "it moves"
        inked = """[...document.querySelectorAll('canvas')].slice(0, 6).map(c => { const d = c.getContext('2d')
            .getImageData(0, 0, c.width, c.height).data; let n = 0; for (let k = 3; k < d.length; k += 4) n += d[k] > 0;
            return n; })"""
        first = browser.evaluate(inked)
        assert all(300 < n < 20_000 for n in first)
        browser.evaluate("document.querySelectorAll('#grades input').forEach(b => { b.checked = b.value === 'F'; })")
        browser.evaluate("document.querySelector('#robot').value = 'lola'; pick.dispatchEvent(new Event('change'))")
        wanted = sum(r["grade"] == "F" and r["robot"] == "lola" and not r["failed"] for r in records)
        assert browser.wait_for(f"{wanted} of 1000", 30)
        for _ in range(200):
            browser.evaluate("window.scrollTo(0, document.body.scrollHeight)")
            browser.sleep(0.05)
            if browser.evaluate("document.querySelectorAll('article').length") == wanted:
                break
        else:
            raise AssertionError("the rest never comes")
        assert browser.evaluate("gallery.seen.size") <= 40
        assert set(browser.evaluate("[...document.querySelectorAll('.grade')].map(e => e.textContent)")) == {"F"}
        browser.evaluate("words.value = 'no such clip'; words.dispatchEvent(new Event('input'))")
        assert browser.wait_for("0 of 1000", 10) and not browser.console
