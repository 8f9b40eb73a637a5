"""Simulation of a robot in its world: drives, ground contact, sensors, and the engines that step them.

```python
import numpy as np

from humanoid_control.simulation import SimulationConfig

engine = SimulationConfig("lola", "floating").build()  # at rest in the neutral posture, commanded to stay there
engine.push(engine.robot.root_link, np.array([60.0, 0, 0, 0, 0, 0]), duration=0.1)  # [N], [N m], [s]
engine.step(1000)  # 1 s
print(engine.read().joints.q)
```

`Engine` implements `kinematics.joint_state.RobotInterface`, the interface of the real robot.
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.simulation.contact.ground import Ground as Ground
    from humanoid_control.simulation.contact.points import ContactSettings as ContactSettings
    from humanoid_control.simulation.drives.position_control import DriveGains as DriveGains
    from humanoid_control.simulation.engine import ENGINES as ENGINES
    from humanoid_control.simulation.engine import ROTORS as ROTORS
    from humanoid_control.simulation.engine import Engine as Engine
    from humanoid_control.simulation.engine import SimulationConfig as SimulationConfig
    from humanoid_control.simulation.engine import make_engine as make_engine
    from humanoid_control.simulation.engine import quasi_direct_armature as quasi_direct_armature
    from humanoid_control.simulation.many_worlds import simulate_many as simulate_many
    from humanoid_control.simulation.noisy_sensors import NoisySensors as NoisySensors
    from humanoid_control.simulation.sensors.sensor_model import Imperfection as Imperfection
    from humanoid_control.simulation.sensors.sensor_model import Sensor as Sensor
    from humanoid_control.simulation.settings import DRIVES as DRIVES
    from humanoid_control.simulation.settings import TOUCHING as TOUCHING
    from humanoid_control.simulation.settings import WorldSettings as WorldSettings
    from humanoid_control.simulation.worlds.multibody_world import MultibodyWorld as MultibodyWorld

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "engine": ["ENGINES", "ROTORS", "Engine", "SimulationConfig", "make_engine", "quasi_direct_armature"],
        "settings": ["DRIVES", "TOUCHING", "WorldSettings"],
        "contact.ground": ["Ground"],
        "contact.points": ["ContactSettings"],
        "drives.position_control": ["DriveGains"],
        "noisy_sensors": ["NoisySensors"],
        "sensors.sensor_model": ["Imperfection", "Sensor"],
        "many_worlds": ["simulate_many"],
        "worlds.multibody_world": ["MultibodyWorld"],
    },
    public=[
        "ContactSettings",
        "DriveGains",
        "Engine",
        "Ground",
        "Imperfection",
        "MultibodyWorld",
        "SimulationConfig",
        "make_engine",
        "simulate_many",
    ],
)
