"""Time that drivers of real robots take for the frames of a cycle, beside the makers' own libraries."""
