"""Walking in the simulated world: how far, how fast, over what and against what pushes."""
