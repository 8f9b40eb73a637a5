"""Task vector of a biped, as in Lola's controller (Schwienbacher 2014, table 4.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.ik.tasks.centroidal import CenterOfMass, CenterOfMassTask, LimbCenterOfMass
from humanoid_control.ik.tasks.frames import OrientationTask
from humanoid_control.ik.tasks.joints import JointTask
from humanoid_control.ik.tasks.points import FramePoint, PointTask
from humanoid_control.ik.tasks.task import Task
from humanoid_control.robots.joint_groups import JointGroups
from humanoid_control.robots.robot import Robot

SIDES = (("r", "right"), ("l", "left"))


@dataclass
class BipedTasks:
    """Named rows of table 4.2, each of them optional.

    Attributes:
        held: joints without a row, to be held: the head.
    """

    robot: Robot
    tasks: dict[str, Task]
    held: tuple[str, ...]

    def without(self, *names: str) -> list[Task]:
        """Return the tasks without some of them.

        Raises:
            UnknownNameError: if a name is not in the table.
        """
        for name in names:
            if name not in self.tasks:
                raise UnknownNameError("task", name, self.tasks, hint=f"(of {self.robot.name})")
        return [task for name, task in self.tasks.items() if name not in names]

    def all(self) -> list[Task]:
        """Return all tasks."""
        return list(self.tasks.values())

    def take_targets(self, q: np.ndarray) -> None:
        """Set all targets to the configuration q (nq,), at rest."""
        for task in self.tasks.values():
            task.set_target_from(q)


def lola_tasks(robot: Robot, gain: float = 30.0, orientation_weight: float = 1.0) -> BipedTasks:
    """Build Lola's task vector for any robot with two feet and two arms; target: the neutral posture.

    Rows: feet relative to the centre of mass and to the upper body, centre of mass, upper body, centres of mass of the
        arms, waist and toe joints.

    Args:
        robot: with the points `sternum`, `l_foot_tcp`, `r_foot_tcp`, `l_wrist`, `r_wrist`.

    Raises:
        RobotError: if the base is fixed or an arm has no joints.
        UnknownNameError: if a point is missing.
    """
    if robot.base != "floating":
        raise RobotError(f"{robot.name}: the task vector of a biped needs a floating base")
    model = robot.model
    # The link with the sternum gives the orientation of the upper body, wherever the point is on it.
    torso = model.frames[robot.point_frame("sternum")].parentFrame
    feet = {s: robot.point_frame(f"{s}_foot_tcp") for s, _ in SIDES}
    for s, _ in SIDES:
        robot.point_frame(f"{s}_wrist")  # raises if it is missing
    groups, names = JointGroups.of(robot), robot.joint_names
    arms = {}
    for s, group in (("r", groups.r_arm), ("l", groups.l_arm)):
        if not len(group):
            raise RobotError(f"{robot.name}: no joint between the sternum and the point '{s}_wrist'")
        arms[s] = _carried(model, model.getJointId(names[group[0]]))
    com = CenterOfMass()
    tasks: dict[str, Task] = {}

    def add(task: Task) -> None:
        tasks[task.name] = task

    for s, side in SIDES:
        add(PointTask(robot, FramePoint(robot, feet[s]), com, torso, gain=gain, name=f"{side}_foot_position"))
    for s, side in SIDES:
        add(
            OrientationTask(
                robot, feet[s], torso, weight=orientation_weight, gain=gain, name=f"{side}_foot_orientation"
            )
        )
    add(CenterOfMassTask(robot, gain=gain))
    add(OrientationTask(robot, torso, weight=orientation_weight, gain=gain, name="upper_body"))
    for s, side in SIDES:
        add(PointTask(robot, LimbCenterOfMass(robot, arms[s]), com, torso, gain=gain, name=f"{side}_arm"))
    toes = [j for s, _ in SIDES for j in _carried(model, model.frames[feet[s]].parentJoint)[1:]]
    waist_and_toes = [names[k] for k in groups.waist] + [model.names[j] for j in toes]
    for name in waist_and_toes:
        add(JointTask(robot, [name], weight=orientation_weight, gain=gain, name=name))
    used = {names[k] for k in groups.legs} | {model.names[j] for s, _ in SIDES for j in arms[s]} | {*waist_and_toes}
    held = tuple(n for n in names if n not in used)
    out = BipedTasks(robot, tasks, held)
    out.take_targets(robot.q("neutral"))
    return out


def _carried(model: pin.Model, joint: int) -> list[int]:
    return [joint, *(j for j in model.subtrees[joint].tolist() if j != joint)]
