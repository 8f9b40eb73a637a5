"""Unitree humanoids over DDS: `rt/lowcmd` and `rt/lowstate` at 500 Hz."""
