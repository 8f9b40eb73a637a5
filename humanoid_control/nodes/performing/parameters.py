"""Parameters of the node `whole_body_controller`."""

from __future__ import annotations

from dataclasses import dataclass

from humanoid_control.nodes.base.parameters import param
from humanoid_control.nodes.streaming.clip_source import ClipFileParameters


@dataclass(frozen=True)
class WholeBodyControllerParameters(ClipFileParameters):
    """Parameters of the whole-body controller."""

    motion: str = param("", "file of a feasible motion (format dynamic); empty: the clip is made one")
    pace: float = param(0.0, "pace of the whole clip; 0: slower only where that is needed", "", 0.0, 2.0)
    begin: bool = param(True, "perform as soon as the robot stands; false: wait for ~/start")
    loop: bool = param(False, "perform again and again, from where the robot stands", live=True)
    rate: float = param(500.0, "rate of the commands; sensors that come faster are passed over", "Hz", 100.0, 1000.0)
    friction: float = param(0.6, "friction of the ground that forces may use", "", 0.1, 2.0)
    sensor_late: float = param(
        0.02, "silence of a sensor, in its own time, from which its last reading is used", "s", 0.005, 1.0, live=True
    )
    sensor_lost: float = param(
        0.06, "silence of a sensor after which the robot comes to rest on both feet", "s", 0.01, 2.0, live=True
    )
    sensor_off: float = param(0.2, "silence of the joints after which they are only damped", "s", 0.02, 5.0, live=True)
    start_check: bool = param(True, "stand only where the sensors agree that the robot is at rest on both feet")
    odom_frame: str = param("odom", "frame of odom and of the plan")
    odom_rate: float = param(100.0, "rate of odom, tf, contacts and references", "Hz", 1.0, 1000.0)
    markers_rate: float = param(
        15.0, "rate of footsteps/planned with subscribers; 0: none", "Hz", 0.0, 100.0, live=True
    )
