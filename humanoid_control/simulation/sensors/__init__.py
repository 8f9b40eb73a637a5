"""Sensors: encoders, inertial measurement unit, tendon sensors, and the errors of all."""
