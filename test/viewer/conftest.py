"""A browser that the tests of a file share."""

from __future__ import annotations

import pytest

from humanoid_control.viewer.browser import Browser

# Without a graphics card every picture is drawn by the processor; a page draws sixty a second, as long as it is open.
SELDOM = """
window.requestAnimationFrame = f => setTimeout(() => f(performance.now()), 100);
window.cancelAnimationFrame = clearTimeout;
"""


@pytest.fixture(scope="module")
def chromium():
    """A browser whose pages draw ten pictures a second."""
    with Browser() as browser:
        browser.call("Page.addScriptToEvaluateOnNewDocument", source=SELDOM)
        yield browser
