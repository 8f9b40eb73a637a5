"""robots/generate."""
