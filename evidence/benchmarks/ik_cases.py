"""Cases of the inverse kinematics benchmark: one motion for all, and the solvers of this package with their tasks."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.limits import default_limits
from humanoid_control.ik.null_space.least_squares import ResolvedRate
from humanoid_control.ik.null_space.momentum_tracking import MomentumTracking
from humanoid_control.ik.null_space.objectives import ComfortCost, JointLimitCost, Objective, SelfCollisionCost
from humanoid_control.ik.solver import IkSettings
from humanoid_control.ik.tasks.biped import BipedTasks, lola_tasks
from humanoid_control.ik.tasks.centroidal import AngularMomentumTask, CenterOfMassTask
from humanoid_control.ik.tasks.frames import FrameTask, OrientationTask
from humanoid_control.ik.tasks.joints import PostureTask
from humanoid_control.ik.tasks.points import PointTask
from humanoid_control.ik.tasks.task import Task
from humanoid_control.ik.whole_body_ik import IkResult, WholeBodyIk
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.robots.joint_groups import JointGroups
from humanoid_control.robots.robot import Robot

DT = 0.004  # [s]
PERIOD = 1.6  # [s] of the slowest joint
SWING = 0.6  # [rad] at most
MARGIN, ACTIVATION = 0.02, 0.12  # [m] of all solvers that keep pairs apart
CLOSEST = 0.005  # [m] to which the motion goes: inside the margin, so that rows hold the robot back


class CaseMotion:
    """Postures of a robot, each a tick after the one before; targets lie a tick ahead.

    Attributes:
        q: (T + 1, nq), inside the joint limits.
        near: (T,) how many pairs are closer than ACTIVATION. closest: (T,) distance of the nearest pair [m].
    """

    def __init__(self, robot: Robot, ticks: int, seed: int = 8) -> None:
        """Make it: every joint swings around the neutral posture with a period and phase of its own."""
        rng, n = np.random.default_rng(seed), robot.n
        neutral, pairs = robot.postures["neutral"], robot.collision_monitor("shapes")
        room = np.minimum(robot.upper - neutral, neutral - robot.lower)
        swing = np.minimum(SWING, 0.9 * np.maximum(room, 0.0))
        period, phase = PERIOD * rng.uniform(0.5, 1.0, n), rng.uniform(0, 2 * np.pi, n)
        t = DT * np.arange(ticks + 1)[:, None]
        swings = swing * np.sin(2 * np.pi * t / period + phase)

        def postures(share: float) -> np.ndarray:
            return np.array([robot.q(neutral + share * w) for w in swings])

        def closest(q: np.ndarray) -> float:
            return float(pairs.update(q, np.inf).distance.min(initial=np.inf))

        low, high = 0.0, 1.0
        for _ in range(12):
            share = 0.5 * (low + high)
            touches = any(closest(q) < CLOSEST for q in postures(share)[::4])
            low, high = (low, share) if touches else (share, high)
        self.q = postures(low)
        self.near = np.array([len(pairs.update(q, ACTIVATION)) for q in self.q[:-1]])
        self.closest = np.array([closest(q) for q in self.q[:-1]])


# -------- Solvers

GAIN = 1 / DT  # an error is to be gone after one tick
ARMS = ("right_arm", "left_arm")
SOLES = ("l_foot_tcp", "r_foot_tcp")
POSTURE = 0.02  # weight of the posture against the other rows
DAMPING = 1e-6  # of the peers


@dataclass
class SolverCase:
    """One solver, ready to run.

    Attributes:
        name: of the row.
        aim: sets the targets of tick k. tick: one step from q (nq,); whether there was an answer.
        begin: forgets earlier ticks.
        rows: of its tasks. pairs: that are watched, 0 for none.
        used: pairs that in the last tick were rows of the program, or were pushed apart in the null space.
        velocity: of the joints (n,) in the last tick, in the robot's order.
        remote: takes the ticks of a range elsewhere, counts what they need, and returns their times [s]; None: here.
        constraints: sum of `used` over the ticks so far. failed: ticks without an answer.
    """

    name: str
    aim: Callable[[int], None]
    tick: Callable[[np.ndarray], bool]
    begin: Callable[[], Any]
    rows: int
    pairs: int = 0
    used: Callable[[], int] = field(default=lambda: 0)
    velocity: Callable[[], np.ndarray] = field(default=lambda: np.zeros(0))
    remote: Callable[[range], list[float]] | None = None
    constraints: float = 0.0
    failed: int = 0


@dataclass(frozen=True)
class PeerTargets:
    """Targets that all solvers are given alike, at each of T ticks: the values one tick ahead.

    Attributes:
        soles: (T) pairs of poses. chest: (T) poses. center: (T, 3) [m]. posture: (T, n).
    """

    soles: list[tuple[pin.SE3, pin.SE3]]
    chest: list[pin.SE3]
    center: np.ndarray
    posture: np.ndarray

    @classmethod
    def of(cls, robot: Robot, motion: CaseMotion) -> PeerTargets:
        """Those of a motion."""
        soles, chests, centers = [], [], []
        for q in motion.q[1:]:
            pin.framesForwardKinematics(robot.model, robot.data, q)
            left, right, chest = (pin.SE3(robot.data.oMf[f]) for f in (*_soles(robot), chest_frame(robot)))
            soles.append((left, right))
            chests.append(chest)
            centers.append(robot.center_of_mass(q))
        return cls(soles, chests, np.array(centers), motion.q[1:, robot.iq :])


def chest_frame(robot: Robot) -> int:
    """The frame of the link that carries the sternum."""
    return int(robot.model.frames[robot.point_frame("sternum")].parentFrame)


def _soles(robot: Robot) -> list[int]:
    return [robot.point_frame(p) for p in SOLES]


def package_cases(robot: Robot, motion: CaseMotion) -> list[SolverCase]:
    """tick_nullspace, tick_nullspace_free, tick_qp, tick_qp_peers and tick_no_collision."""
    biped = lola_tasks(robot, GAIN)
    return [
        _null_space("tick_nullspace", robot, motion, biped, biped.all()),
        _null_space("tick_nullspace_free", robot, motion, biped, biped.without(*ARMS)),
        _program("tick_qp", robot, motion, [*biped.all(), AngularMomentumTask(weight=0.1)], _aim_biped(biped, motion)),
        peer_program("tick_qp_peers", robot, motion, True),
        peer_program("tick_no_collision", robot, motion, False),
    ]


def _aim_biped(biped: BipedTasks, motion: CaseMotion) -> Callable[[int], None]:
    """Sets all targets to what they are a tick later."""
    tasks: list[Any] = biped.all()
    later = []
    for q in motion.q[1:]:
        biped.take_targets(q)
        later.append([np.array(task.target) for task in tasks])

    def aim(k: int) -> None:
        for task, target in zip(tasks, later[k], strict=True):
            task.target = target

    return aim


def _null_space(name: str, robot: Robot, motion: CaseMotion, biped: BipedTasks, tasks: Sequence[Task]) -> SolverCase:
    """Resolved motion rate with everything in its null space: limits, comfort, all pairs, momentum by method 1."""
    dofs = DofSelection(robot, held=biped.held)
    collision = SelfCollisionCost(robot)
    collision.limit_contact(robot, DT)
    objectives: list[Objective] = [JointLimitCost(), ComfortCost(robot.postures["neutral"]), collision]
    arms = [robot.joint_names[k] for k in np.sort(JointGroups.of(robot).arms)]
    solver = ResolvedRate(robot, objectives, dofs=dofs, momentum=MomentumTracking(robot, arms))

    def tick(q: np.ndarray) -> bool:
        return solver.step(q, tasks, DT)[2].ok

    pushed = []
    for q in motion.q[:-1]:
        near = collision.pairs.update(q, float(collision.activation.max()))
        pushed.append(int((near.distance < collision.activation[near.pair]).sum()))
    aim_biped, at = _aim_biped(biped, motion), [0]

    def aim(k: int) -> None:
        at[0] = k
        aim_biped(k)

    aim(0)
    rows, pairs = _count(robot, tasks), len(robot.pairs)
    return SolverCase(name, aim, tick, solver.reset, rows, pairs, used=lambda: pushed[at[0]])


def root_poses(robot: Robot, postures: Iterable[np.ndarray]) -> list[pin.SE3]:
    """Pose of the root link in the world at each of some configurations."""
    root, out = robot.model.getFrameId(robot.root_link), []
    for q in postures:
        pin.framesForwardKinematics(robot.model, robot.data, q)
        out.append(pin.SE3(robot.data.oMf[root]))
    return out


def _count(robot: Robot, tasks: Sequence[Task]) -> int:
    data = robot.model.createData()
    pin.computeJointJacobians(robot.model, data, robot.q("neutral"))
    pin.updateFramePlacements(robot.model, data)
    return sum(len(task.rows(robot, data, robot.q("neutral"))[1]) for task in tasks)


def _program(
    name: str,
    robot: Robot,
    motion: CaseMotion,
    tasks: Sequence[Task],
    aim: Callable[[int], None],
    collisions: bool = True,
    solver: WholeBodyIk | None = None,
) -> SolverCase:
    settings = IkSettings(margin=MARGIN, activation=ACTIVATION)
    solver = solver or WholeBodyIk(robot, settings, default_limits(robot, collisions))
    last: list[IkResult] = []

    def tick(q: np.ndarray) -> bool:
        last[:] = [solver.step(q, tasks, DT)]
        return last[0].ok

    aim(0)  # a task has rows when it has a target
    case = SolverCase(name, aim, tick, solver.reset, _count(robot, tasks))
    case.velocity = lambda: solver.v[robot.iv :]
    if collisions:
        case.pairs, case.used = len(robot.pairs), lambda: last[0].report.rows
    return case


FAR = 0.5  # [m] beyond the reach of an arm
TURN = 0.02  # [rad] by which the directions of the far targets turn in a tick
HANDS = ("l_wrist", "r_wrist")


def saturated_program(name: str, robot: Robot) -> SolverCase:
    """Hands sent out of reach, in directions that turn: bounds hold most joints, and a few of them change in a tick.

    The solver follows its own commands; its soles stay, the hands' targets are half a metre farther than arms are long.
    """
    home = robot.q("neutral")
    soles = [FrameTask(robot, f, weight=1.0, gain=GAIN, orientation_weight=1.0) for f in _soles(robot)]
    hands = [PointTask(robot, h, gain=GAIN) for h in HANDS]
    tasks = [*soles, *hands, PostureTask(robot, weight=POSTURE, gain=GAIN)]
    for task in tasks:
        task.set_target_from(home)
    shoulders = robot.point_positions(home, [h.replace("wrist", "gh") for h in HANDS])
    lengths, solver = robot.segment_lengths(), WholeBodyIk(robot, IkSettings(margin=MARGIN, activation=ACTIVATION))
    far, state = FAR + lengths["upper_arm"] + lengths["lower_arm"], [home]

    def aim(k: int) -> None:
        turn = TURN * k
        for hand, shoulder, side in zip(hands, shoulders, (1.0, -1.0), strict=True):
            hand.target = shoulder + far * np.array([np.cos(turn), side * np.sin(turn) * 0.6, np.sin(turn) * 0.8])

    def tick(q: np.ndarray) -> bool:
        result = solver.step(state[0], tasks, DT)
        state[0] = result.q
        return result.ok

    def begin() -> None:
        state[0] = home
        solver.reset()

    return SolverCase(name, aim, tick, begin, _count(robot, tasks), velocity=lambda: solver.v[robot.iv :])


CHAIN = 100  # joints
LINK = 0.1  # [m] of a chain


def chain_robot(joints: int) -> Robot:
    """A chain of equal links, whose axes take turns; every tenth has a ball that keeps off the others."""
    inertia = '<inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/>'
    ball = f'<collision><geometry><sphere radius="{0.2 * LINK}"/></geometry></collision>'
    rows = []
    for k in range(joints + 1):
        own = f'<inertial><mass value="0.5"/>{inertia}</inertial>{ball if k % 10 == 0 else ""}'
        rows.append(f'<link name="l{k}">{own}</link>')
    for k in range(1, joints + 1):
        axis = ("1 0 0", "0 1 0", "0 0 1")[k % 3]
        rows.append(
            f'<joint name="j{k}" type="revolute"><parent link="l{k - 1}"/><child link="l{k}"/>'
            f'<origin xyz="0 0 {LINK}" rpy="0.1 0 0"/><axis xyz="{axis}"/>'
            '<limit lower="-1.5" upper="1.5" velocity="3" effort="50"/></joint>'
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.urdf"
        path.write_text("\n".join(['<robot name="chain">', *rows, "</robot>"]), encoding="utf-8")
        return load_robot(path, "fixed")


def far_chain_program(name: str, robot: Robot) -> SolverCase:
    """The last link of a chain is sent out of reach, in a direction that turns; the solver follows its own commands."""
    home, tip = robot.q("neutral"), robot.model.getFrameId(f"l{robot.n}")
    task, rest = FrameTask(robot, tip), PostureTask(robot, weight=POSTURE)
    for each in (task, rest):
        each.set_target_from(home)
    solver, state, X = WholeBodyIk(robot), [home], pin.SE3(task.X_target)

    def aim(k: int) -> None:
        turn = np.array([np.cos(TURN * k), 0.6 * np.sin(TURN * k), 0.8 * np.sin(TURN * k)])
        task.set_target(pin.SE3(X.rotation, (LINK * robot.n + FAR) * turn))

    def tick(q: np.ndarray) -> bool:
        result = solver.step(state[0], [task, rest], DT)
        state[0] = result.q
        return result.ok

    def begin() -> None:
        state[0] = home
        solver.reset()

    return SolverCase(name, aim, tick, begin, _count(robot, [task]), velocity=lambda: solver.v[robot.iv :])


def peer_program(
    name: str, robot: Robot, motion: CaseMotion, collisions: bool, solver: WholeBodyIk | None = None
) -> SolverCase:
    """Tasks that the peers have too: poses of the soles, centre of mass, orientation of the chest, posture."""
    targets = PeerTargets.of(robot, motion)
    soles = [
        FrameTask(robot, f, weight=1.0, gain=GAIN, orientation_weight=1.0, name=p)
        for p, f in zip(SOLES, _soles(robot), strict=True)
    ]
    center = CenterOfMassTask(robot, gain=GAIN)
    chest = OrientationTask(robot, chest_frame(robot), weight=1.0, gain=GAIN, name="chest")
    posture = PostureTask(robot, weight=POSTURE, gain=GAIN)

    def aim(k: int) -> None:
        for task, X in zip(soles, targets.soles[k], strict=True):
            task.X_target = X
        center.target, chest.target = targets.center[k], targets.chest[k].rotation
        posture.posture = targets.posture[k]

    return _program(name, robot, motion, [*soles, center, chest, posture], aim, collisions, solver)
