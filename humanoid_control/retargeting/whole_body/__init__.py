"""The whole body: root, trunk, arms and legs of a floating robot, with its feet on the ground."""
