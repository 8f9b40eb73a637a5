"""Arms for reaching: serial chains of revolute joints, of robots or people."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, RobotError, UnknownNameError
from humanoid_control.kinematics.forward_kinematics import joint_axis
from humanoid_control.reaching.optimal.hand_jerk import hand_position
from humanoid_control.reaching.optimal.inverse_dynamics import arm_motion, move_arm, torque
from humanoid_control.reaching.optimal.spatial_motion import ArmModel
from humanoid_control.robots import Robot

SIDES = {"left": "l", "right": "r"}
HANDS = ("tcp", "fingertip", "wrist")  # reaching points of a robot, in order of preference
GRAVITY = 9.81  # [m/s^2]


@dataclass(frozen=True)
class Arm:
    """Arm on a fixed base.

    Attributes:
        name: robot or person, and side.
        joint_names: (N,) from trunk to hand.
        model: for kernels; origin at the first joint.
        lower: (N,) [rad].
        upper: (N,) [rad].
        velocity: (N,) [rad/s], may be infinite.
        effort: (N,) [N m], may be infinite.
        origin: (3,) first joint in the world [m].
    """

    name: str
    joint_names: tuple[str, ...]
    model: ArmModel
    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    origin: np.ndarray

    @property
    def n(self) -> int:
        return len(self.joint_names)

    def hand(self, q: np.ndarray) -> np.ndarray:
        """Return the hand position in the world (3,) [m] at q (N,)."""
        x, q = np.empty(3), np.ascontiguousarray(q, dtype=float)
        hand_position(self.model, q, arm_motion(q), x)
        return np.asarray(self.origin + x)

    def torque(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return the torques [N m] of one (N,) or many (T, N) states."""
        rows = [np.atleast_2d(np.ascontiguousarray(one, dtype=float)) for one in (q, v, a)]
        out, memory = np.empty(rows[0].shape), arm_motion(rows[0][0])
        for k in range(len(out)):
            move_arm(self.model, rows[0][k], rows[1][k], rows[2][k], memory)
            torque(memory, out[k])
        return out.reshape(np.shape(q))

    def without_gravity(self) -> Arm:
        """Return the arm without gravity."""
        return replace(self, model=self.model._replace(gravity=np.zeros(3)))

    def with_payload(self, mass: float) -> Arm:
        """Return the arm with a point mass [kg] at its hand.

        Raises:
            ConfigError: if the mass is negative or not finite.
        """
        if not (np.isfinite(mass) and mass >= 0.0):
            raise ConfigError(f"a payload must have a mass of 0 kg or more, got {mass:g}")
        m = self.model
        whole = pin.Inertia(float(m.mass[-1]), m.com[-1], m.inertia[-1])
        whole += pin.Inertia(float(mass), m.hand, np.zeros((3, 3)))
        masses, com, inertia = m.mass.copy(), m.com.copy(), m.inertia.copy()
        masses[-1], com[-1], inertia[-1] = whole.mass, whole.lever, whole.inertia
        return replace(self, model=m._replace(mass=masses, com=com, inertia=inertia))


def robot_arm(robot: Robot, side: str, posture: str = "neutral") -> Arm:
    """Return an arm of a robot; other joints are held, hands and tools keep their mass.

    Args:
        robot: fixed base.
        side: 'left' or 'right'.
        posture: of other joints.

    Raises:
        UnknownNameError: if the side is unknown.
        RobotError: if there is no hand or wrist, or a joint slides or mimics.
    """
    if side not in SIDES:
        raise UnknownNameError("arm", side, SIDES)
    point, joints = arm_joints(robot, SIDES[side])
    model, q = robot.model, robot.q(posture)
    held = [j for j in range(1, model.njoints) if j - 1 not in set(joints.tolist())]
    chain = pin.buildReducedModel(model, held, q)
    if [int(p) for p in chain.parents] != [0, *range(chain.njoints - 1)]:
        raise RobotError(f"{robot.name}: the joints of the {side} arm do not form a chain")
    axes = [joint_axis(chain, j) for j in range(1, chain.njoints)]
    for name, (_, slides) in zip(list(chain.names)[1:], axes, strict=True):
        if slides:
            raise RobotError(
                f"{robot.name}: joint '{name}' of the {side} arm is prismatic: only revolute joints are supported"
            )
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    last, first = data.oMi[int(joints[-1]) + 1], chain.jointPlacements[1]
    R = np.array([X.rotation for X in chain.jointPlacements])[1:]
    p = np.array([X.translation for X in chain.jointPlacements])[1:]
    p[0] = 0.0
    bodies = [chain.inertias[j] for j in range(1, chain.njoints)]
    arm = ArmModel(
        R,
        p,
        np.array([axis for axis, _ in axes]),
        np.array([b.mass for b in bodies]),
        np.array([b.lever for b in bodies]),
        np.array([b.inertia for b in bodies]),
        np.array(last.actInv(data.oMf[robot.points[point]].translation)),
        np.array([0.0, 0.0, -GRAVITY]),
    )
    names = tuple(robot.joint_names[j] for j in joints)
    limits = (
        robot.lower[joints],
        robot.upper[joints],
        _effective_limits(robot.velocity[joints]),
        _effective_limits(robot.effort[joints]),
    )
    return Arm(f"{robot.name}, {side} arm", names, arm, *limits, np.array(first.translation))


def _effective_limits(limits: np.ndarray) -> np.ndarray:
    """Return limits, infinite if absent or 0 in the URDF."""
    return np.where(limits > 0.0, limits, np.inf)


def arm_joints(robot: Robot, side: str) -> tuple[str, np.ndarray]:
    """Return the reaching point, and the joints that move it without the trunk, proximal first."""
    point = next((f"{side}_{h}" for h in HANDS if f"{side}_{h}" in robot.points), None)
    if point is None:
        raise RobotError(
            f"{robot.name} has none of the points {', '.join(f'{side}_{h}' for h in HANDS)}: a reach needs a hand in a "
            "robot file next to the URDF (docs/adding_a_robot.md)"
        )

    def moving(name: str) -> np.ndarray:
        joint = robot.model.frames[robot.points[name]].parentJoint
        return np.asarray(robot.ancestor_mask[joint][robot.iv :] != 0)

    trunk = np.zeros(robot.n, dtype=bool)
    for other in ("sternum", point.replace(f"{side}_", f"{'r' if side == 'l' else 'l'}_", 1)):
        if other in robot.points:
            trunk |= moving(other)
    joints = np.flatnonzero(moving(point) & ~trunk)
    if not len(joints):
        raise RobotError(f"{robot.name}: no joint moves {point} alone")
    for follower, leader, _, _ in robot.mimic:
        if follower in joints or leader in joints:
            raise RobotError(f"{robot.name}: joint '{robot.joint_names[follower]}' of the arm mimics another")
    return point, joints
