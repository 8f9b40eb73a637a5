"""What nodes load: the compiler costs 60 MB and 0.2 s, and nodes that compile nothing go without it."""

import subprocess
import sys

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")


WATCHERS = ["cli.main", "cli.up", "cli.demo", "session.session", "session.recording"]


@pytest.mark.parametrize("module", WATCHERS)
def test_what_only_watches_nodes_loads_no_robot(module):
    """Supervisor and recorder run as long as the robot does: 45 MB each with pinocchio, 120 MB with the compiler."""
    code = f"import sys, humanoid_control.{module} as module; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = set(out.stdout.split())
    assert f"humanoid_control.{module}" in loaded, out.stderr
    assert not loaded & {"pinocchio", "coal", "numba", "scipy", "mujoco"}


@pytest.mark.parametrize("node", ["state_estimator", "viewer"])
def test_nodes_that_compile_nothing_do_not_load_the_compiler(node):
    code = f"import sys, humanoid_control.nodes.{node}; print('numba' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "False", result.stderr
