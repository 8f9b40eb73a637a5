"""Robots driven by tendons: their geometry, their joint-muscle mappings, and joint angles from tendon lengths."""
