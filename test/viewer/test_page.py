"""The page in a real browser: not blank, upright, alive, and readable when something is missing."""

import io
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import EnvironmentProblem
from humanoid_control.robots import load_robot
from humanoid_control.viewer.browser import FLAGS, Browser, find_chromium
from humanoid_control.viewer.page import ViewerPage, ViewState
from humanoid_control.viewer.panel import HIDDEN, PanelActions
from humanoid_control.viewer.server import port_is_free
from humanoid_control.viewer.stills import CLOSE_NOTICES
from test.places import domain
from test.viewer.conftest import HALF

Image = pytest.importorskip("PIL.Image", reason="needs pillow")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.patient,
    pytest.mark.slow,
    pytest.mark.skipif(find_chromium() is None, reason="needs Chromium: install the package 'chromium'"),
]
WIDTH, HEIGHT = 1000, 620
SCENE = (0, 0, 660, 620)
SIZE = ("--width", "900", "--height", "500")  # of pictures


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def resize(browser, width, height):
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)


def until_seen(browser, condition, what, part=SCENE):
    """Wait until a picture of the scene, or of another part, is as it should be."""
    end = time.monotonic() + 90.0
    while not condition(image := pixels(browser.picture(part))):
        assert time.monotonic() < end, what
        browser.sleep(0.3)
    return image


@pytest.fixture(scope="module")
def showing():
    """The pages of this file that are open: loading one costs more than all that is looked at on it."""
    pages = []
    yield pages
    for made in pages:
        made.stop()


def made_page():
    robot, said = load_robot("hrp2", "fixed"), []
    actions = PanelActions(
        lambda what, on: made.scene.show(what, on),
        lambda t: said.append(("seek", t)),
        *(lambda n=n: said.append((n, None)) for n in ("play", "pause", "restart")),
    )
    port = free_port()
    made = ViewerPage("127.0.0.1", port, robot, actions, hidden=(*HIDDEN, "shadows"))
    made.said, made.url, made.size = said, f"http://127.0.0.1:{port}", None
    return made


@pytest.fixture
def page(showing):
    """A page as it is at first: the robot in its neutral posture, nothing heard."""
    if not showing:
        showing.append(made_page())
    page = showing[0]
    page.said.clear()
    for what in ("robot", "targets", "dancer", "shapes", "com"):
        page.scene.show(what, what not in HIDDEN)
    draw(page, heard(page, page.robot.postures["neutral"]))
    draw(page, ViewState(page.robot))
    return page


def look_at(page, browser, width=WIDTH, height=HEIGHT):
    """Load it, unless it was loaded in that size."""
    if page.size != (width, height):
        page.size = (width, height)
        resize(browser, width, height)
        browser.open(f"{page.url}/{HALF if width == WIDTH else ''}", 1)
    assert browser.wait_for("waiting for joint states")


def heard(page, joints, targets=None):
    state = ViewState(page.robot)
    state.on_joints(SimpleNamespace(name=list(page.robot.joint_names), position=list(joints)))
    if targets is not None:
        markers = [
            SimpleNamespace(ns=n, action=0, pose=SimpleNamespace(position=SimpleNamespace(x=x, y=y, z=z)))
            for n, (x, y, z) in targets.items()
        ]
        state.on_targets(SimpleNamespace(markers=markers))
    return state


def draw(page, state, times=7):
    for k in range(times):
        page.draw(state, 0.0, 0.1 * k)


def test_the_page_shows_the_robot_and_follows_it(page, chromium):
    browser = chromium
    look_at(page, browser)
    assert browser.settle(SCENE), "the scene did not come to rest"
    neutral = pixels(browser.picture(SCENE))
    assert neutral.std() > 10, "a blank page"
    # Dark parts of the robot stand upright: much taller than wide, in the middle of the scene.
    rows, columns = np.nonzero(neutral.max(axis=2) < 90)
    assert len(rows) > 500
    height, width = np.ptp(np.percentile(rows, [2, 98])), np.ptp(np.percentile(columns, [2, 98]))
    assert height > 1.3 * width

    robot = page.robot
    raised = robot.from_mapping({"l_shoulder_abduction": 1.5, "r_shoulder_abduction": 1.5})
    goal = robot.point_positions(robot.q(raised), ["l_wrist"])[0]
    draw(page, heard(page, raised, {"l_wrist": goal, "sternum": (np.nan, 0, 0)}))
    until_seen(
        browser, lambda p: (np.abs(p - neutral).max(axis=2) > 40).mean() > 0.005, "the picture must follow the robot"
    )
    until_seen(
        browser, lambda p: ((p[..., 0] > 180) & (p[..., 0] - p[..., 2] > 60)).sum() > 50, "the target must be seen"
    )
    assert all(browser.wait_for(word) for word in ("live", "l_wrist", "0.0"))
    state = heard(page, raised)
    held = SimpleNamespace(name="/whole_body_ik", level=b"\1", message="target 'l_wrist' is silent: held", values=[])
    state.on_diagnostics(SimpleNamespace(status=[held]))
    draw(page, state)
    assert browser.wait_for("whole_body_ik: target 'l_wrist' is silent: held"), "on top, the list of nodes is folded"

    page.scene.show("robot", False)
    until_seen(browser, lambda p: (p.max(axis=2) < 90).sum() < 0.1 * len(rows), "the robot must go")


