"""Contact with the ground: its law, its points on a robot, the ground's shape, soles and what they feel."""
