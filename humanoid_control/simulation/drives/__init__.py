"""Joint drives: position loops, motors, gears with friction, rotors as bodies, tendons on winches."""
