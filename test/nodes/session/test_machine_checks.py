"""What `humanoid doctor` looks at."""

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.session import machine_checks
from humanoid_control.session.machine_checks import OK, WARN
from humanoid_control.warm_up import retargeting, simulation, tendons, walking

ROOMS = (retargeting, simulation, tendons, walking)


@pytest.mark.parametrize("missing", [None, *ROOMS], ids=lambda room: room and room.__name__.rpartition(".")[2])
def test_kernels_that_are_not_compiled_are_said_with_the_command_that_compiles_them(missing, monkeypatch):
    for room in ROOMS:
        monkeypatch.setattr(room, "compiled", lambda room=room: room is not missing)
    kernels = machine_checks._kernels()
    assert kernels.state == (WARN if missing else OK)
    assert missing is None or kernels.advice.endswith(f"python -m {missing.__name__}")
