"""Whole-body inverse kinematics: tasks, limits, self-collision rows, and one solver tick."""

from humanoid_control.ik.follower import FollowerSettings, TargetFollower
from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.integrate import AdamsMoulton, explicit_euler
from humanoid_control.ik.null_space.acceleration import ResolvedAcceleration
from humanoid_control.ik.null_space.least_squares import (
    BoundedNorm,
    DampedLeastSquares,
    DampingSchedule,
    Hierarchy,
    JacobianTranspose,
    ResolvedRate,
    TruncatedSvd,
)
from humanoid_control.ik.null_space.momentum_tracking import MomentumTracking
from humanoid_control.ik.null_space.objectives import (
    ComfortCost,
    JointLimitCost,
    ManipulabilityCost,
    Objective,
    SelfCollisionCost,
    activation_distances,
    condition_number,
    manipulability,
    repulsion,
    repulsion_potential,
    stable_contact_gradient,
)
from humanoid_control.ik.null_space.velocity_solver import (
    IkSolver,
    SolverSettings,
    StepReport,
    SwitchSettings,
    VelocitySolver,
)
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
from humanoid_control.ik.target_filter import SampleVerdict, TargetFilter, TargetFilterSettings
from humanoid_control.ik.tasks.biped import BipedTasks, lola_tasks
from humanoid_control.ik.tasks.frames import FrameTask, GazeTask, OrientationTask, RelativeFrameTask
from humanoid_control.ik.tasks.geometric import HalfSpaceTask, LineTask, PlaneTask
from humanoid_control.ik.tasks.joints import JointTask, PostureTask
from humanoid_control.ik.tasks.momentum import AngularMomentumTask, LinearMomentumTask
from humanoid_control.ik.tasks.points import CenterOfMass, FramePoint, LimbCenterOfMass, Point, PointsTask, PointTask
from humanoid_control.ik.tasks.task import Task, VectorTask
from humanoid_control.ik.whole_body_ik import IkReport, IkResult, IkSettings, WholeBodyIk
from humanoid_control.kinematics.centroidal import CentroidalMomentumMap, centroidal_momentum_map

__all__ = [
    "AdamsMoulton",
    "AngularMomentumTask",
    "Armijo",
    "Bfgs",
    "BipedTasks",
    "BoundedNorm",
    "CenterOfMass",
    "CentroidalMomentumMap",
    "ClearanceConstraint",
    "ComfortCost",
    "ConjugateGradient",
    "ConstantStep",
    "ConstrainedGoals",
    "DampedLeastSquares",
    "DampingSchedule",
    "Descent",
    "Direction",
    "DofSelection",
    "ExactLineSearch",
    "FollowerSettings",
    "FramePoint",
    "FrameTask",
    "GaussNewton",
    "GazeTask",
    "HalfSpaceConstraint",
    "HalfSpaceTask",
    "Hierarchy",
    "IkReport",
    "IkResult",
    "IkSettings",
    "IkSolver",
    "Inequality",
    "JacobianTranspose",
    "JointLimitCost",
    "JointTask",
    "LevenbergMarquardt",
    "LimbCenterOfMass",
    "LineTask",
    "LinearMomentumTask",
    "ManipulabilityCost",
    "MomentumTracking",
    "NewtonRaphson",
    "Objective",
    "OrientationTask",
    "PlaneTask",
    "Point",
    "PointTask",
    "PointsTask",
    "PositionSolver",
    "PostureTask",
    "RelativeFrameTask",
    "ResolvedAcceleration",
    "ResolvedRate",
    "SampleVerdict",
    "SelfCollisionCost",
    "Solution",
    "SolverSettings",
    "SteepestDescent",
    "StepReport",
    "StepSize",
    "Stop",
    "StopSettings",
    "SwitchSettings",
    "TargetFilter",
    "TargetFilterSettings",
    "TargetFollower",
    "Task",
    "TruncatedSvd",
    "VectorTask",
    "VelocitySolver",
    "WholeBodyIk",
    "WolfePowell",
    "activation_distances",
    "centroidal_momentum_map",
    "condition_number",
    "explicit_euler",
    "lola_tasks",
    "manipulability",
    "repulsion",
    "repulsion_potential",
    "stable_contact_gradient",
]
