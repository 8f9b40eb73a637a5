"""Walk planning: timed footsteps, pendulum motion, momentum compensation."""
