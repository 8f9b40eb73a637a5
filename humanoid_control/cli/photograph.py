"""A photograph of a page, taken when its scene has come to rest."""

from __future__ import annotations

from collections.abc import Sequence

from humanoid_control.cli.output import warn
from humanoid_control.viewer.browser import Browser


def photograph(port: int, width: int, height: int, scripts: Sequence[str], share: float = 1.0) -> bytes:
    """A PNG of the page at a port of this machine.

    Args:
        port: of the page.
        width, height: of the picture [pixels].
        scripts: JavaScript that is run in the page first.
        share: of the width, from the left, that has to come to rest.
    """
    with Browser(width, height) as browser:
        browser.open(f"http://127.0.0.1:{port}")
        for script in scripts:
            browser.evaluate(script)
        if not browser.settle((0, 0, int(width * share), height)):
            warn("the page did not come to rest; the picture is of its last state")
        return browser.picture()
