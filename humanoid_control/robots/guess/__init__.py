"""robots/guess."""
