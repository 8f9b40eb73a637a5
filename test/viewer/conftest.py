"""A browser that the tests of a file share."""

from __future__ import annotations

import socket

import pytest

from humanoid_control.viewer import browser as viewer_browser
from humanoid_control.viewer.browser import Browser

HALF = "?fixedDpr=0.5"  # a quarter of the pixels in the scene
COARSE = """{ const get = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function(kind, options) {
    return get.call(this, kind, {...options, antialias: false}); } }"""


@pytest.fixture(scope="module")
def chromium():
    """A browser whose pages draw ten pictures a second, with jagged edges: the processor draws them."""
    with Browser() as browser:
        browser.draw_seldom()
        browser.call("Page.addScriptToEvaluateOnNewDocument", source=COARSE)
        yield browser


@pytest.fixture
def coarse_pictures(monkeypatch):
    """Pictures that a command takes are drawn with jagged edges, and a quarter of the pixels stretched."""

    class Coarse(Browser):
        def open(self, url, wait=5.0):
            self.call("Page.addScriptToEvaluateOnNewDocument", source=COARSE)
            super().open(f"{url}/{HALF}", wait)

    monkeypatch.setattr(viewer_browser, "Browser", Coarse)


@pytest.fixture(scope="module")
def server():
    """A server of viser without a page."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    viser = pytest.importorskip("viser")
    made = viser.ViserServer(host="127.0.0.1", port=port, verbose=False)
    yield made
    made.stop()
