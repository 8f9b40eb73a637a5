"""nodes/session."""
