"""A small library of clips: pieces of the built-in dance, of less than a second each."""

from __future__ import annotations

import pytest

from humanoid_control.clip_library import LibrarySettings, WorkerRobot
from test.dance_library import write_library


@pytest.fixture(scope="session")
def small_library(tmp_path_factory):
    """Four clips; nobody may change them."""
    return write_library(tmp_path_factory.mktemp("library"), 4)


@pytest.fixture(scope="session")
def hrp2():
    return WorkerRobot.of("hrp2")


@pytest.fixture(scope="session")
def whole():
    return LibrarySettings(whole_body=True)
