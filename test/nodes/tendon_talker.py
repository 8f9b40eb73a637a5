"""What tests of nodes with tendons share: a publisher of lengths, and what the nodes need compiled beforehand."""

import numpy as np
from rclpy.duration import Duration
from sensor_msgs.msg import JointState

from humanoid_control.ik.follower import TargetFollower
from humanoid_control.nodes.estimating.tendon_estimation import estimator_of
from humanoid_control.nodes.state_estimator_parameters import StateEstimatorParameters
from humanoid_control.robots.tendons import tendon_geometry
from humanoid_control.simulation.drives.tendon_plant import TendonPlant


def compile_tendons(robot):
    """What the nodes need is compiled here, or they would not be ready in time."""
    TendonPlant(robot).states(robot.postures["neutral"], np.zeros(robot.n))
    for mode in ("absolute", "r2"):
        estimator = estimator_of(robot, StateEstimatorParameters(robot.name, source="tendons", mode=mode))
        for _ in range(12):
            estimator.step(np.full(len(estimator.muscle_names), np.nan))
    follower = TargetFollower(robot)
    follower.update("l_wrist", [0.2, 0.3, 1.0], [0.0, 0.0, 0.0, 1.0], 0.0)
    follower.step(0.0, 0.004)


class Tendons:
    """Publishes the lengths of a robot's tendons in a posture, or something else in their place."""

    def __init__(self, graph, robot, joints):
        self.graph, self.geometry = graph, tendon_geometry(robot, joints=robot.joint_names)
        self.publisher = graph.publisher(JointState, "tendon_states")
        self.names, self.lengths = list(self.geometry.tendon_names), self.geometry.raw(joints[None])[0][0]

    def send(self, names=None, lengths=None, tensions=None, stamp=None):
        m = JointState(
            name=names or self.names, position=list(map(float, self.lengths if lengths is None else lengths))
        )
        m.effort = [] if tensions is None else list(map(float, tensions))
        m.header.stamp = stamp or self.now()
        self.publisher.publish(m)
        self.graph.spin(0.004)

    def now(self, later=0.0):
        return (self.graph.node.get_clock().now() + Duration(seconds=later)).to_msg()

    def sending(self, **other):
        return lambda: self.send(**other)
