"""Motion capture: one reader a format into one MarkerClip, marker sets, body points, and a synthetic dance."""
