"""Position-based solvers: iterate from a start until the targets are met as well as can be (section 4.2)."""

from humanoid_control.ik.position.base import PositionSolver, Solution
from humanoid_control.ik.position.constrained import (
    ClearanceConstraint,
    ConstrainedGoals,
    HalfSpaceConstraint,
    Inequality,
)
from humanoid_control.ik.position.descent import Descent
from humanoid_control.ik.position.directions import (
    Bfgs,
    ConjugateGradient,
    Direction,
    GaussNewton,
    SteepestDescent,
)
from humanoid_control.ik.position.levenberg_marquardt import LevenbergMarquardt
from humanoid_control.ik.position.newton import NewtonRaphson
from humanoid_control.ik.position.step_size import Armijo, ConstantStep, ExactLineSearch, StepSize, WolfePowell
from humanoid_control.ik.position.stopping import Stop, StopSettings

__all__ = [
    "Armijo",
    "Bfgs",
    "ClearanceConstraint",
    "ConjugateGradient",
    "ConstantStep",
    "ConstrainedGoals",
    "Descent",
    "Direction",
    "ExactLineSearch",
    "GaussNewton",
    "HalfSpaceConstraint",
    "Inequality",
    "LevenbergMarquardt",
    "NewtonRaphson",
    "PositionSolver",
    "Solution",
    "SteepestDescent",
    "StepSize",
    "Stop",
    "StopSettings",
    "WolfePowell",
]
