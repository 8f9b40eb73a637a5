"""Feet on the ground: compliant points with friction that sticks until it slips."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.robots import Robot


@dataclass(frozen=True)
class GroundSettings:
    """The ground plane z = 0.

    Attributes:
        stiffness [N/m] and damping [N s/m] of each contact point along the normal.
        shear_stiffness [N/m] and shear_damping [N s/m] of a sticking point.
        friction: Coulomb coefficient.
    """

    stiffness: float = 4.0e4
    damping: float = 2.5e2
    shear_stiffness: float = 4.0e4
    shear_damping: float = 2.5e2
    friction: float = 0.8


class GroundContact:
    """Contact points at the corners of a robot's soles.

    Normal force: spring and damper, never pulling. Tangential force: a spring to the place where the point touched
    down; when it would exceed friction times the normal force, the place slides along and the force stays on the
    friction cone. A standing robot therefore does not creep.
    """

    def __init__(self, robot: Robot, settings: GroundSettings | None = None) -> None:
        self.settings = settings or GroundSettings()
        model = robot.model
        self.names = [f"{foot.name}_{k}" for foot in robot.feet for k in range(4)]
        frames = [model.frames[model.getFrameId(foot.link)] for foot in robot.feet]
        self.joints = [f.parentJoint for f in frames]
        corners = [[f.placement.act(c) for c in foot.corners()] for f, foot in zip(frames, robot.feet, strict=True)]
        self.local = np.array(corners).reshape(-1, 4, 3)  # in the frames of the joints
        self.anchor = np.full((len(self.names), 3), np.nan)
        self.force = np.zeros((len(self.names), 3))
        self._idle = True

    def reset(self) -> None:
        """Forget where the points stick."""
        self.anchor[:] = np.nan
        self.force[:] = 0.0

    def apply(self, data: pin.Data, f_ext: pin.StdVec_Force) -> None:
        """Write the contact wrench on every foot into `f_ext` (joint frames).

        Args:
            data: after `pin.forwardKinematics` with velocities.
            f_ext: one force a joint; entries of foot joints are overwritten.
        """
        if not self.joints:
            return
        R = np.array([data.oMi[j].rotation for j in self.joints])
        t = np.array([data.oMi[j].translation for j in self.joints])
        p = np.einsum("fij,fkj->fki", R, self.local) + t[:, None]
        if p[..., 2].min() >= 0:
            if not self._idle:
                self.reset()
                self._write(f_ext, np.zeros((len(self.joints), 6)))
                self._idle = True
            return
        self._idle = False
        twist = np.array([data.v[j].vector for j in self.joints])
        local_velocity = twist[:, None, :3] + _cross(twist[:, None, 3:], self.local)
        v = np.einsum("fij,fkj->fki", R, local_velocity)
        force = self._point_forces(p.reshape(-1, 3), v.reshape(-1, 3)).reshape(-1, 4, 3)
        local_force = np.einsum("fji,fkj->fki", R, force)
        moment = _cross(self.local, local_force).sum(axis=1)
        self._write(f_ext, np.hstack([local_force.sum(axis=1), moment]))

    def _write(self, f_ext: pin.StdVec_Force, wrenches: np.ndarray) -> None:
        """Feet that share a joint (a sole in two parts) add up."""
        total: dict[int, np.ndarray] = {}
        for joint, wrench in zip(self.joints, wrenches, strict=True):
            total[joint] = total.get(joint, 0.0) + wrench
        for joint, wrench in total.items():
            f_ext[joint] = pin.Force(wrench[:3], wrench[3:])

    def _point_forces(self, p: np.ndarray, v: np.ndarray) -> np.ndarray:
        s, anchor = self.settings, self.anchor
        touching = p[:, 2] < 0
        fresh = touching & np.isnan(anchor[:, 0])
        anchor[fresh] = p[fresh]
        anchor[~touching] = np.nan
        normal = np.where(touching, np.maximum(0.0, -s.stiffness * p[:, 2] - s.damping * v[:, 2]), 0.0)
        offset = np.where(touching[:, None], p[:, :2] - anchor[:, :2], 0.0)
        shear = np.where(touching[:, None], -s.shear_stiffness * offset - s.shear_damping * v[:, :2], 0.0)
        size, most = np.hypot(shear[:, 0], shear[:, 1]), s.friction * normal
        slips = touching & (size > most)
        if slips.any():
            shear[slips] *= (most[slips] / size[slips])[:, None]
            # The spring gives way: it keeps just the stretch that the friction force can hold.
            anchor[slips, :2] = p[slips, :2] + shear[slips] / s.shear_stiffness
        self.force = np.column_stack([shear, normal])
        return self.force


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cross product over the last axis, broadcast; np.cross spends most of its time on checking axes."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)
