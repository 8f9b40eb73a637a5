"""The real launch system with nodes that refuse their input, or crash: what it starts, what it says, how it ends.

The nodes are scripts: what is looked at here is launch.
"""

import importlib.util
import os
import subprocess
import sys
import time

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.paths import share_dir
from humanoid_control.session.stacks import NODES
from test.places import domain

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(
        any(importlib.util.find_spec(m) is None for m in ("launch", "launch_ros")),
        reason="needs the packages launch and launch_ros: source a ROS 2 installation, or put them on PYTHONPATH",
    ),
]
CODE = """
import sys, launch
from launch.launch_description_sources import PythonLaunchDescriptionSource as Source
path, arguments = sys.argv[1], sys.argv[2:]
service = launch.LaunchService(argv=arguments)
include = launch.actions.IncludeLaunchDescription(
    Source(path), launch_arguments=[tuple(a.split(":=", 1)) for a in arguments]
)
service.include_launch_description(launch.LaunchDescription([include]))
sys.exit(service.run())
"""
WAITS = "#!/bin/sh\nexec sleep 60\n"


@pytest.fixture
def launched(tmp_path):
    """As `ros2 launch humanoid_control NAME.launch.py ARGUMENTS`; exit code, what was said, and the seconds it took."""

    def run(*arguments: str, **scripts: str):
        prefix = tmp_path / "prefix"
        (prefix / "lib/humanoid_control").mkdir(parents=True)
        marker = prefix / "share/ament_index/resource_index/packages/humanoid_control"
        marker.parent.mkdir(parents=True)
        marker.touch()
        for node in NODES:
            script = prefix / "lib/humanoid_control" / node
            script.write_text(f"#!/bin/sh\necho {node} >> {tmp_path}/started\n" + scripts.get(node, "exec sleep 60\n"))
            script.chmod(0o755)
        env = {
            **os.environ,
            "AMENT_PREFIX_PATH": os.pathsep.join([str(prefix), os.environ.get("AMENT_PREFIX_PATH", "")]),
            "ROS_DOMAIN_ID": domain("launch"),
            "ROS_LOG_DIR": str(tmp_path / "log"),
        }
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", CODE, f"{share_dir()}/launch/demo.launch.py", *arguments],
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        started = tmp_path / "started"
        return done, started.read_text().split() if started.exists() else [], time.monotonic() - begin

    return run


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("robot:=hpr2", "unknown robot 'hpr2': did you mean hrp2"),
        ("rviz:=perhaps", "rviz must be true or false, got 'perhaps'"),
        ("rviz:=true", "rviz:=true needs rviz2, which is not installed"),
        ("namespace:=a-b", "namespace must be letters, digits and _"),
        ("prot:=8080", "unknown launch argument 'prot': did you mean port"),
    ],
)
def test_nothing_starts_with_a_wrong_argument_and_the_exit_code_says_so(launched, argument, words):
    done, started, _ = launched(argument)
    assert done.returncode != 0 and not started
    told = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
    assert len(told) == 1 and words in told[0], done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_node_that_refuses_its_input_ends_the_launch_with_its_line(launched):
    refuses = "echo 'simulator: parameter rate must be in 10 .. 1000, got 5' >&2\nexit 2\n"
    done, started, seconds = launched("rsp:=false", simulator=refuses)
    assert done.returncode != 0 and started.count("simulator") == 1
    assert seconds < 20, "it is not tried again and again"
    text = done.stdout + done.stderr
    assert "traceback): simulator: parameter rate must be in 10 .. 1000, got 5" in text, text
    assert "Traceback" not in text


def test_a_node_that_crashes_is_started_again_three_times_and_then_ends_the_launch(launched):
    done, started, _ = launched("rsp:=false", whole_body_ik="kill -9 $$\n")
    assert done.returncode != 0 and started.count("whole_body_ik") == 4 and started.count("simulator") == 1
    assert "whole_body_ik ended with code -9 and failed after 3 restarts" in done.stdout + done.stderr


def test_a_viewer_that_crashes_ends_nothing(launched):
    """The simulator refuses its input a little later, so that the launch comes to an end at all."""
    late = "sleep 8\necho 'simulator: enough' >&2\nexit 2\n"
    done, started, _ = launched("rsp:=false", viewer="exit 3\n", simulator=late)
    text = done.stdout + done.stderr
    assert started.count("viewer") == 4 and "viewer is not restarted; the other nodes continue" in text
    assert "simulator: enough" in text
