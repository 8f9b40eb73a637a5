"""Tendon winches on the robot's buses: hardware file (`file`), winches (`units`), control cycle (`driver`)."""
