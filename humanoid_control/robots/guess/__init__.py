"""The robot file of an unknown URDF guessed from its names and structure (`humanoid robots map`)."""
