"""From commands to what the drives are told: interpolated, blended to, inside all limits."""
