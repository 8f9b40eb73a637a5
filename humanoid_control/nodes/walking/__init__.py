"""Parts of the node `walker`."""
