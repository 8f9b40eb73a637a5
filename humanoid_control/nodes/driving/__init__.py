"""The node `robot_driver` in parts: the action of trajectories, and reports of its buses."""
