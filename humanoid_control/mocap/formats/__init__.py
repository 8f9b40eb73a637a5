"""mocap/formats."""
