"""Pages without viser: every module loads, and opening one says in a line what to install."""

import asyncio
import base64
import socket
import subprocess
import sys
import urllib.request
from types import SimpleNamespace

import pytest

from humanoid_control.errors import ConfigError, EnvironmentProblem
from humanoid_control.viewer import access, port_is_free
from humanoid_control.viewer.browser import find_chromium
from humanoid_control.viewer.power_controls import PowerActions, PowerControls
from humanoid_control.viewer.server import LoopEvent, Origins, open_server
from humanoid_control.viewer.walk_controls import WalkActions, WalkControls
from test.places import port as port_of

WITHOUT = """
import sys
sys.modules["viser"] = None
from humanoid_control.errors import EnvironmentProblem
from humanoid_control.viewer import *
try:
    LineUp(8123)
except EnvironmentProblem as e:
    print(e)
"""


@pytest.mark.nightly
def test_without_viser_all_of_the_room_loads_and_a_page_says_what_to_install():
    result = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert "pip install 'humanoid_control[viewer]'" in result.stdout, result.stderr
    assert len(result.stdout.splitlines()) == 1


def test_a_node_without_viser_refuses_in_one_line_with_code_2():
    pytest.importorskip("rclpy", reason="needs ROS 2")
    code = "import sys; sys.modules['viser'] = None; from humanoid_control.nodes.viewer import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].startswith("viewer: viser is not installed: pip install")


def test_ports_and_addresses_are_checked():
    for host, port in (("127.0.0.1", 0), ("no.such.host.invalid", 8080)):
        with pytest.raises(ConfigError):
            port_is_free(host, port)


def test_what_is_changed_at_once_is_sent_at_once():
    """A robot of a hundred links moves with what is drawn over it: one message of the socket, one frame."""
    pytest.importorskip("viser")
    server = open_server(port_of(19))
    try:
        links = [server.scene.add_frame(f"/link_{k}") for k in range(100)]
        buffer = server._websock_server._broadcast_buffer

        async def windows():
            sent = buffer.window_generator(-1)
            await anext(sent)  # the page as it is
            with server.atomic():
                for k, link in enumerate(links):
                    link.position, link.wxyz = (k, 0.0, 1.0), (0.0, 1.0, 0.0, 0.0)
            window = await anext(sent)
            await sent.aclose()
            return [m for m in window if type(m).__name__ in ("SetPositionMessage", "SetOrientationMessage")]

        assert len(asyncio.run_coroutine_threadsafe(windows(), buffer.event_loop).result(30)) == 200
    finally:
        server.stop()


# -------- Pages of other sites

UPGRADE = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {}\r\n"


@pytest.fixture(scope="module")
def server_port():
    pytest.importorskip("viser")
    number = port_of(18)
    server = open_server(number, origins=["lab.example.org", "https://proxy.example.org:8443"])
    yield number
    server.stop()


def answer(number, headers, upgrade):
    """Status of the answer to a raw request."""
    lines = "".join(f"{k}: {v}\r\n" for k, v in headers)
    more = UPGRADE.format(base64.b64encode(bytes(16)).decode()) if upgrade else "Connection: close\r\n"
    with socket.create_connection(("127.0.0.1", number), timeout=20) as s:
        s.sendall(f"GET / HTTP/1.1\r\n{lines}{more}\r\n".encode())
        return int(s.makefile("rb").readline().split()[1])


HERE = ("Host", "127.0.0.1:8080")
MAY = {
    "a program": [HERE],
    "its own page": [HERE, ("Origin", "http://127.0.0.1:8080")],
    "localhost": [HERE, ("Origin", "http://localhost:8080")],
    "localhost in capitals": [HERE, ("Origin", "HTTP://LOCALHOST")],
    "loopback of IPv6": [HERE, ("Origin", "http://[::1]:8080")],
    "no name": [],
    "a named host that passes its own name on": [
        ("Host", "proxy.example.org:8443"),
        ("Origin", "https://proxy.example.org:8443"),
    ],
    "a host that the user named": [HERE, ("Origin", "https://lab.example.org")],
    "an origin that the user named": [HERE, ("Origin", "https://proxy.example.org:8443")],
}
MAY_NOT = {
    "a name that resolves to this machine": [("Host", "evil.example:8080"), ("Origin", "http://evil.example:8080")],
    "that name without an origin": [("Host", "evil.example:8080")],
    "an address of the network": [("Host", "192.168.0.7:8080"), ("Origin", "http://192.168.0.7:8080")],
    "another site": [HERE, ("Origin", "https://evil.example")],
    "one that begins alike": [HERE, ("Origin", "http://127.0.0.1.evil.example")],
    "one that ends alike": [HERE, ("Origin", "http://evil-lab.example.org")],
    "a user of the right name": [HERE, ("Origin", "http://localhost@evil.example")],
    "a page in a sandbox": [HERE, ("Origin", "null")],
    "a file": [HERE, ("Origin", "file://")],
    "nonsense": [HERE, ("Origin", "http://[::1")],
    "nothing": [HERE, ("Origin", "")],
    "two": [HERE, ("Origin", "http://localhost"), ("Origin", "https://evil.example")],
    "another port of what the user named": [HERE, ("Origin", "https://proxy.example.org")],
    "another scheme of what the user named": [HERE, ("Origin", "http://proxy.example.org:8443")],
}


