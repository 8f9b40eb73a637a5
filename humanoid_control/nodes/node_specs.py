"""Specifications of the nodes of stacks. Imports no ROS."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from humanoid_control.nodes.base.parameters import NodeParameters
from humanoid_control.warm_up import (
    HARDWARE,
    HUMAN,
    INVERSE_KINEMATICS,
    PERFORMING,
    RETARGETING,
    SIMULATION,
    TENDONS,
    WALKING,
    WHOLE_BODY,
)


@dataclass(frozen=True)
class NodeSpec:
    """Node of a stack.

    Attributes:
        executable: name of executable, node and module below `humanoid_control.nodes`.
        essential: the stack ends without it.
        powers: it powers drives: it stops first, with enough time, and never restarts automatically.
        kernels: group of kernels that it needs first; empty: none.
    """

    executable: str
    parameters: str
    task: str
    subscribes: tuple[str, ...]
    publishes: tuple[str, ...]
    essential: bool = True
    powers: bool = False
    kernels: str = RETARGETING

    @property
    def module(self) -> str:
        return f"humanoid_control.nodes.{self.executable}"

    def parameter_class(self) -> type[NodeParameters]:
        """Return the parameter dataclass; needs ROS."""
        return getattr(importlib.import_module(self.module), self.parameters)


NODES = {
    spec.executable: spec
    for spec in (
        NodeSpec(
            "simulator",
            "SimulatorParameters",
            "simulate the robot in a virtual world",
            (
                "joint_commands",
                "joint_gains",
                "tendon_commands",
                "simulator/set_state",
                "simulator/set_base",
                "simulator/push",
            ),
            (
                "joint_states",
                "applied_commands",
                "tendon_states",
                "imu",
                "ground_truth/odometry",
                "wrench/FOOT",
                "simulator/paused",
                "robot_description",
                "/clock",
                "/tf",
                "/tf_static",
            ),
            kernels=SIMULATION,
        ),
        NodeSpec(
            "robot_driver",
            "RobotDriverParameters",
            "drive a real robot on its buses, or a simulated substitute: power on request, all commands within "
            "the limits",
            ("joint_commands", "joint_gains", "joint_trajectory", "emergency_stop"),
            ("joint_states", "applied_commands", "hardware_state", "imu", "battery", "/tf_static"),
            powers=True,
            kernels=HARDWARE,
        ),
        NodeSpec(
            "controller_bridge",
            "ControllerBridgeParameters",
            "send joint commands to a ros2_control controller: blended, within the limits, at rest when commands stop",
            ("joint_commands", "joint_states"),
            ("CONTROLLER/commands", "CONTROLLER/joint_trajectory"),
            kernels="",
        ),
        NodeSpec(
            "state_estimator",
            "StateEstimatorParameters",
            "filter joint positions and velocities from encoders, or estimate them from tendons",
            ("joint_states", "tendon_states"),
            ("estimated_joint_states", "state_estimator/covariance", "state_estimator/jae_error", "tendon_markers"),
            kernels="",
        ),
        NodeSpec(
            "tendon_driver",
            "TendonDriverParameters",
            "drive the winches of a real tendon-driven robot on their buses: commands in, wire lengths and "
            "tensions out",
            ("tendon_commands", "tendon_tensions", "emergency_stop"),
            ("tendon_states", "hardware_state"),
            kernels=TENDONS,
        ),
        NodeSpec(
            "tendon_controller",
            "TendonControllerParameters",
            "convert joint commands to winch commands of a tendon-driven robot",
            (
                "joint_commands",
                "tendon_states",
                "estimated_joint_states",
                "state_estimator/covariance",
                "emergency_stop",
            ),
            ("tendon_commands", "tendon_controller/missed", "tendon_controller/references"),
            kernels=TENDONS,
        ),
        NodeSpec(
            "whole_body_ik",
            "WholeBodyIkParameters",
            "convert targets to joint commands within all limits",
            ("targets", "targets/NAME", "estimated_joint_states", "simulator/paused", "hardware_state"),
            ("joint_commands", "ik_markers"),
            kernels=INVERSE_KINEMATICS,
        ),
        NodeSpec(
            "trajectory_streamer",
            "TrajectoryStreamerParameters",
            "convert a motion clip or live markers to targets of the robot",
            ("clip/seek", "markers", "estimated_joint_states", "simulator/paused", "hardware_state"),
            ("targets", "dancer", "clip/time", "clip/duration", "reference_joint_states"),
        ),
        NodeSpec(
            "whole_body_streamer",
            "WholeBodyStreamerParameters",
            "retarget a motion clip live to root, legs and arms of a robot, with feet held on the ground",
            ("clip/seek",),
            (
                "reference_joint_states",
                "reference_odometry",
                "targets",
                "dancer",
                "contacts",
                "clip/time",
                "clip/duration",
                "/tf",
            ),
            kernels=WHOLE_BODY,
        ),
        NodeSpec(
            "target_source",
            "TargetSourceParameters",
            "publish random goals of the hands as targets, some of them unreachable",
            ("estimated_joint_states",),
            ("targets", "goals"),
        ),
        NodeSpec(
            "walker",
            "WalkerParameters",
            "convert a velocity or footsteps to joint commands of biped walking, and compute odometry from the sensors",
            (
                "cmd_vel",
                "joy",
                "footsteps",
                "goal_pose",
                "targets",
                "joint_states",
                "imu",
                "wrench/FOOT",
                "simulator/paused",
                "hardware_state",
            ),
            (
                "joint_commands",
                "odom",
                "footprint",
                "footsteps/planned",
                "footsteps/status",
                "contact/FOOT",
                "walking/state",
                "/tf",
            ),
            kernels=WALKING,
        ),
        NodeSpec(
            "whole_body_controller",
            "WholeBodyControllerParameters",
            "convert a clip or a feasible motion to joint torques of a biped, from the sensors only",
            ("joint_states", "imu", "wrench/FOOT", "simulator/paused"),
            (
                "joint_commands",
                "odom",
                "footprint",
                "contact/FOOT",
                "performing/state",
                "reference_joint_states",
                "reference_odometry",
                "reference_wrench/FOOT",
                "footsteps/planned",
                "clip/time",
                "clip/duration",
                "/tf",
            ),
            kernels=PERFORMING,
        ),
        NodeSpec(
            "policy",
            "PolicyParameters",
            "run a supervised learned policy: sensors and a velocity or a motion to joint commands with gains",
            (
                "joint_states",
                "imu",
                "odom",
                "cmd_vel",
                "reference_joint_states",
                "reference_odometry",
                "body_commands",
                "simulator/paused",
                "hardware_state",
            ),
            ("joint_commands", "joint_gains", "policy/state", "policy/terms"),
            kernels="",
        ),
        NodeSpec(
            "human_motion",
            "HumanMotionParameters",
            "estimate joint angles, moments and imitation points of a person from live markers and force plates",
            ("markers", "plates/plateN"),
            ("human/joint_states", "human/residual", "human/points", "human/markers", "/tf"),
            kernels=HUMAN,
        ),
        NodeSpec(
            "viewer",
            "ViewerParameters",
            "show the robot and all topics in a browser page",
            (
                "joint_states",
                "joint_commands",
                "targets",
                "ik_markers",
                "tendon_markers",
                "dancer",
                "odom",
                "ground_truth/odometry",
                "human/markers",
                "footsteps/planned",
                "contacts",
                "walking/state",
                "performing/state",
                "policy/state",
                "policy/terms",
                "hardware_state",
                "battery",
                "clip/time",
                "clip/duration",
                "/diagnostics",
            ),
            ("clip/seek", "cmd_vel", "simulator/push"),
            essential=False,
            kernels="",
        ),
    )
}
