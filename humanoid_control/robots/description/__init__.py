"""robots/description."""
