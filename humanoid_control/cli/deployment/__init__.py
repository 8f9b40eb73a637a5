"""Commands for a robot in use: hardware, ros2_control, diagnosis."""
