"""What nodes load: the compiler costs 60 MB and 0.2 s, and nodes that compile nothing go without it."""

import subprocess
import sys

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")


@pytest.mark.parametrize("node", ["state_estimator", "viewer"])
def test_nodes_that_compile_nothing_do_not_load_the_compiler(node):
    code = f"import sys, humanoid_control.nodes.{node}; print('numba' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout.strip() == "False", result.stderr
