"""Where tendons run over the links of a robot: lengths, moment arms and their changes, exactly."""
