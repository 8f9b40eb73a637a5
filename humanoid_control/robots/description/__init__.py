"""Descriptions of robots: URDF trees (`urdf`) and the robot file next to them (`robot_file`)."""
