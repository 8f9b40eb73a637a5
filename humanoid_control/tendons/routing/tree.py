"""The joints of a pinocchio model that matter to some tendons, the others held still."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.tendons.tendon import Pulley, TendonSet


class JointTree:
    """A model seen through some of its joints: where its links are while all other joints are held.

    Attributes:
        names: the joints that move, in the order asked for. ids: their indices in the model, sorted.
        body: (njoints,) body of each joint of the model: 0 the world, k + 1 what joint ids[k] moves.
        zero: poses of all joints of the model in the world, the moving ones at zero.
    """

    def __init__(self, model: pin.Model, joints: Iterable[str], held: np.ndarray | None = None) -> None:
        """Look at a model.

        Args:
            joints: names of the joints that move, each with one degree of freedom.
            held: (nq,) configuration that says where the other joints are; default: neutral.

        Raises:
            UnknownNameError: no such joint. RobotError: named twice, or not one angle or one distance.
        """
        self.model, self.names = model, tuple(joints)
        known = tuple(model.names)[1:]
        for k, name in enumerate(self.names):
            if name not in known:
                raise UnknownNameError("joint", name, known, hint=f"(robot {model.name})")
            if name in self.names[:k]:
                raise RobotError(f"joint '{name}' is named twice")
            joint = model.joints[model.getJointId(name)]
            if joint.nq != 1 or joint.nv != 1:
                raise RobotError(
                    f"joint '{name}' has {joint.nv} degrees of freedom in {joint.nq} numbers; tendons can be followed "
                    "over joints of one angle or one distance with limits"
                )
        self.ids = sorted(int(model.getJointId(n)) for n in self.names)
        q = np.array(pin.neutral(model) if held is None else held, dtype=float)
        if q.shape != (model.nq,):
            raise RobotError(f"the configuration of the joints held still must be ({model.nq},), got {q.shape}")
        q[[model.joints[j].idx_q for j in self.ids]] = 0.0
        data = model.createData()
        pin.forwardKinematics(model, data, q)
        self.zero = [X.copy() for X in data.oMi]
        self.body = np.zeros(model.njoints, dtype=np.int64)
        for j in range(1, model.njoints):
            self.body[j] = self.ids.index(j) + 1 if j in self.ids else self.body[model.parents[j]]

    def pose(self, body: int) -> pin.SE3:
        """Pose of a body in the world at zero."""
        return self.zero[self.ids[body - 1]] if body else pin.SE3.Identity()

    def link(self, name: str, where: str) -> tuple[int, pin.SE3]:
        """The body that a link belongs to, and the pose of the link in it.

        Raises:
            UnknownNameError: the model has no such link; the nearest names are offered.
        """
        frame = link_frame(self.model, name, where)
        body = int(self.body[frame.parentJoint])
        return body, self.pose(body).inverse() * self.zero[frame.parentJoint] * frame.placement


def link_frame(model: pin.Model, name: str, where: str) -> pin.Frame:
    """The frame of a link.

    Raises:
        UnknownNameError: as above.
    """
    if not model.existFrame(name, pin.FrameType.BODY):
        links = [f.name for f in model.frames if f.type == pin.FrameType.BODY]
        raise UnknownNameError("link", name, links, hint=f"({where})" if where else "")
    return model.frames[model.getFrameId(name, pin.FrameType.BODY)]


def crossed_joints(model: pin.Model, tendons: TendonSet) -> tuple[str, ...]:
    """The joints that the tendons cross: those between two links that follow each other on a path, in model order.

    Raises:
        UnknownNameError: a link that the model does not have.
    """
    crossed: set[int] = set()
    for tendon in tendons:
        for branch in tendon.branches():
            joints = [link_frame(model, e.link, f"tendon '{tendon.name}'").parentJoint for e in branch]
            for a, b in itertools.pairwise(joints):
                crossed |= set(model.supports[a]) ^ set(model.supports[b])
    return tuple(model.names[j] for j in sorted(crossed))


def joint_axis(model: pin.Model, j: int) -> tuple[np.ndarray, bool]:
    """Axis (3,) of a joint of one degree of freedom in its own frame, and whether it slides."""
    data, v = model.createData(), np.zeros(model.nv)
    v[model.joints[j].idx_v] = 1.0
    pin.forwardKinematics(model, data, pin.neutral(model), v)
    motion = data.v[j]
    slides = bool(np.linalg.norm(motion.angular) < 0.5)
    return (motion.linear if slides else motion.angular).copy(), slides


def links_of(tendons: TendonSet) -> tuple[str, ...]:
    """Every link that a tendon touches, each once."""
    return tuple(dict.fromkeys(e.link for t in tendons for e in t.path if not isinstance(e, Pulley)))
