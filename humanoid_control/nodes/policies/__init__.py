"""Parts of the node `policy`."""
