"""Commands about human motions and human-like arm motions."""
