"""Dynamixel servos with protocol 2.0."""