@pytest.mark.parametrize("upgrade", [False, True], ids=["page", "socket"])
@pytest.mark.parametrize("case", MAY)
def test_own_pages_programs_and_named_hosts_may_connect(case, upgrade, server_port):
    assert answer(server_port, MAY[case], upgrade) == (101 if upgrade else 200)


@pytest.mark.parametrize("upgrade", [False, True], ids=["page", "socket"])
@pytest.mark.parametrize("case", MAY_NOT)
def test_pages_of_other_sites_may_not(case, upgrade, server_port):
    assert answer(server_port, MAY_NOT[case], upgrade) == 403


OPEN = {
    "an address": ("http://192.168.0.7:8080", "192.168.0.7:8080", True),
    "an address of IPv6": ("http://[fe80::1]:8080", "[fe80::1]:8080", True),
    "its machine's name": (f"http://{socket.gethostname()}:8080", f"{socket.gethostname()}:8080", True),
    "a name that resolves to it": ("http://evil.example:8080", "evil.example:8080", False),
    "another address": ("http://192.168.0.8:8080", "192.168.0.7:8080", False),
}


@pytest.mark.parametrize("case", OPEN)
def test_a_server_of_the_network_answers_to_addresses_and_its_own_name(case):
    origin, host, may = OPEN[case]
    assert Origins(listens="0.0.0.0").allow([origin], host) == may


# -------- The token


def test_the_token_is_kept_for_its_owner_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(access, "_made", [])
    token = access.page_token()
    (file,) = tmp_path.rglob("page_token")
    assert file.stat().st_mode & 0o777 == 0o600 and access.page_token() == token and len(token) > 20
    assert access.page_address(8080) == f"http://localhost:8080/?token={token}"
    file.chmod(0o644)
    assert access.page_token() != token, "others may have read it"
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/none")
    assert len(access.page_token()) > 20


def test_a_browser_with_the_token_in_its_address_may_command_and_others_may_not(server_port):
    """The page sets a cookie, the connection with the cookie is marked."""
    connect = pytest.importorskip("websockets.sync.client").connect
    found = {}
    for path in ("/", f"/?token={access.page_token()}", "/?token=wrong"):
        with urllib.request.urlopen(f"http://127.0.0.1:{server_port}{path}") as page:
            found[path] = page.headers.get("Set-Cookie")
    right = found.pop(f"/?token={access.page_token()}")
    assert "HttpOnly; SameSite=Strict" in right and set(found.values()) == {None}
    mine = access.Access(server_port)
    assert mine.in_cookies([f"a=b; {right.split(';')[0]}"])
    assert not mine.in_cookies(["a=b"]) and not mine.in_cookies([right.split(";")[0].replace("token_", "token_1")])
    with connect(f"ws://127.0.0.1:{server_port}", additional_headers={"Cookie": right.split(";")[0]}):
        pass


@pytest.mark.parametrize("trusted", [False, True])
def test_power_and_motion_need_the_token_and_stops_do_not(trusted):
    asked, moved, told = [], [], []
    client = SimpleNamespace(add_notification=lambda *words, **more: told.append(words))
    event = SimpleNamespace(client_id=3, client=client)
    server = FakeServer()
    access.ACCESS[server] = access.Access(1)
    access.ACCESS[server].clients |= {3} if trusted else {4}
    PowerControls(server, PowerActions(lambda request: asked.append(request) or True))
    WalkControls(server, WalkActions(lambda v: None, lambda f: moved.append("push"), moved.append))
    for label in ("ENABLE", "STOP", "EMERGENCY STOP"):
        server.press(label, event)
    for value in ("home", "switch off"):
        server.press("driver", event, value)
    for value in ("stop", "emergency stop", "stand", "reset"):
        server.press("robot", event, value)
    server.press("push 10 N s", event, "left")
    stops, calls = ["stop", "estop"], ["stop", "emergency stop"]
    assert asked == (["enable", *stops, "home", "disable"] if trusted else stops)
    assert moved == ([*calls, "stand", "reset", "push"] if trusted else calls)
    assert len(told) == (not trusted), "once, however often"
    assert not access.may_command(server, SimpleNamespace(client_id=None, client=None))


