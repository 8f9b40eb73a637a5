"""A browser that the tests of a file share, and meshes that all of them share."""

from __future__ import annotations

import contextlib
import socket

import pytest

from humanoid_control.viewer import browser as viewer_browser
from humanoid_control.viewer import meshes
from humanoid_control.viewer.browser import Browser

HALF = "?fixedDpr=0.5"  # a quarter of the pixels in the scene
COARSE = """{ const get = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function(kind, options) {
    return get.call(this, kind, {...options, antialias: false}); } }"""


_made: dict[tuple, dict] = {}


def _link_meshes(tree, folder=None):
    """As `link_meshes`; the meshes of a robot are made once."""
    key = tree.text(), folder
    if key not in _made:
        _made[key] = meshes.link_meshes(tree, folder)
    return {link: list(found) for link, found in _made[key].items()}


@pytest.fixture(scope="module", autouse=True)
def shared_meshes():
    """A page, a dancer and a picture take the meshes of a robot that another test has made: half of their start."""
    with pytest.MonkeyPatch.context() as patch:
        for room in ("scene", "stills", "dance.stage", "volume_editor.scene"):
            with contextlib.suppress(ImportError):  # without viser
                patch.setattr(f"humanoid_control.viewer.{room}.link_meshes", _link_meshes)
        yield


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
