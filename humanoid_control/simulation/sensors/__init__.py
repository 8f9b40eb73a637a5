"""Sensors of a simulated robot and their errors: encoders, IMU, tendon sensors."""
