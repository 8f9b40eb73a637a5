"""`humanoid ros2_control`, files with which ros2_control drives a robot; see `command`."""

from humanoid_control.cli.ros2_control.command import EXAMPLES, add_arguments, run

__all__ = ["EXAMPLES", "add_arguments", "run"]
