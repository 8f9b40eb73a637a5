"""The node `walker` in parts: parameters, sensors, requests, outputs."""