class FakeServer:
    """As much of viser's panel as the controls use: what is added under a label can be pressed."""

    def __init__(self):
        self.gui, self.added = self, {}

    def __getattr__(self, name):
        return lambda *args, **options: self._add(args[0] if args else "")

    def _add(self, label):
        class Control:
            visible, content, value = True, "", ""

            def on_click(self, call):
                self.pressed = call

            on_update = on_click

            def __enter__(self):
                return self

            def __exit__(self, *error):
                return None

        self.added[label] = made = Control()
        return made

    def press(self, label, event, value=""):
        self.added[label].value = value
        called = self.added[label].pressed(event)
        if called is not None:
            asyncio.run(called)


def test_both_pages_pass_on_what_the_user_names(monkeypatch):
    pytest.importorskip("viser")
    from humanoid_control.viewer import page
    from humanoid_control.viewer.volume_editor import page as editor_page

    class Told(Exception):
        pass

    def tell(port, host, origins):
        raise Told(list(origins))

    for module, make in (
        (page, lambda: page.ViewerPage("127.0.0.1", 1, None, None, origins=["a.example"])),
        (editor_page, lambda: editor_page.VolumeEditorPage("127.0.0.1", 1, None, ["a.example"])),
    ):
        monkeypatch.setattr(module, "open_server", tell)
        with pytest.raises(Told, match=r"a\.example"):
            make()


@pytest.mark.parametrize(
    "name", ["*", ".", "http://", "a b", "lab.example.org:8080", "https://lab.example.org/x", "[::1"]
)
def test_an_origin_that_is_none_is_refused(name):
    with pytest.raises(ConfigError, match="neither a host nor an origin"):
        Origins([name])


def test_a_server_that_cannot_be_closed_is_not_opened(monkeypatch):
    viser = pytest.importorskip("viser")
    stopped = []

    class Open:
        def __init__(self, **options):
            pass

        def stop(self):
            stopped.append(self)

    monkeypatch.setattr(viser, "ViserServer", Open)
    with pytest.raises(EnvironmentProblem, match="cannot be closed to pages of other sites"):
        open_server(port_of(19))
    assert len(stopped) == 1


@pytest.mark.browser
@pytest.mark.patient
@pytest.mark.skipif(find_chromium() is None, reason="needs Chromium")
def test_a_page_of_another_site_in_a_browser_is_turned_away(server_port, tmp_path):
    """A page in a file, which its browser reports as of 'null', tries the socket."""
    from humanoid_control.viewer.browser import Browser

    tries = f"""<script>const s = new WebSocket("ws://127.0.0.1:{server_port}");
    s.onopen = () => document.title = "open"; s.onerror = () => document.title = "refused";</script>"""
    (tmp_path / "a.html").write_text(tries)
    with Browser() as browser:
        browser.open(f"file://{tmp_path / 'a.html'}", wait=2.0)
        assert browser.evaluate("document.title") == "refused"


# -------- Messages of other threads


class Meddler:
    """Waits for an event, and while it is looked at somebody else begins to wait: as the loop's own thread may do."""

    def __init__(self, event):
        self.event, self.looks = event, 0

    def done(self):
        self.looks += 1
        self.event._waiters.append(self)
        return True


def test_messages_may_be_sent_while_the_page_s_own_thread_waits_for_them():
    """With viser's plain event this is a RuntimeError: deque mutated during iteration."""
    pytest.importorskip("viser")
    plain = asyncio.Event()
    plain._waiters.append(Meddler(plain))
    with pytest.raises(RuntimeError, match="mutated during iteration"):
        plain.set()
    server = open_server(port_of(17))
    try:
        buffer = server._websock_server.get_message_buffer()
        assert isinstance(buffer.message_event, LoopEvent)
        event, loop = LoopEvent(), buffer.event_loop
        meddler = Meddler(event)
        event._waiters.append(meddler)
        event.set()
        assert event.is_set() and not meddler.looks, "another thread leaves those who wait to the loop"
        event._waiters.clear()
        event.clear()
        woken = asyncio.run_coroutine_threadsafe(event.wait(), loop)
        event.set()
        loop.call_soon_threadsafe(event.set)  # as viser does behind each message
        assert woken.result(5.0)
    finally:
        server.stop()
