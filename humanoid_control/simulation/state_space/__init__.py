"""First-order model dz/dt = f(t, z, u) of a robot, integrators and control loops, slower than `simulation` engines.

```python
import numpy as np

from humanoid_control.robots import load_robot
from humanoid_control.simulation.state_space import IntegratorSettings, StateSpaceModel, integrate

model = StateSpaceModel(load_robot("lola", "floating"), "rigid")
z, voltages = model.initial(), np.zeros(model.inputs)
z = integrate(model.rates, z, 0.01, voltages, settings=IntegratorSettings("mixed"), layout=model.layout)
print(model.base(z)[0][:3])  # where the root link is after 10 ms without voltage [m]
```
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.simulation.state_space.closed_loop import ControlLevel as ControlLevel
    from humanoid_control.simulation.state_space.closed_loop import DriveInputs as DriveInputs
    from humanoid_control.simulation.state_space.closed_loop import run_loop as run_loop
    from humanoid_control.simulation.state_space.closed_loop import run_robot as run_robot
    from humanoid_control.simulation.state_space.integrators import INTEGRATORS as INTEGRATORS
    from humanoid_control.simulation.state_space.integrators import IntegratorSettings as IntegratorSettings
    from humanoid_control.simulation.state_space.integrators import integrate as integrate
    from humanoid_control.simulation.state_space.model import StateLayout as StateLayout
    from humanoid_control.simulation.state_space.model import StateSpaceModel as StateSpaceModel

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "model": ["StateLayout", "StateSpaceModel"],
        "integrators": ["INTEGRATORS", "IntegratorSettings", "integrate"],
        "closed_loop": ["ControlLevel", "DriveInputs", "run_loop", "run_robot"],
    },
    public=["INTEGRATORS", "IntegratorSettings", "StateSpaceModel", "integrate"],
)
