"""Position solvers: iterate from a start until the targets are met as well as possible.

Root finding, descent and constrained goals (Schwienbacher 2014, section 4.2). The computing time is not bounded: for
plans and postures, not for a control loop.

    from humanoid_control.ik import lola_tasks
    from humanoid_control.ik.position import LevenbergMarquardt
    from humanoid_control.robots import load_robot

    robot = load_robot("lola", "floating")
    biped = lola_tasks(robot)
    biped.tasks["center_of_mass"].target += [0.02, 0.0, -0.03]
    solution = LevenbergMarquardt(robot).solve(robot.q("neutral"), biped.all())
    print(solution.stop, solution.iterations, solution.residual)
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.ik.position.constrained import ClearanceConstraint as ClearanceConstraint
    from humanoid_control.ik.position.constrained import ConstrainedGoals as ConstrainedGoals
    from humanoid_control.ik.position.constrained import HalfSpaceConstraint as HalfSpaceConstraint
    from humanoid_control.ik.position.constrained import Inequality as Inequality
    from humanoid_control.ik.position.descent import Armijo as Armijo
    from humanoid_control.ik.position.descent import Bfgs as Bfgs
    from humanoid_control.ik.position.descent import ConjugateGradient as ConjugateGradient
    from humanoid_control.ik.position.descent import ConstantStep as ConstantStep
    from humanoid_control.ik.position.descent import Descent as Descent
    from humanoid_control.ik.position.descent import DescentDirection as DescentDirection
    from humanoid_control.ik.position.descent import ExactLineSearch as ExactLineSearch
    from humanoid_control.ik.position.descent import GaussNewton as GaussNewton
    from humanoid_control.ik.position.descent import SteepestDescent as SteepestDescent
    from humanoid_control.ik.position.descent import StepSize as StepSize
    from humanoid_control.ik.position.descent import WolfePowell as WolfePowell
    from humanoid_control.ik.position.solver import LevenbergMarquardt as LevenbergMarquardt
    from humanoid_control.ik.position.solver import NewtonRaphson as NewtonRaphson
    from humanoid_control.ik.position.solver import PositionSolver as PositionSolver
    from humanoid_control.ik.position.solver import Solution as Solution
    from humanoid_control.ik.position.solver import Stop as Stop
    from humanoid_control.ik.position.solver import StopSettings as StopSettings

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "constrained": ["ClearanceConstraint", "ConstrainedGoals", "HalfSpaceConstraint", "Inequality"],
        "descent": [
            "Armijo",
            "Bfgs",
            "ConjugateGradient",
            "ConstantStep",
            "Descent",
            "DescentDirection",
            "ExactLineSearch",
            "GaussNewton",
            "SteepestDescent",
            "StepSize",
            "WolfePowell",
        ],
        "solver": ["LevenbergMarquardt", "NewtonRaphson", "PositionSolver", "Solution", "Stop", "StopSettings"],
    },
    public=["Bfgs", "GaussNewton", "LevenbergMarquardt", "NewtonRaphson", "SteepestDescent", "StopSettings"],
)
