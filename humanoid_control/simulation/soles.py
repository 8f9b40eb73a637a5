"""Where the soles of a robot are, and how forces at their points become one wrench a foot."""

from __future__ import annotations

from collections.abc import Iterable

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

    def no_wrenches(self) -> dict[str, np.ndarray]:
        """Zeros for every foot."""
        return {name: np.zeros(6) for name in self.names}

    def wrenches(self, data: pin.Data, forces: Iterable[tuple[int, np.ndarray, np.ndarray]]) -> dict[str, np.ndarray]:
        """The wrench of the ground on each foot (6,): force [N], torque [N m], in its sole frame.

        Args:
            data: after `pin.forwardKinematics`.
            forces: (index of the foot, point in the world (3,), force in the world (3,)).
        """
        out = self.no_wrenches()
        poses = [data.oMi[j] * X for j, X in zip(self.joints, self.placement, strict=True)]
        for k, point, force in forces:
            X, wrench = poses[k], out[self.names[k]]
            local = X.rotation.T @ force
            wrench[:3] += local
            wrench[3:] += np.cross(X.actInv(point), local)
        return out
