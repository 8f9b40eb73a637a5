"""Winches of tendons on the robot's buses: their hardware file, and the driver between commands and motors.

`file` reads the rows of a hardware file, `units` turns actuators into winches, and `driver` is the cycle with the power
states, limits and faults around them.
"""