@pytest.mark.nightly
def test_a_robot_that_walks_stays_in_the_picture_on_the_floor(page, chromium):
    browser = chromium
    look_at(page, browser)
    assert browser.settle(SCENE)
    before = pixels(browser.picture(SCENE))
    page.scene.show("follow", True)
    X, joints = page.robot.X_world_root, page.robot.postures["neutral"]
    x, y, z, w = pin.Quaternion(X.rotation).coeffs()

    def walk_to(way, times):
        state = heard(page, joints)
        at = dict(zip("xyz", X.translation + [way, 0.0, 0.0], strict=True))
        pose = SimpleNamespace(
            position=SimpleNamespace(**at), orientation=SimpleNamespace(x=float(x), y=float(y), z=float(z), w=float(w))
        )
        state.on_odometry(SimpleNamespace(pose=SimpleNamespace(pose=pose)))
        for _ in range(times):
            state.on_joints(SimpleNamespace(name=list(page.robot.joint_names), position=list(joints)))
            page.draw(state, 0.0, 0.0)

    for k in range(1, 41):
        walk_to(0.25 * k, 6)
    walk_to(10.0, 80)
    assert browser.settle(SCENE)
    after = pixels(browser.picture(SCENE))
    walk_to(0.0, 1)
    page.scene.show("follow", False)
    changed = (np.abs(after.astype(int) - before).max(axis=2) > 40).mean()
    assert changed < 0.02, "ten metres on, the same robot is seen from the same place, on the same floor"


@pytest.mark.nightly
def test_a_person_s_markers_and_forces_are_seen(page, chromium):
    """Measured markers hollow and blue, fitted ones full and orange, the force on a foot green."""
    browser = chromium
    look_at(page, browser)
    for what in ("robot", "targets", "dancer"):
        page.scene.show(what, False)
    browser.settle(SCENE)

    def marker(ns, kind, points, color, width):
        xyz = [SimpleNamespace(x=x, y=y, z=z) for x, y, z in points]
        rgba = SimpleNamespace(r=color[0], g=color[1], b=color[2], a=color[3])
        scale = SimpleNamespace(x=width, y=2 * width, z=2 * width)
        scale = SimpleNamespace(x=width, y=width, z=width) if kind == 7 else scale
        return SimpleNamespace(ns=ns, type=kind, action=0, points=xyz, colors=[], color=rgba, scale=scale)

    def count(image, low, high):
        r, g, b = image[..., 0], image[..., 1], image[..., 2]
        channels = {"r": r, "g": g, "b": b}
        return int((channels[high] - channels[low] > 25).sum())

    places = [(0.0, y, z) for y in (-0.4, 0.0, 0.4) for z in (0.3, 0.9, 1.5)]
    browser.settle(SCENE)
    empty = pixels(browser.picture(SCENE))
    page.scene.show("human/markers", True)
    page.scene.draw_markers("human/markers", [
        marker("fitted", 7, places, (0.95, 0.5, 0.1, 1.0), 0.1),
        marker("measured", 7, places, (0.15, 0.45, 0.95, 0.3), 0.2),
        marker("bones", 5, places[:2], (0.35, 0.35, 0.4, 1.0), 0.02),
        marker("force right", 0, [(0.0, 0.2, 0.0), (0.0, 0.2, 1.2)], (0.1, 0.8, 0.2, 1.0), 0.06),
    ])  # fmt: skip
    until_seen(browser, lambda p: count(p, "b", "r") > count(empty, "b", "r") + 100, "fitted markers are orange")
    until_seen(browser, lambda p: count(p, "r", "g") > count(empty, "r", "g") + 100, "a force is green")
    seen = pixels(browser.picture(SCENE))
    assert (np.abs(seen - empty).max(axis=2) > 20).sum() > 3000, "and measured ones are seen round them"
    page.scene.draw_markers("human/markers", [])
    page.scene.show("human/markers", False)
    until_seen(browser, lambda p: count(p, "b", "r") < count(empty, "b", "r") + 50, "they go")


