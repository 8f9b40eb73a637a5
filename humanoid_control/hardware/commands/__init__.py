"""Joint commands between their source and the drives."""
