"""nodes/base."""