def test_shapes_are_coloured_by_distance_and_the_panel_acts(page, chromium):
    robot, browser = page.robot, chromium
    look_at(page, browser)
    for what in ("robot", "targets", "dancer"):
        page.scene.show(what, False)
    page.scene.show("shapes", True)
    page.scene.show("com", True)
    draw(page, heard(page, robot.postures["neutral"]))
    browser.settle(SCENE)
    free = pixels(browser.picture(SCENE))
    crossed = robot.from_mapping({"l_shoulder_abduction": -0.5})
    assert robot.shape_clearance(robot.q(crossed)).min() < 0
    draw(page, heard(page, crossed))

    def red(image):
        return int(((image[..., 0] > 150) & (image[..., 0] - image[..., 1] > 70)).sum())

    until_seen(browser, lambda p: red(p) > red(free) + 300, "shapes that touch must be red")
    for label in ("pause", "play", "restart"):
        script = f"[...document.querySelectorAll('button')].find(b => b.innerText.trim() == '{label}').click()"
        browser.evaluate(script)
        end = time.monotonic() + 30.0
        while (not page.said or page.said[-1][0] != label) and time.monotonic() < end:
            browser.sleep(0.1)
    assert [name for name, _ in page.said] == ["pause", "play", "restart"]
    page.panel.set_duration(10.0)
    page.panel.set_time(4.0)
    browser.sleep(0.5)
    assert not [s for s in page.said if s[0] == "seek"], "showing the time is not seeking"


def test_an_old_picture_is_called_old(page, chromium):
    look_at(page, chromium)
    state = heard(page, page.robot.postures["neutral"])
    for k in range(7):
        page.draw(state, 12.0, 0.1 * k)
    assert chromium.wait_for("no joint states for 12 s")


def dark(image):
    """Rows and columns of the dark parts of the robot."""
    return np.nonzero(image.max(axis=2) < 90)


@pytest.mark.nightly
def test_on_a_phone_the_robot_stands_where_the_panel_is_not(page, chromium):
    browser, width, height = chromium, 390, 844
    look_at(page, browser, width, height)
    draw(page, heard(page, page.robot.postures["neutral"], {"l_wrist": (0.1, 0.3, 0.9)}))
    free = (0, 0, width, int(0.4 * height))
    browser.evaluate(CLOSE_NOTICES)
    browser.settle(free)

    def stands(image):
        """From head to foot above the panel, large enough to be seen."""
        rows, columns = dark(image)
        if len(rows) <= 300:
            return False
        top, bottom = np.percentile(rows, [1, 99])
        left, right = np.percentile(columns, [1, 99])
        upright = 0.02 * height < top and bottom < 0.38 * height and bottom - top > 0.2 * height
        return upright and left > 5 and right < width - 5

    until_seen(browser, stands, "the whole robot must stand above the panel", free)


def test_a_page_that_outlives_the_run_says_that_it_is_over_and_how_to_see_it_again(page, showing, chromium):
    browser, command = chromium, "humanoid replay /runs/latest/recording --viewer"
    look_at(page, browser, *(page.size or (WIDTH, HEIGHT)))
    page.say_over(command)
    showing.remove(page)
    page.stop()
    assert browser.wait_for("This run is over") and command in browser.text()
    browser.sleep(2.0)
    assert command in browser.text(), "it stays when the connection is gone"


@pytest.mark.nightly
def test_without_webgl_the_page_says_so(page):
    flags = (*(f for f in FLAGS if "swiftshader" not in f), "--disable-gpu", "--disable-3d-apis")
    with Browser(1000, 700, flags) as browser:
        browser.open(page.url, 1)
        assert browser.wait_for("WebGL")


def test_a_port_in_use_is_noticed():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        assert not port_is_free("127.0.0.1", s.getsockname()[1])
    assert port_is_free("127.0.0.1", free_port())


