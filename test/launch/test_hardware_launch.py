"""hardware.launch.py under the real launch system: a driver that is interrupted, and one that is killed."""

import importlib.util
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.paths import share_dir
from humanoid_control.session.stacks import NODES
from test.launch.test_launch_faults import CODE
from test.places import domain

pytestmark = [
    pytest.mark.ros,
    pytest.mark.stack,
    pytest.mark.patient,
    pytest.mark.skipif(
        any(importlib.util.find_spec(m) is None for m in ("launch", "launch_ros")),
        reason="needs the packages launch and launch_ros: source a ROS 2 installation, or put them on PYTHONPATH",
    ),
]
SETTINGS = "/**:\n  ros__parameters: {priority: 0, missed_warn: 100.0, missed_error: 100.0}\n"
DRIVER = "/**:\n  robot_driver:\n    ros__parameters: {rate: 100.0, late_tolerance: 100.0}\n"
ENABLE = "from humanoid_control.cli.main import main; import sys; sys.exit(main(['hardware', 'call', 'enable']))"


class Launch:
    """`ros2 launch humanoid_control hardware.launch.py hardware:=simulator`: a real driver, the other nodes asleep."""

    def __init__(self, folder):
        self.log = folder / "said"
        binaries = folder / "prefix/lib/humanoid_control"
        binaries.mkdir(parents=True)
        marker = folder / "prefix/share/ament_index/resource_index/packages/humanoid_control"
        marker.parent.mkdir(parents=True)
        marker.touch()
        for node in NODES:
            real = f'exec {sys.executable} -u -m humanoid_control.nodes.{node} "$@"'
            (binaries / node).write_text(f"#!/bin/sh\n{real if node == 'robot_driver' else 'exec sleep 600'}\n")
            (binaries / node).chmod(0o755)
        (folder / "parameters.yaml").write_text(SETTINGS + DRIVER.removeprefix("/**:\n"))
        self.env = {
            **os.environ,
            "AMENT_PREFIX_PATH": os.pathsep.join([str(folder / "prefix"), os.environ.get("AMENT_PREFIX_PATH", "")]),
            "ROS_DOMAIN_ID": domain("launch"),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "ROS_LOG_DIR": str(folder / "log"),
        }
        arguments = ["hardware:=simulator", "rsp:=false", f"params_file:={folder / 'parameters.yaml'}"]
        command = [sys.executable, "-c", CODE, f"{share_dir()}/launch/hardware.launch.py", *arguments]
        self.process = subprocess.Popen(
            command, env=self.env, stdout=self.log.open("w"), stderr=subprocess.STDOUT, start_new_session=True
        )

    def until(self, word, timeout=120.0):
        """Wait until somebody says this; all that was said."""
        end = time.monotonic() + timeout
        while word not in (text := self.log.read_text()):
            assert time.monotonic() < end and self.process.poll() is None, f"waited in vain: {word}\n{text[-3000:]}"
            time.sleep(0.05)
        return text

    def driver(self):
        """Process id of the driver."""
        line = next(s for s in self.until("process started").splitlines() if "[robot_driver" in s and "pid" in s)
        return int(line.rpartition("[")[2].rstrip("]"))

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture
def launch(tmp_path):
    launched = Launch(tmp_path)
    yield launched
    launched.close()


def test_one_interrupt_brings_the_robot_to_rest_although_it_comes_twice(launch):
    """As from a terminal: to the whole group, whose launch hands it on."""
    launch.until("[robot_driver]: MONITOR")
    done = subprocess.run([sys.executable, "-c", ENABLE], env=launch.env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    launch.until("[robot_driver]: HOLD")
    os.killpg(launch.process.pid, signal.SIGINT)
    launch.process.wait(60)
    text = launch.log.read_text()
    words = text[text.index("[robot_driver]: HOLD") :]
    assert "STOPPING: switching off" in words and words.index("STOPPING") < words.rindex("[robot_driver]: MONITOR")
    assert "interrupted twice" not in words and "ESTOP" not in words


def test_a_driver_that_was_killed_is_not_started_again_and_ends_the_launch(launch):
    launch.until("[robot_driver]: MONITOR")
    os.kill(launch.driver(), signal.SIGKILL)
    assert launch.process.wait(60) != 0
    text = launch.log.read_text()
    assert "robot_driver ended with code -9 and is not restarted automatically" in text
    assert text.count("READY robot_driver") == 1
