"""The ground of a walk: as a map or as soles feel it, footholds, the height of the centre of mass, the first posture."""
