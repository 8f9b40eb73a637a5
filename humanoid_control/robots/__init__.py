"""Robots with limits, postures, points and shapes, by catalogue name or URDF.

```python
from humanoid_control.robots import load_robot

robot = load_robot("hrp2")
monitor = robot.collision_monitor()
for near in (monitor.update(q, 0.05) for q in (robot.q("zero"), robot.q("neutral"))):
    print([monitor.name(pair) for pair in near.pair], near.distance)
```
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.robots.accelerations import DriveAccelerations as DriveAccelerations
    from humanoid_control.robots.accelerations import acceleration_limits as acceleration_limits
    from humanoid_control.robots.catalogue import catalogue_rows as catalogue_rows
    from humanoid_control.robots.catalogue import load_robot as load_robot
    from humanoid_control.robots.catalogue import load_robots as load_robots
    from humanoid_control.robots.guess.robot_file import guess_robot_file as guess_robot_file
    from humanoid_control.robots.names import CATALOGUE as CATALOGUE
    from humanoid_control.robots.names import MODELS as MODELS
    from humanoid_control.robots.names import REFERENCES as REFERENCES
    from humanoid_control.robots.robot import Robot as Robot
    from humanoid_control.robots.self_collision import CollisionMonitor as CollisionMonitor

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "accelerations": ["DriveAccelerations", "acceleration_limits"],
        "catalogue": ["catalogue_rows", "load_robot", "load_robots"],
        "guess.robot_file": ["guess_robot_file"],
        "names": ["CATALOGUE", "MODELS", "REFERENCES"],
        "robot": ["Robot"],
        "self_collision": ["CollisionMonitor"],
    },
    public=[
        "CATALOGUE",
        "CollisionMonitor",
        "Robot",
        "acceleration_limits",
        "guess_robot_file",
        "load_robot",
        "load_robots",
    ],
)
