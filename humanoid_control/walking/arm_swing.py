"""Arms of a robot that walks: still, or against the angular momentum about the vertical that its legs make.

The methods of Schwienbacher 2014, chapter 7, as tasks of a solver that keeps all limits:

* `legs`, method 0: the centre of mass of each arm follows that of the opposite leg, forward and back;
* `nullspace`, method 1: joints of the arms get the rates that would cancel the momentum of all others, eq. (7.9);
* `weighted`, method 2: momentum is part of the norm of the arms' rates, W = delta E + J_L^T J_L, eq. (7.13);
* `task`: momentum is a task that counts beside those of balance, so that waist and pelvis take part.

All but the first have the momentum of a rigid robot that turns evenly, where the way turns (`MomentumReference`).
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
STILL = (0.3, 5.0)  # weight of the arms' rates [s], and how fast they go back to their posture [1/s]
RATES = {"legs": (0.05, 1.0), "nullspace": (0.5, 0.3), "weighted": (0.03, 0.3), "task": (0.05, 0.8)}
MOMENTUM = {"weighted": 0.3, "task": 1.0}  # weight of the momentum [1/(N m s)]; of method 2 delta = (0.03 / 0.3)^2
SWING, SWING_GAIN = 5.0, 10.0  # of method 0: weight [s/m], and how fast an arm goes where the leg is [1/s]
DAMPING = 0.0125  # [kg m^2] of method 1, where arms are stretched downward


class ArmSwing:
    """What the arms do, tick by tick.

    Attributes:
        way: one of ARM_SWINGS. arms: (a,) indices of their joints. first: place of joint 0 in q.
        weight: of their rates. tasks: besides those rates.
    """

    def __init__(self, robot: Robot, way: str) -> None:
        """Make it.

        Raises:
            UnknownNameError: no such way. RobotError: the robot has no two arms and legs; for `legs` it must also
                have the points that imitation needs.
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
        """Rates (a,) that the joints of the arms should have in the coming tick [rad/s]; sets the tasks.

        Args:
            q: (nq,) now. v: (nv,) of the last tick. spin: desired momentum about the vertical [N m s].
            heading: (3, 3) of the robot, about the vertical.
        """
        back = self._back * (self._rest - q[self.first + self.arms])
        if self.way in MOMENTUM:
            # What legs do in a curve is not what a rigid robot would: arms that only balance go to the end of their
            # range there. So the way back to the posture is part of what is wanted.
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
    """Centres of mass of both arms go forward as far as those of the opposite legs, in the ratio of their lengths.

    All are against the centre of mass of the robot, and from where they are in the neutral posture. The rest of the
    robot is taken to go on as in the last tick, so that legs do not follow arms.

    Attributes:
        forward: (3,) axis. v: (nv,) of the last tick. scale: travel of an arm over that of a leg.
    """

    def __init__(self, robot: Robot) -> None:
        """Make the task for a robot with arms and legs."""
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
        """Places (4,) of left arm, right arm, right leg, left leg along the axis, from the robot's [m]."""
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
