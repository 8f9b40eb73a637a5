"""Parts of the node `simulator`."""
