"""Stacks that go on: with a full disk, without their helpers, and with a node that hangs."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from test.cli.test_stack import SLOW, calm, ear, nodes_of, wait_for  # noqa: F401
from test.places import port

pytestmark = [pytest.mark.ros, pytest.mark.stack, pytest.mark.slow, pytest.mark.patient]
NODES = ("simulator", "state_estimator", "whole_body_ik", "trajectory_streamer")


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"needs the right to mount a small disk: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.nightly
def test_control_goes_on_with_a_full_disk_and_a_node_that_stands_still(humanoid, ear, small_disk):  # noqa: F811
    """The recorder is given up with the reason; meanwhile a node is stopped, and another one killed."""
    settings = ("--set", f"viewer.port={port(8)}", *SLOW, *calm(*NODES))
    up = humanoid.start("up", "imitation", "--robot", "wabian2", "--record", *settings, HUMANOID_HOME=str(small_disk))
    log = Path(up.log_path)
    wait_for(lambda: "running;" in log.read_text(), "the stack")
    wait_for(lambda: "record: ended" in log.read_text(), "the end of the recorder")
    (line,) = (x for x in " ".join(log.read_text().split()).split("record: ended")[1:])
    assert line.startswith(" with code 2; not restarted, the other nodes continue: humanoid record: the recording")
    assert "No space left on device; the disk is full" in line
    ear.wait_for(1.0, after=time.time_ns())
    before = nodes_of(small_disk)
    assert "record" not in before
    os.kill(before["whole_body_ik"], signal.SIGSTOP)
    stopped = time.monotonic()
    wait_for(lambda: "whole_body_ik: its loop was stalled" in log.read_text(), "the heartbeat to be missed")
    assert time.monotonic() - stopped < 2.0
    os.kill(before["state_estimator"], signal.SIGKILL)
    wait_for(lambda: "state_estimator: ended with code -9: restarted" in log.read_text(), "another estimator")
    ear.wait_for(1.0, after=time.time_ns())
    up.send_signal(signal.SIGINT)
    assert up.wait(60) == 0, log.read_text()
    assert "Traceback" not in log.read_text()
