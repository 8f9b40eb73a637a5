"""Drive mechanisms in the frames of the URDF: motor angles to joint angles."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.multibody.couplings import CouplerGeometry, FourBarGeometry, VergenceGeometry
from humanoid_control.multibody.mechanisms import (
    AnkleScrews,
    DriveMechanism,
    FourBar,
    HarmonicDrive,
    KneeScrew,
    Vergence,
)
from humanoid_control.robots.description.urdf import axis_of, link_of, parse_urdf
from humanoid_control.robots.drives import Drive, DriveFile, drives_of
from humanoid_control.robots.robot import Robot


class ZeroFrames:
    """Links and joints at zero joint angles, in the tree of the URDF."""

    def __init__(self, robot: Robot) -> None:
        tree = parse_urdf(robot.urdf, robot.name)
        self.model = tree.model()
        data = self.model.createData()
        pin.framesForwardKinematics(self.model, data, pin.neutral(self.model))
        links = {f.name: k for k, f in enumerate(self.model.frames) if f.type == pin.FrameType.BODY}
        self.X = {name: data.oMf[k] for name, k in links.items()}
        self.moved_by = {name: self.model.frames[k].parentJoint for name, k in links.items()}
        self.child = {j.get("name", ""): link_of(j, "child") for j in tree.joints}
        self.parent = {j.get("name", ""): link_of(j, "parent") for j in tree.joints}
        self.axes = {j.get("name", ""): axis_of(j) for j in tree.joints}

    def joint(self, joint: str, link: str) -> tuple[np.ndarray, np.ndarray]:
        """Return origin and axis (3,) of a joint in the frame of a link."""
        X = self.X[link].inverse() * self.X[self.child[joint]]
        return np.array(X.translation), X.rotation @ self.axes[joint]

    def same_body(self, a: str, b: str) -> bool:
        """Return whether no joint lies between two links."""
        return self.moved_by[a] == self.moved_by[b]


def mechanisms_of(robot: Robot, file: DriveFile | None = None) -> dict[str, DriveMechanism]:
    """Return the mechanism of each drive by name, checked over the joint ranges.

    Raises:
        RobotError: if the file is invalid, a loop cannot close, or a transmission is singular.
        UnknownNameError: if a name is unknown.
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
    """Return the mechanism of one drive; angles count from zero URDF angles.

    Raises:
        RobotError: if geometry or carrier are invalid.
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


def reflected_inertia(robot: Robot) -> np.ndarray:
    """Return rotor inertias (n,) at the joints, neutral posture: sum of (dphi/dq)^2 J [kg m^2].

    Raises:
        RobotError: if the drives file is invalid.
    """
    joints, out = robot.postures["neutral"], np.zeros(robot.n)
    driven = [d for d in drives_of(robot).drives if d.motor is not None]
    frames = ZeroFrames(robot) if driven else None
    for drive in driven:
        assert frames is not None and drive.motor is not None
        index = [robot.index[j] for j in drive.joints]
        G = mechanism_of(drive, robot, frames).jacobian(joints[index])
        out[index] += drive.motor.inertia[0] * (G**2).sum(axis=0)
    return out
