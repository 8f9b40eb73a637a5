"""Launches the stack 'policy': which nodes that is, and how they are wired, is written in nodes/stacks.py."""

from humanoid_control.nodes.launching import stack_launch_description


def generate_launch_description():
    return stack_launch_description("policy")
