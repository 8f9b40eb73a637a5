"""The node `policy` in parts: parameters, sensors and references, outputs."""
