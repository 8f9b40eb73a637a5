"""Gamepad control of a walking robot."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Twist

from humanoid_control.errors import ConfigError

IMPOSSIBLE = 1e6  # bound of a stick reading, whose range is -1 to 1


class Gamepad:
    """Velocities from `joy`, while a button is held; its release stops the robot.

    Attributes:
        axes: message indices of forward, left, turning left.
        speeds: speeds at full stick [m/s, m/s, rad/s].
        held: button to hold; -1: none.
        stop: button of the immediate stop; -1: none.
    """

    def __init__(self, axes: str, speeds: str, held: int, stop: int) -> None:
        """Parse the settings.

        Args:
            axes: three comma-separated indices.
            speeds: three comma-separated speeds.
            held: button to hold; -1: none.
            stop: button of the immediate stop; -1: none.

        Raises:
            ConfigError: if numbers are malformed, or an axis is negative.
        """
        self.axes = [round(x) for x in three_numbers("joy_axes", axes)]
        self.speeds, self.held, self.stop = three_numbers("joy_speeds", speeds), held, stop
        if min(self.axes) < 0:
            raise ConfigError(f"joy_axes must be 0 or more, got '{axes}'")
        self._moves = self._pressed = False

    def take(self, message: Any) -> tuple[Twist | None, bool]:
        """Return the velocity of a Joy (None: no request), and whether to stop at once.

        Raises:
            ConfigError: if an axis or button is missing, or a stick is not finite.
        """
        if max(self.axes) >= len(message.axes) or max(self.held, self.stop) >= len(message.buttons):
            raise ConfigError(
                f"joy has {len(message.axes)} axes and {len(message.buttons)} buttons: joy_axes {self.axes}, "
                f"joy_held {self.held} or joy_stop {self.stop} is out of range"
            )
        sticks = np.array([message.axes[k] for k in self.axes])
        if not (np.abs(sticks) < IMPOSSIBLE).all():
            raise ConfigError(f"joy: axes {self.axes} are {sticks.tolist()}, which a stick cannot give: ignored")
        pressed = self.stop >= 0 and bool(message.buttons[self.stop])
        stops, self._pressed = pressed and not self._pressed, pressed
        moves, before = self.held < 0 or bool(message.buttons[self.held]), self._moves
        self._moves = moves
        if not (moves or before):
            return None, stops
        v = self.speeds * sticks * moves
        twist = Twist()
        twist.linear.x, twist.linear.y, twist.angular.z = (float(x) for x in v)
        return twist, stops


def three_numbers(name: str, text: str) -> np.ndarray:
    """Parse three comma-separated numbers (3,) of the parameter `name`.

    Raises:
        ConfigError: if they are malformed.
    """
    try:
        out = np.array([float(x) for x in text.split(",")])
    except ValueError:
        out = np.zeros(0)
    if len(out) != 3 or not np.isfinite(out).all():
        raise ConfigError(f"{name} must be three comma-separated numbers, got '{text}'")
    return out
