"""Descriptions of robots: URDF trees (`urdf`) and the robot file beside them (`robot_file`)."""
