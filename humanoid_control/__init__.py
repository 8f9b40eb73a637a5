"""Real-time humanoid robot control on ROS 2: estimation, inverse kinematics, streaming, simulation."""

__version__ = "0.2.0"
