"""Position-based solvers: iterate from a start until the targets are met as well as can be (section 4.2)."""

from humanoid_control.ik.position.constrained import (
    ClearanceConstraint,
    ConstrainedGoals,
    HalfSpaceConstraint,
    Inequality,
)
from humanoid_control.ik.position.descent import (
    Armijo,
    Bfgs,
    ConjugateGradient,
    ConstantStep,
    Descent,
    Direction,
    ExactLineSearch,
    GaussNewton,
    SteepestDescent,
    StepSize,
    WolfePowell,
)
from humanoid_control.ik.position.solver import (
    LevenbergMarquardt,
    NewtonRaphson,
    PositionSolver,
    Solution,
    Stop,
    StopSettings,
)

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
