"""walking."""
