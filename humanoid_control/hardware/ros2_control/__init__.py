"""ros2_control in both directions: files with which it drives our robots, commands for robots that it drives."""
