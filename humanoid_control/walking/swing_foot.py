"""The path of a swinging sole, from lift-off to touch-down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.numerics.minimum_jerk import minimum_jerk

STILL = 0.05  # share of the swing at either end during which the foot moves straight up or down


@dataclass(frozen=True)
class SwingPath:
    """A swing from one pose of the sole to another.

    Horizontally and in orientation it follows one quintic, at rest during the first and the last twentieth; vertically
    two quintics meet at half time, `lift` above the higher end.

    Attributes:
        start, end: poses of the sole in the world. lift: [m].
    """

    start: pin.SE3
    end: pin.SE3
    lift: float

    def at(self, u: float) -> pin.SE3:
        """Pose at phase u, 0 at lift-off to 1 at touch-down."""
        u = min(max(u, 0.0), 1.0)
        s = minimum_jerk(min(max((u - STILL) / (1 - 2 * STILL), 0.0), 1.0))
        a, b = self.start.translation, self.end.translation
        p = a + s * (b - a)
        top = max(a[2], b[2]) + self.lift
        p[2] = a[2] + (top - a[2]) * minimum_jerk(2 * u) if u < 0.5 else top + (b[2] - top) * minimum_jerk(2 * u - 1)
        R = self.start.rotation @ pin.exp3(s * pin.log3(self.start.rotation.T @ self.end.rotation))
        return pin.SE3(R, p)
