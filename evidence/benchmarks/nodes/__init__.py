"""Benches of running nodes, heard by a process next to them."""
