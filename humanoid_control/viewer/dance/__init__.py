"""Robots dancing side by side in a page, recording or film, without ROS."""
