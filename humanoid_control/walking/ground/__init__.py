"""The ground of a walk: a map, or what soles feel; footholds, height of the centre of mass, the first posture."""
