"""Drives on a CAN bus: CANopen CiA 402 and MIT mini-cheetah actuators."""
