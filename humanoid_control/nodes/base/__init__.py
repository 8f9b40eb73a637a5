"""Base of the nodes: parameters, the steady tick, messages, serialized markers, the main loop of a process."""
