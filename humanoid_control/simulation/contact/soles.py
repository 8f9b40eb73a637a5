"""Where the soles of a robot are, and how forces at their points become one wrench a foot."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.robots import Robot


class Soles:
    """The flat soles of a robot. Each has a frame: the axes of its link, the origin in the middle of its rectangle.

    Attributes:
        names: of the feet. joints: the pinocchio joint that carries each.
        placement: of each sole frame in the frame of that joint.
        corners: (F, 4, 3) in the frame of that joint [m].
    """

    def __init__(self, robot: Robot) -> None:
        model = robot.model
        self.names = tuple(foot.name for foot in robot.feet)
        self.joints: list[int] = []
        self.placement: list[pin.SE3] = []
        corners = []
        for foot in robot.feet:
            frame = model.frames[model.getFrameId(foot.link)]
            local = foot.corners()
            self.joints.append(int(frame.parentJoint))
            self.placement.append(frame.placement * pin.SE3(np.eye(3), local.mean(axis=0)))
            corners.append([frame.placement.act(c) for c in local])
        self.corners = np.array(corners).reshape(-1, 4, 3)
        levers = [[X.actInv(c) for c in foot] for X, foot in zip(self.placement, corners, strict=True)]
        self._levers = np.array(levers).reshape(-1, 4, 3)

    def no_wrenches(self) -> dict[str, np.ndarray]:
        """Zeros for every foot."""
        return {name: np.zeros(6) for name in self.names}

    def wrenches(self, data: pin.Data, forces: np.ndarray) -> dict[str, np.ndarray]:
        """The wrench of the ground on each foot (6,): force [N], torque [N m], in its sole frame.

        Args:
            data: after `pin.forwardKinematics`.
            forces: (F, 4, 3) on the corners, in the world [N].
        """
        R = [data.oMi[j].rotation @ X.rotation for j, X in zip(self.joints, self.placement, strict=True)]
        local = forces @ np.array(R).reshape(-1, 3, 3)  # R^T f, a row a corner
        moments = cross(self._levers, local).sum(axis=1)
        rows = np.concatenate([local.sum(axis=1), moments], axis=1)
        return dict(zip(self.names, rows, strict=True))


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cross product over the last axis, broadcast; np.cross spends most of its time on checking axes."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)
