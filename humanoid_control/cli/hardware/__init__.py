"""`humanoid hardware`, a real robot brought up step by step; see `command`."""

from humanoid_control.cli.hardware.command import EXAMPLES, add_arguments, run

__all__ = ["EXAMPLES", "add_arguments", "run"]
