"""Headless Chromium over the DevTools protocol."""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from humanoid_control.errors import EnvironmentProblem
from humanoid_control.in_child import die_with
from humanoid_control.terminal import warn

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
SELDOM = """
window.requestAnimationFrame = f => setTimeout(() => f(performance.now()), %g);
window.cancelAnimationFrame = clearTimeout;
window.turns = 0;
const turn = () => { window.turns += 1; requestAnimationFrame(turn); };
turn();
"""
TURNS = 10  # draw callbacks required between two equal pictures, because fading elements may pause
LONGEST_PROFILE = 60  # maximum path length: socket paths below it are limited to 108 characters
SLICE = 0.2  # [s] period of the stop check during waits
ENDED = "the browser has ended: was it killed, or is there too little memory?"
DRAWING_TIME = 240.0  # [s] for pages with many translucent meshes on a busy machine without a GPU


def find_chromium() -> str | None:
    """Return the path of Chromium or Chrome, or None."""
    return next((p for p in map(shutil.which, NAMES) if p), None)


def require_chromium() -> str:
    """Return the path of Chromium or Chrome.

    Raises:
        EnvironmentProblem: if none is installed.
    """
    binary = find_chromium()
    if binary is None:
        raise EnvironmentProblem("no Chromium found: install the package 'chromium'")
    return binary


