"""Soak: a stack runs for hours while nodes are killed, floods and nonsense arrive, and disks fill up."""
