"""ROS 2 nodes, stacks of nodes and sessions. Each node is a process that connects topics to algorithms.

```python
from humanoid_control.nodes import Session

with Session("imitation", "hrp2", {"trajectory_streamer": {"speed": 0.5}}) as session:
    session.wait_first_motion()
    session.run(seconds=20.0)
```

Custom nodes can build on `TickNode` or on rclpy alone (`examples/your_own_node.py`).
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
    from humanoid_control.nodes.session.runs import Run as Run
    from humanoid_control.nodes.session.runs import list_runs as list_runs
    from humanoid_control.nodes.session.runs import prune_runs as prune_runs
    from humanoid_control.nodes.session.session import Session as Session
    from humanoid_control.nodes.session.supervisor import InputRefused as InputRefused
    from humanoid_control.nodes.session.supervisor import StackFailure as StackFailure
    from humanoid_control.nodes.stacks import NODES as NODES
    from humanoid_control.nodes.stacks import STACKS as STACKS
    from humanoid_control.nodes.stacks import Stack as Stack
    from humanoid_control.nodes.stacks import find_stack as find_stack
    from humanoid_control.nodes.stacks import parse_settings as parse_settings

prepare()
__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "base.parameters": ["NodeParameters", "param"],
        "base.ros_env": ["require_ros"],
        "base.runner": ["main_of"],
        "base.tick_node": ["TickNode"],
        "session.runs": ["Run", "list_runs", "prune_runs"],
        "session.session": ["Session"],
        "session.supervisor": ["InputRefused", "StackFailure"],
        "stacks": ["NODES", "STACKS", "Stack", "find_stack", "parse_settings"],
    },
    public=["NodeParameters", "STACKS", "Session", "Stack", "TickNode", "find_stack", "list_runs", "main_of", "param"],
)
