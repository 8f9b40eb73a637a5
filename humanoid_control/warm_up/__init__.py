"""warm_up."""
