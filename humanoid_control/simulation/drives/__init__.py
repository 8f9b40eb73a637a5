"""Drives of the joints: commands and position loops, motors, gears and their friction, rotors and loops as bodies."""
