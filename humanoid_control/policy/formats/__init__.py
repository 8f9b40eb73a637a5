"""Readers of policy files, a module a format; `reader.read_policy` finds the format."""
