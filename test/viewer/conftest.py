"""A browser that the tests of a file share."""

from __future__ import annotations

import pytest

from humanoid_control.viewer.browser import Browser

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
