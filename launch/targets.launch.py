"""Launches the stack 'targets': which nodes that is, and how they are wired, is written in session/stacks.py."""

from humanoid_control.session.launching import stack_launch_description


def generate_launch_description():
    return stack_launch_description("targets")
