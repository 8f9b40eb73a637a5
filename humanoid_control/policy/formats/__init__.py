"""Readers of policy files, one module a format; see `reader.read_policy`."""
