"""Base of the nodes: parameters, fixed-rate tick, messages, main loop."""
