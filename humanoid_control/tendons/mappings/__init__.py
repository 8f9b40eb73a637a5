"""Joint-muscle mappings: lengths and moment arms over joint angles, exact or fitted."""
