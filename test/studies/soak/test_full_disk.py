"""A recorder whose disk becomes full while somebody publishes, and one that has room."""

import threading
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from evidence.studies.companion import Companion
from evidence.studies.soak.soak import fill_disk
from test.places import domain

pytestmark = [pytest.mark.ros, pytest.mark.patient]


@pytest.fixture
def session(tmp_path):
    """As much of a session as a full disk needs, without its nodes."""
    return SimpleNamespace(directory=tmp_path, stopped=threading.Event(), run=time.sleep)


@pytest.fixture
def flood(monkeypatch):
    """Markers, megabytes of them a second."""
    monkeypatch.setenv("ROS_DOMAIN_ID", domain("nodes"))
    with Companion("soak.intruder", "hrp2") as intruder:
        assert intruder.heard() == "ready"
        intruder.say("flood 60 0")
        yield
        intruder.process.kill()


@pytest.mark.nightly
def test_a_recorder_whose_disk_is_full_says_so_and_ends(flood, session, tmp_path):
    begin = time.monotonic()
    said = fill_disk(session)
    assert "the recording" in said and "stops here: File too large" in said and "Traceback" not in said
    assert time.monotonic() - begin < 50 and not list(tmp_path.iterdir()), "nothing is left of it"


@pytest.mark.nightly
def test_a_recorder_that_has_room_says_nothing(session, flood):
    session.stopped.set()  # nobody waits for it any longer
    assert fill_disk(session, room=2**40) == ""
