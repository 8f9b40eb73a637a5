"""Time that the person as a model takes: fit, calibration and inverse dynamics of public recordings."""
