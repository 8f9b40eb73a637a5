"""Joint-muscle mappings: lengths and moment arms as a function of joint angles, exact or fitted."""
