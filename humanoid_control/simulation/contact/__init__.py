"""Contact with the ground: its law, its points on a robot, the ground's shape, the forces of all points."""
