"""The ROS 2 nodes: wiring between topics and the algorithms, each node a process of its own."""

from humanoid_control.nodes.base.ros_env import prepare

prepare()
