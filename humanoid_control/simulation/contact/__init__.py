"""Contact with the ground: contact law, contact points of a robot, shapes of the ground, forces."""
