"""Ground of a walk: terrain, footholds, centre-of-mass height, initial posture."""