@pytest.mark.nightly
def test_a_line_up_shows_every_robot_and_the_dancer_upright(tmp_path, coarse_pictures):
    from humanoid_control.cli.main import main

    path = tmp_path / "row.png"
    words = ["--robot", "hrp2,armar3", "--at", "2", "--no-shadows", *SIZE, "--port", str(free_port())]
    assert main(["picture", *words, "-o", str(path)]) == 0
    seen = pixels(path.read_bytes())
    columns = np.flatnonzero((seen[60:, :].min(axis=2) < 120).sum(axis=0) > 10)
    groups = np.split(columns, np.flatnonzero(np.diff(columns) > 25) + 1)
    assert len([g for g in groups if len(g) > 15]) >= 3, "two robots and a dancer, apart"
    blue = (seen[..., 2] - seen[..., 0] > 90) & (seen[..., 2] - seen[..., 1] > 40)
    rows, columns = np.nonzero(blue[:440])  # above the little axes in the corner
    assert len(rows) > 300 and columns.mean() > 450, "the dancer, at the right end"
    assert np.ptp(rows) > np.ptp(columns), "standing"


@pytest.mark.nightly
def test_robots_stand_in_simulation_on_the_forces_of_their_soles(tmp_path, coarse_pictures):
    from humanoid_control.cli.main import main

    path = tmp_path / "standing.png"
    words = ["--robot", "hrp2,lola", "--at", "1", "--no-shadows", *SIZE, "--port", str(free_port())]
    assert main(["picture", "--standing", *words, "-o", str(path)]) == 0
    seen = pixels(path.read_bytes())
    green = (seen[..., 1] - seen[..., 0] > 60) & (seen[..., 1] - seen[..., 2] > 30)
    rows, columns = np.nonzero(green[:440])  # above the little axes in the corner
    assert len(rows) > 200, "the forces are seen"
    left, right = columns[columns < 450], columns[columns > 450]
    assert len(left) > 80 and len(right) > 80, "under both robots"
    assert np.ptp(rows[columns < 450]) > np.ptp(left), "upright"


def test_a_browser_that_is_killed_is_told_in_one_line():
    with Browser(300, 200) as browser:
        assert os.getsid(browser._process.pid) != os.getsid(0), "an interrupt at a terminal does not reach it"
        browser._process.kill()
        for ask in (lambda: browser.sleep(60), browser.text):
            with pytest.raises(EnvironmentProblem, match=r"^the browser has ended: [^\n]*$"):
                ask()


def test_a_browser_ends_with_the_process_that_started_it():
    script = """
import time
from humanoid_control.viewer.browser import Browser
print(Browser(300, 200)._process.pid, flush=True)
time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pid = int(process.stdout.readline())
    process.kill()
    process.wait()
    end = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end, "it goes on"
        time.sleep(0.1)


class SlowPage(Browser):
    """A page that fades in by six frames a step, and takes 0.6 s for a frame; no browser."""

    def __init__(self):
        self.time = self.looks = 0

    def sleep(self, seconds):
        self.time += seconds

    def evaluate(self, script):
        if script == "window.turns":
            return int(self.time / 0.6)
        self.looks += 1

    def picture(self, part=None):
        return bytes([min(int(self.time / 3.6), 2)])


def test_a_page_that_draws_too_slowly_to_be_seen_to_change_has_not_come_to_rest():
    page = SlowPage()
    assert page.settle(SCENE, scripts=("close()",)) and page.picture() == bytes([2])
    assert page.looks >= 2, "what comes later, as a notice, is closed later"


@pytest.mark.nightly
def test_an_interrupt_at_a_terminal_ends_a_picture_without_a_word():
    pytest.importorskip("rclpy", reason="needs ROS 2")
    with tempfile.TemporaryDirectory(prefix="picture", dir="/tmp") as name:  # short, as most people's
        folder = Path(name)
        argv = ["picture", "--robot", "hrp2", "--port", str(free_port()), "-o", str(folder / "hrp2.png")]
        home = {"HUMANOID_HOME": str(folder / "home"), "ROS_LOG_DIR": str(folder / "ros")}
        env = {"TMPDIR": name, "ROS_DOMAIN_ID": domain("commands")} | home
        process = subprocess.Popen(
            [sys.executable, "-m", "humanoid_control.cli.main", *argv],
            env=os.environ | env,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        end = time.monotonic() + 120
        while not list(folder.glob("humanoid_browser_*/DevToolsActivePort")):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        time.sleep(1.0)  # in the middle of a question, or between two
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(30) in (130, -signal.SIGINT)
        assert process.stderr.read() == ""
        left = [p.name for p in folder.iterdir() if p.name not in ("ros", "home")]
        assert left == [], "neither half a picture nor anything of the browser's"
