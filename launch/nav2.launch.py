"""Launches Nav2's own controller and the stack 'walking': a simulated robot walks to goals of Nav2."""

from humanoid_control.session.launching import navigation_launch_description


def generate_launch_description():
    return navigation_launch_description()
