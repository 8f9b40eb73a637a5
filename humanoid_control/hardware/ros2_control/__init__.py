"""ros2_control: files that drive our robots, and commands for robots it drives."""
