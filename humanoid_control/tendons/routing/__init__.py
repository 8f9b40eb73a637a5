"""Routing of tendons over the links of a mechanism: exact lengths, moment arms and their derivatives, compiled."""
