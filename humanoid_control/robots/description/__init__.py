"""Robot descriptions: URDF trees (`urdf`) and robot files (`robot_file`)."""
