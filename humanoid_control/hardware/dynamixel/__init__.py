"""Dynamixel servos, protocol 2.0: frames, the serial port, models, the transport."""
