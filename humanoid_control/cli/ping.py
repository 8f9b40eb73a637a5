"""Two halves of a check that processes on this machine hear each other over ROS 2."""

from __future__ import annotations

import sys
import time

TOPIC, TIMEOUT = "humanoid_ping", 15.0


def main() -> int:
    """`talk` publishes until it is ended; `listen` prints how long the first message took [s]."""
    from humanoid_control.nodes.base.ros_env import prepare

    prepare()
    import rclpy
    from std_msgs.msg import Empty

    rclpy.init()
    node = rclpy.create_node(f"humanoid_ping_{sys.argv[1]}")
    begin, heard = time.monotonic(), []
    if sys.argv[1] == "talk":
        publisher = node.create_publisher(Empty, TOPIC, 10)
        node.create_timer(0.05, lambda: publisher.publish(Empty()))
    else:
        node.create_subscription(Empty, TOPIC, lambda _: heard.append(time.monotonic()), 10)
    try:
        while time.monotonic() - begin < TIMEOUT and not heard:
            rclpy.spin_once(node, timeout_sec=0.1)
    except Exception:  # the talker is ended by a signal
        return 0
    if heard:
        print(heard[0] - begin)
    node.destroy_node()
    rclpy.try_shutdown()
    return 0 if heard else 1


if __name__ == "__main__":
    sys.exit(main())
