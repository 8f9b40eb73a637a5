"""Arm motion while walking: still, or compensating the vertical angular momentum of the legs.

Methods of Schwienbacher 2014, chapter 7:

* `legs`, method 0: each arm's centre of mass follows the opposite leg's;
* `nullspace`, method 1: arm rates cancel the momentum of all other joints, eq. (7.9);
* `weighted`, method 2: the norm of the arm rates includes momentum, W = delta E + J_L^T J_L, eq. (7.13);
* `task`: momentum is a task, so waist and pelvis take part.

In curves, all but `legs` track the momentum of a rigid robot (`MomentumReference`).
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.errors import UnknownNameError
from humanoid_control.ik.null_space.momentum_tracking import MomentumTracking
from humanoid_control.ik.tasks.centroidal import AngularMomentumTask
from humanoid_control.ik.tasks.task import Task
from humanoid_control.robots.joint_groups import JointGroups
from humanoid_control.robots.robot import Robot

ARM_SWINGS = ("still", "legs", "nullspace", "weighted", "task")
STILL = (0.3, 5.0)  # weight of the arm rates [s], gain of the return to the posture [1/s]
RATES = {"legs": (0.05, 1.0), "nullspace": (0.5, 0.3), "weighted": (0.03, 0.3), "task": (0.05, 0.8)}
MOMENTUM = {"weighted": 0.3, "task": 1.0}  # weight of the momentum [1/(N m s)]; method 2: delta = (0.03 / 0.3)^2
SWING, SWING_GAIN = 5.0, 10.0  # method 0: weight [s/m], gain of the arm toward the leg position [1/s]
DAMPING = 0.0125  # [kg m^2] method 1: damping near the singularity of stretched arms


class ArmSwing:
    """Arm rates and momentum tasks of each tick.

    Attributes:
        way: one of ARM_SWINGS.
        arms: (a,) joint indices.
    """

    def __init__(self, robot: Robot, way: str) -> None:
        """Select the method.

        Raises:
            UnknownNameError: if `way` is not in ARM_SWINGS.
            RobotError: if arms, legs or (for `legs`) imitation points are missing.
        """
        if way not in ARM_SWINGS:
            raise UnknownNameError("way to swing arms", way, ARM_SWINGS)
        g = JointGroups.of(robot)
        self.way, self.arms = way, np.asarray(g.arms, dtype=int)
        self.weight, self._back = RATES.get(way, STILL)
        self._rest = robot.postures["neutral"][self.arms]
        self._columns = robot.iv + self.arms
        self.first = robot.iq
        self.momentum = AngularMomentumTask(weight=MOMENTUM.get(way, 0.0))
        self.tasks: list[Task] = [self.momentum] if way in MOMENTUM else []
        self._model, self._data = robot.model, robot.model.createData()
        if way == "legs":
            self._legs = ArmsLikeLegs(robot)
            self.tasks = [self._legs]
        if way == "nullspace":
            names = [robot.joint_names[k] for k in self.arms]
            self._tracking = MomentumTracking(robot, names, mode="damped", mu=DAMPING)

    def rates(self, q: np.ndarray, v: np.ndarray, spin: float, heading: np.ndarray) -> np.ndarray:
        """Return arm joint rates (a,) of the coming tick [rad/s], and update the tasks.

        Args:
            v: (nv,) velocity of the last tick.
            spin: desired vertical angular momentum [N m s].
            heading: (3, 3) robot heading.
        """
        back = self._back * (self._rest - q[self.first + self.arms])
        if self.way in MOMENTUM:
            # In a curve the legs do not move as the rigid reference does. Arms that only cancel momentum would drift to
            # their joint limits, so the return to the posture is part of the reference.
            if self.way == "task":
                spin += float(pin.computeCentroidalMap(self._model, self._data, q)[5, self._columns] @ back)
            self.momentum.reference = (0.0, 0.0, spin)
        elif self.way == "legs":
            self._legs.forward, self._legs.v = heading[:, 0], v
        elif self.way == "nullspace":
            self._tracking.place(q)
            self._tracking.reference[2] = spin
            back -= self._tracking.rates(v)[self._columns]
        return back


class ArmsLikeLegs(Task):
    """Task: each arm's CoM moves forward with the opposite leg, scaled by the length ratio.

    Positions are relative to the robot's CoM and the neutral posture. Other joints are assumed to keep their velocity.

    Attributes:
        v: (nv,) velocity of the last tick.
        scale: arm travel over leg travel.
    """

    def __init__(self, robot: Robot) -> None:
        super().__init__("arms like legs", SWING, SWING_GAIN)
        g = JointGroups.of(robot)
        self._data = robot.model.createData()
        chains = (g.l_arm, g.r_arm, g.r_leg, g.l_leg)
        self._trees = [robot.model.getJointId(robot.joint_names[c[0]]) for c in chains]
        self._columns = [robot.iv + np.asarray(c, dtype=int) for c in chains[:2]]
        lengths = robot.segment_lengths()
        legs = [robot.model.getJointId(robot.joint_names[k]) for k in (g.l_leg[0], g.l_leg[-1])]
        hip, ankle = (robot.data.oMi[j].translation for j in legs)
        self.scale = (lengths["upper_arm"] + lengths["lower_arm"]) / float(np.linalg.norm(hip - ankle))
        self.forward, self.v = np.array([1.0, 0.0, 0.0]), np.zeros(robot.nv)
        pin.centerOfMass(robot.model, self._data, robot.q("neutral"), True)
        self._rest = self._travel()

    def _travel(self) -> np.ndarray:
        """Return positions (4,) of left arm, right arm, right leg, left leg along `forward` [m]."""
        return np.array([(self._data.com[k] - self._data.com[0]) @ self.forward for k in self._trees])

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        model, own = robot.model, self._data
        whole = self.forward @ pin.jacobianCenterOfMass(model, own, q, True)
        trees = [self.forward @ pin.jacobianSubtreeCenterOfMass(model, own, k) - whole for k in self._trees]
        off = self._travel() - self._rest
        J, desired = np.zeros((2, robot.nv)), np.zeros(2)
        for k, columns in enumerate(self._columns):
            J[k, columns] = trees[k][columns]
            others = float(trees[k] @ self.v - J[k] @ self.v)
            desired[k] = (
                self.scale * float(trees[k + 2] @ self.v) - others + self.gain * (self.scale * off[k + 2] - off[k])
            )
        return J, desired

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        pin.centerOfMass(robot.model, self._data, q, True)
        off = self._travel() - self._rest
        return np.asarray(self.scale * off[2:] - off[:2])
