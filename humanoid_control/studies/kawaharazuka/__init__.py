"""The experiments on estimating the joints of a tendon-driven robot, repeated in simulation."""
