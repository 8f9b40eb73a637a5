"""Steps of a world, each many of them in one compiled call."""
