"""Time that drivers of real robots take for the frames of a cycle, next to the makers' own libraries."""
