"""Real robots: what stands between joint commands and motors, without ROS.

A `Transport` speaks the protocol of the drives on one bus; all that keeps the robot safe is above it and the same for
every transport.
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.hardware.transport import TRANSPORTS as TRANSPORTS
    from humanoid_control.hardware.transport import ActuatorCommand as ActuatorCommand
    from humanoid_control.hardware.transport import ActuatorSpec as ActuatorSpec
    from humanoid_control.hardware.transport import ActuatorState as ActuatorState
    from humanoid_control.hardware.transport import BusSpec as BusSpec
    from humanoid_control.hardware.transport import Flag as Flag
    from humanoid_control.hardware.transport import GuardSpec as GuardSpec
    from humanoid_control.hardware.transport import HardwareError as HardwareError
    from humanoid_control.hardware.transport import Mode as Mode
    from humanoid_control.hardware.transport import Silence as Silence
    from humanoid_control.hardware.transport import Transport as Transport

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "transport": [
            "TRANSPORTS",
            "ActuatorCommand",
            "ActuatorSpec",
            "ActuatorState",
            "BusSpec",
            "Flag",
            "GuardSpec",
            "HardwareError",
            "Mode",
            "Silence",
            "Transport",
        ],
    },
)
