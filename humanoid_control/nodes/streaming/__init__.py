"""Clip and live-marker sources of streaming nodes."""
