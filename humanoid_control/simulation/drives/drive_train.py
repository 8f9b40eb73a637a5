"""Drive trains: the mechanisms of a robot's drives in the frames of its URDF, and a robot with its rotors as bodies.

Rotors sit on their shafts, screws close loops, elastic gears have a coordinate of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.multibody.couplings import (
    COUPLER_SCREW,
    FOUR_BAR,
    HINGE_SCREW,
    CouplerGeometry,
    FourBarGeometry,
    VergenceGeometry,
)
from humanoid_control.multibody.layout import REVOLUTE
from humanoid_control.multibody.mechanisms import (
    AnkleScrews,
    DriveMechanism,
    FourBar,
    HarmonicDrive,
    KneeScrew,
    Vergence,
)
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
from humanoid_control.robots.description.urdf import axis_of, link_of, parse_urdf
from humanoid_control.robots.drives import Drive, DriveFile, Motor, drives_of
from humanoid_control.robots.robot import Robot


class ZeroFrames:
    """Links and joints at zero joint angles, in the tree as the URDF has it."""

    def __init__(self, robot: Robot) -> None:
        tree = parse_urdf(robot.urdf, robot.name)
        self.model = pin.buildModelFromXML(tree.bare().text())
        data = self.model.createData()
        pin.framesForwardKinematics(self.model, data, pin.neutral(self.model))
        links = {f.name: k for k, f in enumerate(self.model.frames) if f.type == pin.FrameType.BODY}
        self.X = {name: data.oMf[k] for name, k in links.items()}
        self.moved_by = {name: self.model.frames[k].parentJoint for name, k in links.items()}
        self.child = {j.get("name", ""): link_of(j, "child") for j in tree.joints}
        self.parent = {j.get("name", ""): link_of(j, "parent") for j in tree.joints}
        self.axes = {j.get("name", ""): axis_of(j) for j in tree.joints}

    def joint(self, joint: str, link: str) -> tuple[np.ndarray, np.ndarray]:
        """Origin and axis (3,) of a joint in the frame of a link."""
        X = self.X[link].inverse() * self.X[self.child[joint]]
        return np.array(X.translation), X.rotation @ self.axes[joint]

    def same_body(self, a: str, b: str) -> bool:
        """True where no joint moves these two links against each other."""
        return self.moved_by[a] == self.moved_by[b]


def mechanisms_of(robot: Robot, file: DriveFile | None = None) -> dict[str, DriveMechanism]:
    """The mechanism of each drive by its name, checked to close over the whole joint ranges.

    Args:
        robot: whose drives they are.
        file: default: the one beside the robot's URDF.

    Raises:
        RobotError, UnknownNameError: a bad file, points on the wrong link, a loop that cannot close, a transmission
            that is singular inside the joint range.
    """
    file = drives_of(robot) if file is None else file
    frames = ZeroFrames(robot) if file.drives else None
    out = {}
    for drive in file.drives:
        assert frames is not None
        try:
            out[drive.name] = mechanism_of(drive, robot, frames)
            out[drive.name].check()
        except RobotError as e:
            raise RobotError(f"{file.where or robot.name}: drive {e}") from None
    return out


def mechanism_of(drive: Drive, robot: Robot, frames: ZeroFrames) -> DriveMechanism:
    """The mechanism of one drive; angles count from where the URDF's joints are zero.

    Raises:
        RobotError: its geometry is not one, or its carrier is not the link before the joint.
    """
    g, k = drive.geometry, [robot.index[j] for j in drive.joints]
    lower, upper = robot.lower[k], robot.upper[k]
    one = (drive.name, float(lower[0]), float(upper[0]))
    if drive.kind in ("harmonic", "linear"):
        return HarmonicDrive(*one, drive.ratio, g.get("offset", 0.0))
    if drive.kind == "four_bar":
        return FourBar(*one, FourBarGeometry(**(g | {"branch": int(g["branch"])})), drive.ratio)
    if drive.kind == "vergence":
        lengths = {"r_ax": g["lever_x"], "r_k": g["pivot"], "r_b": g["arm"]}
        lengths |= {k: g[k] for k in ("lever", "coupler", "share")}
        return Vergence(*one, VergenceGeometry(**lengths, branch=int(g["branch"])), drive.ratio)
    before, link = frames.parent[drive.joints[0]], drive.carrier
    if not frames.same_body(before, link):
        raise RobotError(f"'{drive.name}': its carrier '{link}' must be the link before the joint, '{before}'")
    lead = 2 * np.pi / drive.ratio
    origin, axis = frames.joint(drive.joints[0], link)
    last = frames.child[drive.joints[-1]]
    turn = (frames.X[link].inverse() * frames.X[last]).rotation
    if drive.kind == "knee_screw":
        return KneeScrew(*one, r_b=g["hinge"] - origin, r_a=turn @ g["pivot"], axis=axis, lead=lead)
    second, axis_2 = frames.joint(drive.joints[1], link)
    if not frames.same_body(frames.parent[drive.joints[1]], frames.child[drive.joints[0]]):
        raise RobotError(f"'{drive.name}': joint '{drive.joints[1]}' must follow '{drive.joints[0]}'")
    directions = np.broadcast_to(np.asarray(g["direction"], dtype=float), (2, 3))
    bottoms, tops, branch = g["bottoms"] @ turn.T, g["tops"], int(g["branch"])
    screws = [
        CouplerGeometry(origin, axis, second - origin, axis_2, bottoms[k], tops[k], directions[k], g["coupler"], branch)
        for k in range(2)
    ]
    return AnkleScrews(drive.name, lower, upper, screws, lead)


# -------- A robot with its rotors as bodies

RIGID, ELASTIC = "rigid", "elastic"
DEPTHS = (RIGID, ELASTIC)


@dataclass(frozen=True)
class Shaft:
    """One motor: its rotor's body, and what it drives.

    Attributes:
        drive, motor: of the file of drives.
        body: name of the rotor's body. joints: names of the joints it moves.
        elastic: whether the rotor has a coordinate of its own behind an elastic gear.
    """

    drive: Drive
    motor: Motor
    body: str
    joints: tuple[str, ...]
    elastic: bool


@dataclass(frozen=True)
class DriveTrain:
    """The multibody model of a robot with its drives (Schwienbacher 2014, Table 2.3: Type 2 rigid, 3 elastic).

    Attributes:
        model: coordinates in the order of the base, the moving joints, the elastic rotors.
        pinocchio: the tree without rotors and with the held joints fixed. tree: the same as bodies.
        joints: the moving joints. held: joints whose dynamics are neglected; they follow their command.
        shafts: one a motor.
    """

    model: Model
    pinocchio: pin.Model
    tree: PinocchioBodies
    joints: tuple[str, ...]
    held: tuple[str, ...]
    shafts: tuple[Shaft, ...]


def build_drive_train(robot: Robot, depth: str) -> DriveTrain:
    """Put rotors onto a robot.

    Args:
        robot: with a file of drives beside its URDF.
        depth: 'rigid': rotors share their joints' coordinates, every such joint is a small loop; 'elastic': gears
            that have a stiffness get a coordinate for their rotor.

    Raises:
        UnknownNameError: no such depth. RobotError: no drives, a joint without one, a loop that cannot close.
    """
    if depth not in DEPTHS:
        raise UnknownNameError("depth of drives", depth, DEPTHS)
    file = drives_of(robot)
    if not any(d.motor for d in file.drives):
        raise RobotError(f"{robot.name} has no file of drives with motors: use drives 'ideal', or write one")
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
    """Joints without a motor: those of mechanisms that are kinematics only, and those that mimic one."""
    idle = [j for j in robot.joint_names if j not in driven]
    known = {j for d in drives_of(robot).drives if d.motor is None for j in d.joints}
    known |= {robot.joint_names[f] for f, leader, _, _ in robot.mimic if robot.joint_names[leader] in known}
    for j in idle:
        if j not in known:
            raise RobotError(f"{robot.name}: joint '{j}' has no drive in {drives_of(robot).where}: add one for it")
    return tuple(idle)


def _shafts(drive: Drive, m: DriveMechanism, frames: ZeroFrames, elastic: bool) -> list[tuple[Joint, np.ndarray]]:
    """The rotors' joints, and their axes in the carrier's frame."""
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
    raise RobotError(f"drive '{drive.name}': a {drive.kind} cannot have a motor here, only its kinematics is known")


def _rotor(name: str, drive: Drive, joint: Joint, axis: np.ndarray, model: pin.Model, tree: PinocchioBodies) -> Body:
    frame = model.frames[model.getFrameId(drive.carrier, pin.FrameType.BODY)]
    parent = str(model.names[frame.parentJoint]) if frame.parentJoint else ""
    turn = tree.turn.get(parent, np.eye(3))
    along, across = drive.motor.inertia if drive.motor else (0.0, 0.0)
    A = axis_to_z(turn.T @ frame.placement.rotation @ axis).T
    return Body(name, parent, joint, Inertia(about_origin=np.diag([across, across, along])), A)
