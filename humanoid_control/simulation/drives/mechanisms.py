"""The mechanisms of a robot's drives: its file of drives put together with the frames of its URDF."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.multibody.gear_mechanisms import FourBar, HarmonicDrive, Vergence
from humanoid_control.multibody.mechanism import Mechanism
from humanoid_control.multibody.screw_mechanisms import AnkleScrews, KneeScrew
from humanoid_control.robots import Robot
from humanoid_control.robots.drive_file import drives_of
from humanoid_control.robots.drives import Drive, DriveFile
from humanoid_control.robots.urdf_tree import link_of, parse_urdf


class ZeroFrames:
    """Where links and joints are when all joints are zero, in the tree as the URDF has it."""

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
        axes = {j.get("name", ""): j.find("axis") for j in tree.joints}
        self.axes = {
            k: np.array([1.0, 0, 0] if e is None else [float(x) for x in e.get("xyz", "1 0 0").split()])
            for k, e in axes.items()
        }

    def joint(self, joint: str, link: str) -> tuple[np.ndarray, np.ndarray]:
        """Origin and axis (3,) of a joint in the frame of a link."""
        X = self.X[link].inverse() * self.X[self.child[joint]]
        return np.array(X.translation), X.rotation @ self.axes[joint]

    def same_body(self, a: str, b: str) -> bool:
        """Whether no joint moves these two links against each other."""
        return self.moved_by[a] == self.moved_by[b]


def mechanisms_of(robot: Robot, file: DriveFile | None = None) -> dict[str, Mechanism]:
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


def mechanism_of(drive: Drive, robot: Robot, frames: ZeroFrames) -> Mechanism:
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
        return FourBar(*one, ratio=drive.ratio, **(g | {"branch": int(g["branch"])}))
    if drive.kind == "vergence":
        lengths = {"r_ax": g["lever_x"], "r_k": g["pivot"], "r_b": g["arm"]}
        lengths |= {k: g[k] for k in ("lever", "coupler", "share")}
        return Vergence(*one, ratio=drive.ratio, branch=int(g["branch"]), **lengths)
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
    return AnkleScrews(
        drive.name,
        lower,
        upper,
        r_pc_a=origin,
        axis_1=axis,
        r_pc_f=second - origin,
        axis_2=axis_2,
        r_bot=g["bottoms"] @ turn.T,
        r_top=g["tops"],
        direction=g["direction"],
        coupler=g["coupler"],
        lead=lead,
        branch=int(g["branch"]),
    )
