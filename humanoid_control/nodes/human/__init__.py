"""Parts of the node `human_motion`."""
