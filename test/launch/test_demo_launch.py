"""For machines with ROS 2: the demo under launch_testing (`launch_test test/launch/test_demo_launch.py`)."""

import unittest

import pytest

pytest.importorskip("launch_testing", reason="needs launch_testing: source a ROS 2 installation")
pytest.importorskip("launch_ros", reason="needs launch_ros: source a ROS 2 installation")

import launch_testing
import launch_testing.actions
import launch_testing.asserts
import rclpy
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
from sensor_msgs.msg import JointState

from humanoid_control.paths import share_dir
from humanoid_control.warm_up import compiled
from launch import LaunchDescription


@pytest.mark.launch_test
@launch_testing.ready_to_test_action_timeout(120)  # what is launched is read first, on a machine that may be busy
def generate_test_description():
    path = str(share_dir() / "launch" / "demo.launch.py")
    arguments = [("robot", "hrp2"), ("port", "9378"), ("rsp", "false")]
    demo = IncludeLaunchDescription(PythonLaunchDescriptionSource(path), launch_arguments=arguments)
    return LaunchDescription([demo, launch_testing.actions.ReadyToTest()])


class TestDemo(unittest.TestCase):
    def test_commands_move(self):
        rclpy.init()
        node, positions = rclpy.create_node("test_demo"), []
        node.create_subscription(JointState, "joint_commands", lambda m: positions.append(list(m.position)), 10)
        patience = 30 if all(compiled(group) for group in ("retargeting", "simulation")) else 300  # [s]
        end = node.get_clock().now().nanoseconds + patience * 1e9
        while node.get_clock().now().nanoseconds < end:
            rclpy.spin_once(node, timeout_sec=0.1)
            if positions and max(abs(a - b) for a, b in zip(positions[0], positions[-1], strict=True)) > 0.05:
                break
        node.destroy_node()
        rclpy.shutdown()
        self.assertGreater(len(positions), 10)
        self.assertGreater(max(abs(a - b) for a, b in zip(positions[0], positions[-1], strict=True)), 0.05)


@launch_testing.post_shutdown_test()
class TestEnd(unittest.TestCase):
    def test_every_node_ended_in_order(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info)
