"""Targets of a robot as they come: frames of markers, PoseStamped topics and frames of tf."""
