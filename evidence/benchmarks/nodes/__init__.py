"""Benches of running nodes, heard by a process beside them."""
