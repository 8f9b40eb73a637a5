"""Robots that dance side by side in a browser page, in a recording or in a film, each solved while it plays; no ROS."""
