"""MoveIt configuration of a robot: planning groups, pairs of links that need no check, and the files of a package."""