class Browser:
    """Browser with one page; a context manager."""

    def __init__(
        self,
        width: int = 1400,
        height: int = 900,
        flags: tuple[str, ...] = FLAGS,
        stopped: threading.Event | None = None,
    ) -> None:
        """Start the browser.

        Args:
            width: page width [pixels].
            height: page height [pixels].
            stopped: event that makes waits raise KeyboardInterrupt.

        Raises:
            EnvironmentProblem: if Chromium is missing or does not start.
        """
        self._stopped = stopped or threading.Event()
        binary = require_chromium()
        self._profile = tempfile.mkdtemp(prefix="humanoid_browser_")
        command = [binary, *flags, f"--user-data-dir={self._profile}", f"--window-size={width},{height}", "about:blank"]
        env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        if len(self._profile) <= LONGEST_PROFILE:  # temporary files are removed with the profile
            env["TMPDIR"] = self._profile
        # Separate session: otherwise Ctrl-C would end the browser during an answer.
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
            start_new_session=True,
            preexec_fn=die_with(os.getpid(), signal.SIGTERM),
        )
        self._id = 0
        self.console: list[str] = []
        try:
            self._socket = connect(self._page_address(), max_size=2**26)
            self.call("Page.enable")
            self.call("Runtime.enable")
            screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            self.call("Emulation.setDeviceMetricsOverride", **screen)
        except BaseException:
            self.close()
            raise

    def _page_address(self) -> str:
        """Return the web socket of the first page."""
        import urllib.request

        port_file = Path(self._profile) / "DevToolsActivePort"
        for _ in range(200):
            if self._stopped.is_set():
                raise KeyboardInterrupt
            if self._process.poll() is not None:
                break
            with contextlib.suppress(OSError, ValueError, IndexError):
                port = int(port_file.read_text().splitlines()[0])
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=5) as answer:
                    pages = [t for t in json.load(answer) if t["type"] == "page"]
                return str(pages[0]["webSocketDebuggerUrl"])
            time.sleep(0.1)
        raise EnvironmentProblem("the browser did not start")

    def call(self, method: str, timeout: float = 60.0, **params: Any) -> dict[str, Any]:
        """Call a DevTools method; store console messages.

        Raises:
            EnvironmentProblem: without an answer within `timeout` [s].
        """
        self._id += 1
        try:
            self._socket.send(json.dumps({"id": self._id, "method": method, "params": params}))
        except ConnectionClosed:
            raise EnvironmentProblem(ENDED) from None
        end = time.monotonic() + timeout
        while (left := end - time.monotonic()) > 0:
            try:
                message = json.loads(self._receive(left))
            except TimeoutError:
                continue
            if message.get("method") == "Runtime.consoleAPICalled":
                args = message["params"]["args"]
                self.console.append(" ".join(str(a.get("value", a.get("description", ""))) for a in args))
            if message.get("id") == self._id:
                return dict(message.get("result", {}))
        raise EnvironmentProblem(
            f"no response from the browser to {method} within {timeout:g} s: is the machine overloaded?"
        )

    def _receive(self, timeout: float) -> str | bytes:
        """Return the next message.

        Raises:
            TimeoutError: after `timeout` or a `SLICE` [s].
            KeyboardInterrupt: if stopped.
            EnvironmentProblem: if the browser has ended.
        """
        if self._stopped.is_set():
            raise KeyboardInterrupt
        try:
            return self._socket.recv(timeout=min(timeout, SLICE))
        except ConnectionClosed:
            raise EnvironmentProblem(ENDED) from None

    def draw_seldom(self, period: float = 0.1) -> None:
        """Let new pages draw every `period` [s], to save time without a GPU."""
        self.call("Page.addScriptToEvaluateOnNewDocument", source=SELDOM % (1e3 * period))

    def open(self, url: str, wait: float = 5.0) -> None:
        """Open a page and wait [s]."""
        self.call("Page.navigate", url=url)
        self.sleep(wait)

    def sleep(self, seconds: float) -> None:
        """Wait while reading messages."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                self._receive(left)

    def wait_for(self, text: str, timeout: float = 90.0) -> bool:
        """Wait for a text on the page; return False after `timeout` [s]."""
        end = time.monotonic() + timeout
        while text not in self.text():
            if time.monotonic() > end:
                return False
            self.sleep(0.2)
        return True

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return result.get("result", {}).get("value")

    def text(self) -> str:
        return str(self.evaluate("document.body ? document.body.innerText : ''") or "")

    def picture(self, part: tuple[int, int, int, int] | None = None) -> bytes:
        """Return a PNG of the page or a part (x, y, width, height) [pixels]."""
        clip: dict[str, Any] = {}
        if part is not None:
            x, y, width, height = part
            clip["clip"] = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
        return base64.b64decode(self.call("Page.captureScreenshot", DRAWING_TIME, format="png", **clip)["data"])

    def settle(self, part: tuple[int, int, int, int], timeout: float = 90.0, scripts: Sequence[str] = ()) -> bool:
        """Wait until a part of the page is at rest; return False after `timeout` [s].

        Args:
            timeout: maximum wait [s].
            scripts: JavaScript to run before each look.
        """
        before, end = b"", time.monotonic() + timeout
        while time.monotonic() < end:
            for script in scripts:
                self.evaluate(script)
            begun = self._turns()
            self.sleep(2.0)
            while self._turns() < begun + TURNS and time.monotonic() < end:
                self.sleep(SLICE)
            now = self.picture(part)
            if now == before:
                return True
            before = now
        return False

    def _turns(self) -> float:
        """Return the number of draw callbacks, or infinity."""
        turns = self.evaluate("window.turns")
        return math.inf if turns is None else float(turns)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser and remove its profile."""
        if hasattr(self, "_socket"):
            with contextlib.suppress(Exception):
                self._socket.close()
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        with contextlib.suppress(ProcessLookupError):  # kills helper processes, which would write for a moment longer
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        end = time.monotonic() + 2.0
        while Path(self._profile).exists() and time.monotonic() < end:
            shutil.rmtree(self._profile, ignore_errors=True)


def photograph(
    port: int,
    width: int,
    height: int,
    scripts: Sequence[str],
    share: float = 1.0,
    stopped: threading.Event | None = None,
) -> bytes:
    """Return a PNG of the page at a local port.

    Args:
        width: picture width [pixels].
        height: picture height [pixels].
        scripts: JavaScript to run until rest.
        share: share of the width, from the left, that must rest.
        stopped: event that raises KeyboardInterrupt.
    """
    with Browser(width, height, stopped=stopped) as browser:
        browser.draw_seldom()
        browser.open(f"http://127.0.0.1:{port}")
        if not browser.settle((0, 0, int(width * share), height), scripts=scripts):
            warn("the page did not settle; the picture shows its last state")
        return browser.picture()
