"""Parameters of the node `whole_body_controller`."""

from __future__ import annotations

from dataclasses import dataclass

from humanoid_control.nodes.base.parameters import param
from humanoid_control.nodes.streaming.clip_source import ClipFileParameters


@dataclass(frozen=True)
class WholeBodyControllerParameters(ClipFileParameters):
    """Parameters of the whole-body controller."""

    motion: str = param("", "file of a feasible motion (format dynamic); empty: computed from the clip")
    pace: float = param(0.0, "constant pace of the whole clip; 0: slower only where needed", "", 0.0, 2.0)
    begin: bool = param(True, "perform as soon as the robot stands; false: wait for ~/start")
    loop: bool = param(False, "repeat the performance, starting at the present position of the robot", live=True)
    rate: float = param(500.0, "command rate; sensor messages at a higher rate are skipped", "Hz", 100.0, 1000.0)
    friction: float = param(0.6, "friction coefficient of the ground that contact forces may use", "", 0.1, 2.0)
    sensor_late: float = param(
        0.02, "sensor silence, by its own stamps, after which its last reading is held", "s", 0.005, 1.0, live=True
    )
    sensor_lost: float = param(
        0.06, "sensor silence after which the robot comes to rest on both feet", "s", 0.01, 2.0, live=True
    )
    sensor_off: float = param(
        0.2, "joint state silence after which the joints are only damped", "s", 0.02, 5.0, live=True
    )
    start_check: bool = param(True, "start standing only if the sensors agree that the robot is at rest on both feet")
    odom_frame: str = param("odom", "frame of odom and the plan")
    odom_rate: float = param(100.0, "rate of odom, tf, contacts and references", "Hz", 1.0, 1000.0)
    markers_rate: float = param(
        15.0, "rate of footsteps/planned with subscribers; 0: disabled", "Hz", 0.0, 100.0, live=True
    )
