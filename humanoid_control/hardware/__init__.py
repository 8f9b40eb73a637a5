"""Real robots: the layer between joint commands and motors, without ROS.

A `Transport` speaks the protocol of one bus; supervision, limits and power states above it serve every transport. A
`Driver` runs both, one `cycle` after the other:

```python
import time

from humanoid_control.hardware import Driver, without_file
from humanoid_control.robots import load_robot

driver = Driver(without_file(load_robot("hrp2", "fixed"), "loopback", rate=200.0))  # simulated drives
driver.open()  # measured, no power
for _ in range(10):
    driver.cycle()
    time.sleep(0.005)
print(driver.machine, driver.refusals())  # MONITOR, and what speaks against power
driver.close()
```
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.hardware.driver import Driver as Driver
    from humanoid_control.hardware.hardware_file import Hardware as Hardware
    from humanoid_control.hardware.hardware_file import read_hardware_file as read_hardware_file
    from humanoid_control.hardware.hardware_file import without_file as without_file
    from humanoid_control.hardware.power import PowerState as PowerState
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
        "driver": ["Driver"],
        "hardware_file": ["Hardware", "read_hardware_file", "without_file"],
        "power": ["PowerState"],
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
    public=[
        "ActuatorCommand",
        "ActuatorSpec",
        "ActuatorState",
        "Driver",
        "Hardware",
        "HardwareError",
        "Mode",
        "Transport",
        "read_hardware_file",
    ],
)
