"""Unitree's humanoids over DDS: `rt/lowcmd` and `rt/lowstate`, 500 Hz, position, velocity, torque and gains per motor.

Frames are packed and read as bytes on a table of offsets, since the objects of a DDS binding take a third of a
millisecond each.
"""
