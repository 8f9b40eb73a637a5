"""Screw drives as closed chains of pinocchio: the same mechanisms by joints and closing points, without formulas.

A knee's screw unit turns on its hinge in both directions and carries a helical joint whose nut meets the shank. An
ankle's screw is a helical joint on the shank; a coupler on two joints of the foot meets it. Each loop thus adds three
joints and three equations, neither too many nor too few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.multibody.mechanisms import AnkleScrews, HarmonicDrive, KneeScrew
from humanoid_control.robots import Robot
from humanoid_control.robots.drive_mechanisms import ZeroFrames, mechanism_of
from humanoid_control.simulation.drives.drive_train import DriveTrain

HELPER = 1e-9  # [kg m^2] inertia about the couplers' joints, without which pinocchio cannot factor its matrix


@dataclass(frozen=True)
class ScrewShaft:
    """The spinning part of a screw: 2 pi / lead [1/m], inertia about the screw and across it [kg m^2]; no mass."""

    ratio: float
    along: float
    across: float

    def about(self, axis: np.ndarray) -> np.ndarray:
        """(3, 3) inertia of a shaft along a unit vector."""
        return self.across * np.eye(3) + (self.along - self.across) * np.outer(axis, axis)


@dataclass
class KneeScrewLoop:
    """The loop of a knee's screw between hinge B on the thigh and pivot A on the shank.

    Attributes:
        r_b, r_a: (3,) both, in the frames of thigh and shank [m].
        axis: of the knee; rest: from B to A at some posture (3,), both in the thigh's frame, at a right angle.
    """

    r_b: np.ndarray
    r_a: np.ndarray
    axis: np.ndarray
    rest: np.ndarray


@dataclass
class ChainPart:
    """A joint with what it moves."""

    name: str
    parent: str
    joint: pin.JointModel
    place: pin.SE3
    inertia: pin.Inertia
    armature: np.ndarray


class ChainParts:
    """A tree of pinocchio and loops next to it: joints, what they move, and where loops close."""

    def __init__(self, tree: pin.Model, helper: float = HELPER) -> None:
        """Take a tree.

        Args:
            helper: inertia of each joint that a massless part turns about [kg m^2].
        """
        self.tree, self.helper = tree, helper
        self.parts: list[ChainPart] = []
        for j in range(1, tree.njoints):
            joint = tree.joints[j]
            armature = tree.armature[joint.idx_v : joint.idx_v + joint.nv]
            where = (tree.names[j], tree.names[tree.parents[j]], joint, tree.jointPlacements[j], tree.inertias[j])
            self.parts.append(ChainPart(*where, armature))
        self.ends: list[tuple[str, np.ndarray, str, np.ndarray]] = []

    def add_knee(
        self, thigh: str, shank: str, loop: KneeScrewLoop, shaft: ScrewShaft, unit: pin.Inertia | None = None
    ) -> None:
        """A screw between the thigh and the shank.

        Args:
            thigh, shank: joints that move them.
            unit: of the part that tilts but does not spin, in the thigh's axes at rest, about B.
        """
        rest = loop.rest
        light = self.helper if unit is None else 0.0
        k = self._add(thigh, pin.JointModelRevoluteUnaligned(loop.axis), loop.r_b, armature=light)
        k = self._add(
            k, pin.JointModelRevoluteUnaligned(np.cross(loop.axis, rest / np.linalg.norm(rest))), None, unit, light
        )
        k = self._screw(k, None, rest, shaft)
        self.ends.append((k, np.asarray(rest, float), shank, np.asarray(loop.r_a, float)))

    def add_coupler(
        self,
        shank: str,
        foot: str,
        carriage: np.ndarray,
        direction: np.ndarray,
        r_bot: np.ndarray,
        rest: np.ndarray,
        shaft: ScrewShaft,
    ) -> None:
        """A screw along a direction of the shank, whose carriage holds a foot by a coupler.

        Args:
            shank, foot: joints that move them. r_bot (3,): in the foot's frame [m].
            carriage: where it is at some posture, direction: of its travel (3,), in the shank's frame.
            rest: from r_bot to the carriage at that posture (3,), in the foot's axes; its length is the coupler's [m].
        """
        along = rest / np.linalg.norm(rest)
        first = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
        first /= np.linalg.norm(first)
        k = self._add(foot, pin.JointModelRevoluteUnaligned(first), r_bot, armature=self.helper)
        rod = self._add(k, pin.JointModelRevoluteUnaligned(np.cross(along, first)), None, armature=self.helper)
        screw = self._screw(shank, carriage, direction, shaft)
        self.ends.append((screw, np.zeros(3), rod, np.asarray(rest, float)))

    def _screw(self, parent: str, at: np.ndarray | None, direction: np.ndarray, shaft: ScrewShaft) -> str:
        axis = direction / np.linalg.norm(direction)
        inertia = pin.Inertia(0.0, np.zeros(3), shaft.about(axis))
        return self._add(parent, pin.JointModelHelicalUnaligned(axis, 1.0 / shaft.ratio), at, inertia)

    def _add(
        self,
        parent: str,
        joint: pin.JointModel,
        at: np.ndarray | None,
        inertia: pin.Inertia | None = None,
        armature: float = 0.0,
    ) -> str:
        place = pin.SE3(np.eye(3), np.zeros(3) if at is None else np.asarray(at, float))
        name = f"loop{len(self.parts)}"
        self.parts.append(ChainPart(name, parent, joint, place, inertia or pin.Inertia.Zero(), np.array([armature])))
        return name


class ClosedChains(ChainParts):
    """A tree of pinocchio and loops next to it; pinocchio wants joints depth first, so they are sorted at the end.

    Attributes:
        model: of the whole. contacts: closing points, three equations each.
        tree_q, tree_v: where q and v of the tree lie in those of the whole. loop_v: the other velocities.
    """

    def prepare(self) -> None:
        """Build the model, its data and its contacts."""
        self.model = pin.Model()
        self.model.gravity = self.tree.gravity
        self._grow("universe", 0)
        armature = np.zeros(self.model.nv)
        for part in self.parts:
            j = self.model.joints[self.model.getJointId(part.name)]
            armature[j.idx_v : j.idx_v + j.nv] = part.armature
        self.model.armature = armature
        of_tree = [self.model.joints[self.model.getJointId(n)] for n in list(self.tree.names)[1:]]
        self.tree_q = np.concatenate([np.arange(j.idx_q, j.idx_q + j.nq) for j in of_tree])
        self.tree_v = np.concatenate([np.arange(j.idx_v, j.idx_v + j.nv) for j in of_tree])
        self.loop_q = np.setdiff1d(np.arange(self.model.nq), self.tree_q)
        self.loop_v = np.setdiff1d(np.arange(self.model.nv), self.tree_v)
        self.data = self.model.createData()
        self.contacts, self.contact_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for one, x, other, y in self.ends:
            a, b = (pin.SE3(np.eye(3), p) for p in (x, y))
            ends = (self.model.getJointId(one), a, self.model.getJointId(other), b)
            self.contacts.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, self.model, *ends, pin.LOCAL))
            self.contact_data.append(self.contacts[len(self.contacts) - 1].createData())
        self.proximal = pin.ProximalSettings(1e-14, 0.0, 1)
        try:
            pin.initConstraintDynamics(self.model, self.data, self.contacts, self.contact_data)
        except TypeError:  # before 4.0
            pin.initConstraintDynamics(self.model, self.data, self.contacts)

    def _grow(self, parent: str, at: int) -> None:
        for part in self.parts:
            if part.parent == parent:
                j = self.model.addJoint(at, part.joint, part.place, part.name)
                self.model.appendBodyToJoint(j, part.inertia, pin.SE3.Identity())
                self._grow(part.name, j)

    def gaps(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distances between closing points (3 loops,) [m], and their Jacobian."""
        pin.computeJointJacobians(self.model, self.data, q)
        e, J = [], []
        for one, x, other, y in self.ends:
            points, rows = [], []
            for joint, point in ((self.model.getJointId(one), x), (self.model.getJointId(other), y)):
                r = self.data.oMi[joint].rotation @ point
                jac = pin.getJointJacobian(self.model, self.data, joint, pin.LOCAL_WORLD_ALIGNED)
                points.append(self.data.oMi[joint].translation + r)
                rows.append(jac[:3] - pin.skew(r) @ jac[3:])
            e.append(points[0] - points[1])
            J.append(rows[0] - rows[1])
        return np.concatenate(e), np.vstack(J)

    def close(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Configuration and velocity of the whole for those of the tree, loops closed by Newton's method.

        Raises:
            ArithmeticError: they do not close.
        """
        x, u = np.zeros(self.model.nq), np.zeros(self.model.nv)
        x[self.tree_q], u[self.tree_v] = q, v
        for _ in range(50):
            e, J = self.gaps(x)
            if np.abs(e).max() < 1e-15:
                break
            x[self.loop_q] -= np.linalg.solve(J[:, self.loop_v], e)
        if not np.abs(e).max() < 1e-12:
            raise ArithmeticError(f"loops do not close: error  {np.abs(e).max():g} m")
        u[self.loop_v] = np.linalg.solve(J[:, self.loop_v], -J[:, self.tree_v] @ v)
        return x, u

    def loads(self, tau: np.ndarray) -> np.ndarray:
        """Generalised forces of the whole for those of the tree."""
        out = np.zeros(self.model.nv)
        out[self.tree_v] = tau
        return out

    def accelerate(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Accelerations of the whole (nv,): one call of pinocchio's constrained dynamics."""
        return pin.constraintDynamics(self.model, self.data, q, v, tau, self.contacts, self.contact_data, self.proximal)


# -------- Robot


def chains_of(robot: Robot, train: DriveTrain) -> ClosedChains:
    """The tree of a drive train with every screw as a loop; rotors of plain gears as armature of their joints."""
    tree, frames = train.pinocchio.copy(), ZeroFrames(robot)
    armature = np.zeros(tree.nv)
    for shaft in train.shafts:
        m = mechanism_of(shaft.drive, robot, frames)
        if isinstance(m, HarmonicDrive):
            k = tree.joints[tree.getJointId(shaft.joints[0])].idx_v
            armature[k] += float(m.par[0]) ** 2 * shaft.motor.inertia[0]
    tree.armature = armature
    chains = ClosedChains(tree)

    def seen(link: str, point: np.ndarray) -> np.ndarray:
        """A point of a link in the frame of the joint that moves it."""
        return np.asarray(tree.frames[tree.getFrameId(link)].placement.act(np.asarray(point, float)))

    def turned(link: str, v: np.ndarray) -> np.ndarray:
        return np.asarray(tree.frames[tree.getFrameId(link)].placement.rotation @ v)

    done = set()
    for shaft in train.shafts:
        drive = shaft.drive
        if drive.name in done:
            continue
        done.add(drive.name)
        m, g = mechanism_of(drive, robot, frames), drive.geometry
        carrier, last = drive.carrier, frames.child[drive.joints[-1]]
        above = str(tree.names[tree.frames[tree.getFrameId(carrier)].parentJoint])
        if isinstance(m, KneeScrew):
            _, axis = frames.joint(drive.joints[0], carrier)
            hinge, pivot, rest = seen(carrier, g["hinge"]), seen(last, g["pivot"]), turned(carrier, m.r_a - m.r_b)
            loop = KneeScrewLoop(hinge, pivot, turned(carrier, axis), rest)
            chains.add_knee(above, drive.joints[0], loop, ScrewShaft(m.ratio, *shaft.motor.inertia))
        elif isinstance(m, AnkleScrews):
            to_last = (frames.X[last].inverse() * frames.X[carrier]).rotation
            rods, spin = m.couplers(np.zeros(2)), ScrewShaft(m.ratio, *shaft.motor.inertia)
            for k in range(2):
                e = m.pars[k][15:18]
                start = seen(carrier, g["tops"][k] + m.at_zero[k] * e)
                rest, bottom = turned(last, -(to_last @ rods[k])), seen(last, g["bottoms"][k])
                chains.add_coupler(above, drive.joints[1], start, turned(carrier, e), bottom, rest, spin)
    chains.prepare()
    return chains
