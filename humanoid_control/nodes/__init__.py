"""ROS 2 nodes. Each node is a process that connects topics to algorithms.

`humanoid_control.session` starts and supervises stacks of nodes. Custom nodes can build on `TickNode` or on rclpy alone
(`examples/your_own_node.py`).
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy
from humanoid_control.nodes.base.ros_env import prepare

if TYPE_CHECKING:
    from humanoid_control.nodes.base.parameters import NodeParameters as NodeParameters
    from humanoid_control.nodes.base.parameters import param as param
    from humanoid_control.nodes.base.ros_env import require_ros as require_ros
    from humanoid_control.nodes.base.runner import main_of as main_of
    from humanoid_control.nodes.base.tick_node import TickNode as TickNode
    from humanoid_control.nodes.node_specs import NODES as NODES

prepare()
__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "base.parameters": ["NodeParameters", "param"],
        "base.ros_env": ["require_ros"],
        "base.runner": ["main_of"],
        "base.tick_node": ["TickNode"],
        "node_specs": ["NODES"],
    },
    public=["NodeParameters", "TickNode", "main_of", "param"],
)
