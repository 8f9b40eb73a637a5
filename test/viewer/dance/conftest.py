"""A page of dancers without a browser, and a browser for those tests that look at one."""

from __future__ import annotations

import time

import pytest

from humanoid_control.mocap import load_clip
from test.dance_library import trc_text
from test.viewer.conftest import chromium, coarse_pictures  # noqa: F401


@pytest.fixture(scope="session")
def short_clip(tmp_path_factory):
    """A TRC file of three seconds of the built-in dance."""
    dance = load_clip("dance").crop(6.0, 9.0)
    path = tmp_path_factory.mktemp("clips") / "three seconds.trc"
    path.write_text(trc_text(dance.labels, dance.rate, dance.positions))
    return path


def until(page, condition, what, seconds=60.0, passed=1.0 / 30.0):
    """Let a page go on until something is so."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        page.tick(passed)
        time.sleep(0.005)
