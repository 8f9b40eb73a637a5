"""Standard frames of a robot as axes with names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin

from humanoid_control.robots import Robot
from humanoid_control.robots.standard_frames import BASE, standard_frames

if TYPE_CHECKING:
    import viser

FOOTPRINT, SOLES = "base_footprint", ("l_sole", "r_sole")
AXIS, RADIUS, LABEL = 0.18, 0.006, (0.0, 0.0, 0.2)  # [m] length and radius of an axis; place of the name


class FrameLayer:
    """Frames of REP 120 on their links, and `base_footprint` below them: x red, y green, z blue."""

    def __init__(self, server: viser.ViserServer, folder: str, robot: Robot) -> None:
        """Add the frames, named by `folder` and their own names."""
        self._frames = standard_frames(robot)
        names = [*self._frames, FOOTPRINT] if set(SOLES) <= set(self._frames) else list(self._frames)
        self.handles: dict[str, viser.FrameHandle] = {}
        for name in names:
            path = f"{folder}/{name}"
            self.handles[name] = server.scene.add_frame(path, axes_length=AXIS, axes_radius=RADIUS, origin_radius=0.0)
            server.scene.add_label(f"{path}/name", name, position=LABEL)

    def poses(self, X_world_links: Mapping[str, pin.SE3]) -> dict[str, pin.SE3]:
        """Return the poses of the frames in the world, from those of the links.

        `base_footprint` lies between both soles, on the level of the lower one, with the yaw of `base_link`.
        """
        out = {name: X_world_links[f.link] * f.X_link_frame for name, f in self._frames.items()}
        if FOOTPRINT in self.handles:
            left, right = (out[name].translation for name in SOLES)
            middle = np.array([*(0.5 * (left + right))[:2], min(left[2], right[2])])
            x, y, _ = out[BASE].rotation[:, 0]
            out[FOOTPRINT] = pin.SE3(pin.utils.rotate("z", float(np.arctan2(y, x))), middle)
        return out

    def move(self, X_world_links: Mapping[str, pin.SE3]) -> None:
        """Draw the frames at these poses of the links."""
        for name, X in self.poses(X_world_links).items():
            x = pin.SE3ToXYZQUAT(X)
            self.handles[name].position, self.handles[name].wxyz = x[:3], x[[6, 3, 4, 5]]
