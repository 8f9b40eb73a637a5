"""A gamepad that moves a walking robot."""

from __future__ import annotations

from typing import Any

import numpy as np
from geometry_msgs.msg import Twist

from humanoid_control.errors import ConfigError

IMPOSSIBLE = 1e6  # of a stick, which goes from -1 to 1


class Gamepad:
    """Velocities from `joy`: sticks give one while a button is held; who lets go of it lets the robot come to rest.

    Attributes:
        axes: of the message, for forward, to the left, turning to the left. speeds: at full stick [m/s, m/s, rad/s].
        held: button that must be held; -1: none. stop: button that stops at once; -1: none.
    """

    def __init__(self, axes: str, speeds: str, held: int, stop: int) -> None:
        """Make it.

        Args:
            axes, speeds: three numbers each, with commas between. held, stop: buttons.

        Raises:
            ConfigError: not three numbers, or an axis below 0.
        """
        self.axes = [round(x) for x in three_numbers("joy_axes", axes)]
        self.speeds, self.held, self.stop = three_numbers("joy_speeds", speeds), held, stop
        if min(self.axes) < 0:
            raise ConfigError(f"joy_axes are counted from 0, got '{axes}'")
        self._moves = self._pressed = False

    def take(self, message: Any) -> tuple[Twist | None, bool]:
        """Read a Joy: the velocity to walk with, None where it says nothing of it; and whether to stop at once.

        Raises:
            ConfigError: it has fewer axes or buttons than are asked for, or a stick is at no number.
        """
        if max(self.axes) >= len(message.axes) or max(self.held, self.stop) >= len(message.buttons):
            raise ConfigError(
                f"joy has {len(message.axes)} axes and {len(message.buttons)} buttons: joy_axes {self.axes}, "
                f"joy_held {self.held} or joy_stop {self.stop} is not among them"
            )
        sticks = np.array([message.axes[k] for k in self.axes])
        if not (np.abs(sticks) < IMPOSSIBLE).all():
            raise ConfigError(f"joy: axes {self.axes} are {sticks.tolist()}: no number that a stick gives, passed over")
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
    """Three numbers (3,) in a text, with commas between.

    Raises:
        ConfigError: they are not three, or no numbers; `name`: of what they are.
    """
    try:
        out = np.array([float(x) for x in text.split(",")])
    except ValueError:
        out = np.zeros(0)
    if len(out) != 3 or not np.isfinite(out).all():
        raise ConfigError(f"{name} are three numbers with commas between, got '{text}'")
    return out
