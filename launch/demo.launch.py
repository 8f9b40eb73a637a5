"""The demonstration: a simulated robot imitates a dance. `ros2 launch humanoid_control demo.launch.py robot:=hrp2`"""

from humanoid_control.session.launching import stack_launch_description


def generate_launch_description():
    return stack_launch_description("imitation")
