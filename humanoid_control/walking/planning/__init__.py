"""Plans of a walk: footsteps in time, the pendulum that follows them, and the momentum that it leaves out."""
