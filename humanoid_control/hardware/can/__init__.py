"""Drives on a CAN bus: CANopen CiA 402, and actuators that take position, velocity, gains and torque in one frame.

`bus` opens what python-can knows and says in one line why it cannot; `cia402` and `mit` are the two protocols.
"""
