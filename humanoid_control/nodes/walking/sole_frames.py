"""Frames of force sensors: a wrench measured in the frame of a link, carried to the middle of the sole it is of."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.nodes.simulating.outputs import sole_frame
from humanoid_control.robots import Robot


class SoleFrames:
    """The way from the frames of links to those of the soles, by the measured joints.

    The force on a foot passes through the links that carry it and those that are fixed to it. A wrench in the frame of
    one of them is the same wrench about another point and in other axes. One in the frame of another limb is of another
    sensor, and refused.
    """

    def __init__(self, robot: Robot, soles: tuple[str, ...]) -> None:
        """Prepare; soles: names of feet of the robot."""
        self._model, self._data, self._robot = robot.model, robot.model.createData(), robot
        feet = {foot.name: foot for foot in robot.feet}
        self._soles: dict[str, tuple[int, pin.SE3]] = {}
        for name in soles:
            middle = pin.SE3(np.eye(3), feet[name].corners().mean(axis=0))
            self._soles[name] = self._placed(feet[name].link, middle)
        frames = (f for f in robot.model.frames if f.type == pin.FrameType.BODY)
        self._links = {f.name: (int(f.parentJoint), f.placement.copy()) for f in frames}
        self._links |= {sole_frame(name): placed for name, placed in self._soles.items()}

    def _placed(self, link: str, X: pin.SE3) -> tuple[int, pin.SE3]:
        frame = self._model.frames[self._model.getFrameId(link, pin.FrameType.BODY)]
        return int(frame.parentJoint), frame.placement * X

    def to_sole(self, sole: str, frame: str, wrench: np.ndarray, joints: np.ndarray) -> np.ndarray:
        """The wrench (6,) about the middle of a sole, in the axes of its link.

        Args:
            sole: its name. frame: in which it was measured; empty: that of the sole.
            wrench: (6,) force [N] and torque [N m] about the origin of the frame. joints: (n,) [rad].

        Raises:
            ConfigError: a frame that is none of the robot's links, or of another limb; joints that are not known.
        """
        if frame in ("", sole_frame(sole)):
            return wrench
        topic = f"wrench/{sole} in frame '{frame[:60]}'"
        if frame not in self._links:
            raise ConfigError(
                f"{topic}: neither '{sole_frame(sole)}' nor a link of this robot has that name: passed over"
            )
        (foot, X_foot), (link, X_link) = self._soles[sole], self._links[frame]
        supports = self._model.supports
        if link not in supports[foot] and foot not in supports[link]:
            raise ConfigError(f"{topic}: that link carries no force of this foot: passed over")
        X = X_foot.inverse() * X_link
        if link != foot:
            if not np.isfinite(joints).all():
                raise ConfigError(f"{topic}: the joints between are not measured yet: passed over")
            pin.forwardKinematics(self._model, self._data, self._robot.q(joints))
            X = (self._data.oMi[foot] * X_foot).actInv(self._data.oMi[link] * X_link)
        return np.asarray(X.act(pin.Force(wrench)).vector)
