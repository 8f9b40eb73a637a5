"""Pages without viser: every module loads, and opening one says in a line what to install."""

import subprocess
import sys

import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.viewer import port_is_free

WITHOUT = """
import sys
sys.modules["viser"] = None
from humanoid_control.errors import EnvironmentProblem
from humanoid_control.viewer import *
try:
    LineUp(8123)
except EnvironmentProblem as e:
    print(e)
"""


def test_without_viser_all_of_the_room_loads_and_a_page_says_what_to_install():
    result = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert "pip install 'humanoid_control[viewer]'" in result.stdout, result.stderr
    assert len(result.stdout.splitlines()) == 1


def test_a_node_without_viser_refuses_in_one_line_with_code_2():
    pytest.importorskip("rclpy", reason="needs ROS 2")
    code = "import sys; sys.modules['viser'] = None; from humanoid_control.nodes.viewer import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].startswith("viewer: viser is not installed: pip install")


def test_ports_and_addresses_are_checked():
    for host, port in (("127.0.0.1", 0), ("no.such.host.invalid", 8080)):
        with pytest.raises(ConfigError):
            port_is_free(host, port)
