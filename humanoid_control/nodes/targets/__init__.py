"""Targets of a robot: marker frames, PoseStamped topics, tf frames."""
