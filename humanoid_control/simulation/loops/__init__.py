"""Controllers around a simulated robot, and simulated beside real time."""
