"""Multibody dynamics in minimal coordinates: O(n) with sub-systems for small loops, and reference solvers.

A model is a list of bodies with their joints, each after its parent. Bodies that name the same coordinate, such as a
link and its geared rotor, form a sub-system.

```python
import numpy as np

from humanoid_control.multibody import Body, ForwardDynamics, Inertia, Model, from_pinocchio, rotor
from humanoid_control.robots import load_robot

robot = load_robot("hrp2", "fixed")
bodies = list(from_pinocchio(robot.model).bodies)
knee = next(body for body in bodies if body.name == "r_knee_flexion")
shaft = Inertia(about_origin=np.diag([5e-5, 5e-5, 1e-4]))  # [kg m^2]
bodies.append(Body("motor", knee.parent, rotor(knee.name, ratio=100.0), shaft, knee.A))
model = Model(bodies)
print(ForwardDynamics(model)(robot.q(), np.zeros(model.nv)))  # accelerations, falling [rad/s^2]
```
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.multibody.couplings import CouplerGeometry as CouplerGeometry
    from humanoid_control.multibody.couplings import FourBarGeometry as FourBarGeometry
    from humanoid_control.multibody.couplings import VergenceGeometry as VergenceGeometry
    from humanoid_control.multibody.energy import Totals as Totals
    from humanoid_control.multibody.energy import joint_wrenches as joint_wrenches
    from humanoid_control.multibody.energy import total_momentum_rate as total_momentum_rate
    from humanoid_control.multibody.energy import totals as totals
    from humanoid_control.multibody.force_elements import ForceElements as ForceElements
    from humanoid_control.multibody.force_elements import JointElement as JointElement
    from humanoid_control.multibody.force_elements import MuscleLaw as MuscleLaw
    from humanoid_control.multibody.force_elements import PathElement as PathElement
    from humanoid_control.multibody.force_elements import SpringLaw as SpringLaw
    from humanoid_control.multibody.force_elements import routed_force as routed_force
    from humanoid_control.multibody.forward_dynamics import SOLVERS as SOLVERS
    from humanoid_control.multibody.forward_dynamics import ForwardDynamics as ForwardDynamics
    from humanoid_control.multibody.functional_joint import Axis as Axis
    from humanoid_control.multibody.functional_joint import FunctionalTree as FunctionalTree
    from humanoid_control.multibody.mechanisms import AnkleScrews as AnkleScrews
    from humanoid_control.multibody.mechanisms import DriveMechanism as DriveMechanism
    from humanoid_control.multibody.mechanisms import FourBar as FourBar
    from humanoid_control.multibody.mechanisms import HarmonicDrive as HarmonicDrive
    from humanoid_control.multibody.mechanisms import KneeScrew as KneeScrew
    from humanoid_control.multibody.mechanisms import Vergence as Vergence
    from humanoid_control.multibody.model import ENVIRONMENT as ENVIRONMENT
    from humanoid_control.multibody.model import Body as Body
    from humanoid_control.multibody.model import Inertia as Inertia
    from humanoid_control.multibody.model import Joint as Joint
    from humanoid_control.multibody.model import Loop as Loop
    from humanoid_control.multibody.model import Model as Model
    from humanoid_control.multibody.model import free as free
    from humanoid_control.multibody.model import from_pinocchio as from_pinocchio
    from humanoid_control.multibody.model import polynomial as polynomial
    from humanoid_control.multibody.model import prismatic as prismatic
    from humanoid_control.multibody.model import quadratic as quadratic
    from humanoid_control.multibody.model import revolute as revolute
    from humanoid_control.multibody.model import rotor as rotor
    from humanoid_control.multibody.model import spline as spline

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "model": [
            "ENVIRONMENT",
            "Body",
            "Inertia",
            "Joint",
            "Loop",
            "Model",
            "free",
            "from_pinocchio",
            "polynomial",
            "prismatic",
            "quadratic",
            "revolute",
            "rotor",
            "spline",
        ],
        "forward_dynamics": ["SOLVERS", "ForwardDynamics"],
        "energy": ["Totals", "joint_wrenches", "total_momentum_rate", "totals"],
        "couplings": ["CouplerGeometry", "FourBarGeometry", "VergenceGeometry"],
        "force_elements": ["ForceElements", "JointElement", "MuscleLaw", "PathElement", "SpringLaw", "routed_force"],
        "functional_joint": ["Axis", "FunctionalTree"],
        "mechanisms": ["AnkleScrews", "FourBar", "HarmonicDrive", "KneeScrew", "DriveMechanism", "Vergence"],
    },
    public=[
        "AnkleScrews",
        "Body",
        "DriveMechanism",
        "ForceElements",
        "ForwardDynamics",
        "FourBar",
        "FunctionalTree",
        "HarmonicDrive",
        "Joint",
        "Model",
        "from_pinocchio",
    ],
)
