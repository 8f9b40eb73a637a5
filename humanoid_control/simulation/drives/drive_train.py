"""Drive trains: robot with rotors as bodies; screws and four-bars close loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.multibody.couplings import COUPLER_SCREW, FOUR_BAR, HINGE_SCREW
from humanoid_control.multibody.layout import REVOLUTE
from humanoid_control.multibody.mechanisms import AnkleScrews, DriveMechanism, FourBar, HarmonicDrive, KneeScrew
from humanoid_control.multibody.model import (
    Body,
    Inertia,
    Joint,
    Model,
    PinocchioBodies,
    axis_to_z,
    from_pinocchio,
    revolute,
    rotor,
)
from humanoid_control.robots.drive_mechanisms import ZeroFrames, mechanism_of
from humanoid_control.robots.drives import Drive, Motor, drives_of
from humanoid_control.robots.robot import Robot

RIGID, ELASTIC = "rigid", "elastic"
DEPTHS = (RIGID, ELASTIC)


@dataclass(frozen=True)
class Shaft:
    """One motor and the joints that it drives.

    Attributes:
        body: name of the rotor body.
        elastic: the rotor has its own coordinate behind an elastic gear.
    """

    drive: Drive
    motor: Motor
    body: str
    joints: tuple[str, ...]
    elastic: bool


@dataclass(frozen=True)
class DriveTrain:
    """Multibody model of a robot with its drives (Schwienbacher 2014, Table 2.3: Type 2 rigid, 3 elastic).

    Attributes:
        model: coordinates of base, moving joints, elastic rotors.
        pinocchio: tree without rotors, held joints fixed.
        tree: the same as bodies.
        joints: moving joints.
        held: joints without dynamics.
        shafts: one per motor.
    """

    model: Model
    pinocchio: pin.Model
    tree: PinocchioBodies
    joints: tuple[str, ...]
    held: tuple[str, ...]
    shafts: tuple[Shaft, ...]


def build_drive_train(robot: Robot, depth: str) -> DriveTrain:
    """Add the rotors of its drives file to a robot.

    Args:
        depth: 'rigid': rotors share joint coordinates; 'elastic': rotors behind compliant gears have their own.

    Raises:
        UnknownNameError: if the depth is unknown.
        RobotError: if drives are missing, or a loop cannot close.
    """
    if depth not in DEPTHS:
        raise UnknownNameError("depth of drives", depth, DEPTHS)
    file = drives_of(robot)
    if not any(d.motor for d in file.drives):
        raise RobotError(f"{robot.name} has no drive file with motors: use drives 'ideal', or write one")
    held = _held(robot, {j for d in file.drives if d.motor for j in d.joints})
    ids = [robot.model.getJointId(j) for j in held]
    reduced = pin.buildReducedModel(robot.model, ids, robot.q("neutral")) if ids else robot.model
    tree = from_pinocchio(reduced)
    frames = ZeroFrames(robot)
    bodies, rotors, shafts, own = list(tree.bodies), [], [], []
    for drive in file.drives:
        if drive.motor is None:
            continue
        mechanism = mechanism_of(drive, robot, frames)
        mechanism.check()
        elastic = depth == ELASTIC and drive.elastic is not None
        if elastic and not drive.motor.inertia[0] > 0:
            raise RobotError(f"{file.where}: drive '{drive.name}': an elastic gear needs a rotor with inertia")
        for k, (joint, axis) in enumerate(_shafts(drive, mechanism, frames, elastic)):
            name = f"{drive.name}_rotor{k + 1 if len(drive.joints) > 1 else ''}"
            if elastic:
                own.append(name)
                joint = revolute(name)
            rotors.append(_rotor(name, drive, joint, axis, reduced, tree))
            shafts.append(Shaft(drive, drive.motor, name, drive.joints, elastic))
    joints = tuple(j for j in robot.joint_names if j not in held)
    base = [c for b in bodies if len(b.joint.coordinates) == 6 for c in b.joint.coordinates]
    model = Model(bodies + rotors, [*base, *joints, *own])
    return DriveTrain(model, reduced, tree, joints, held, tuple(shafts))


def _held(robot: Robot, driven: set[str]) -> tuple[str, ...]:
    """Return the joints without a motor: kinematic mechanisms and mimic joints."""
    idle = [j for j in robot.joint_names if j not in driven]
    known = {j for d in drives_of(robot).drives if d.motor is None for j in d.joints}
    known |= {robot.joint_names[f] for f, leader, _, _ in robot.mimic if robot.joint_names[leader] in known}
    for j in idle:
        if j not in known:
            raise RobotError(f"{robot.name}: joint '{j}' has no drive in {drives_of(robot).where}: add one for it")
    return tuple(idle)


def _shafts(drive: Drive, m: DriveMechanism, frames: ZeroFrames, elastic: bool) -> list[tuple[Joint, np.ndarray]]:
    """Return rotor joints and their axes in the carrier's frame."""
    if isinstance(m, AnkleScrews):
        scale = [(float(m.ratio), float(-m.ratio * m.at_zero[k]), *map(float, m.pars[k])) for k in range(2)]
        return [(Joint(REVOLUTE, drive.joints, COUPLER_SCREW, p), np.array(p[17:20])) for p in scale]
    axis = frames.joint(drive.joints[0], drive.carrier)[1] if drive.axis is None else np.array(drive.axis, float)
    if isinstance(m, KneeScrew):
        p = (float(m.ratio), float(-m.ratio * m.at_zero), *map(float, m.par))
        return [(Joint(REVOLUTE, drive.joints, HINGE_SCREW, p), m.screw_axis())]
    if isinstance(m, FourBar):
        return [(Joint(REVOLUTE, drive.joints, FOUR_BAR, (float(m.ratio), 0.0, *map(float, m.par))), axis)]
    if isinstance(m, HarmonicDrive):
        return [(rotor(drive.joints[0], *map(float, m.par)), axis)]
    raise RobotError(f"drive '{drive.name}': a {drive.kind} cannot have a motor: only its kinematics is known")


def _rotor(name: str, drive: Drive, joint: Joint, axis: np.ndarray, model: pin.Model, tree: PinocchioBodies) -> Body:
    frame = model.frames[model.getFrameId(drive.carrier, pin.FrameType.BODY)]
    parent = str(model.names[frame.parentJoint]) if frame.parentJoint else ""
    turn = tree.turn.get(parent, np.eye(3))
    along, across = drive.motor.inertia if drive.motor else (0.0, 0.0)
    A = axis_to_z(turn.T @ frame.placement.rotation @ axis).T
    return Body(name, parent, joint, Inertia(about_origin=np.diag([across, across, along])), A)
