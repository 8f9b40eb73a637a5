"""Walking controls in the panel: velocity pad, arrow keys, pushes, stop buttons."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin

from humanoid_control.viewer.access import may_command
from humanoid_control.viewer.shared_control import on_press
from humanoid_control.viewer.velocity_pad import VelocityPad

if TYPE_CHECKING:
    import viser

PUSHES = {"forward": (1.0, 0.0), "back": (-1.0, 0.0), "left": (0.0, 1.0), "right": (0.0, -1.0)}
PUSH, PUSH_TIME = 100.0, 0.1  # [N], duration in the simulator [s]
CALLS = ("stop", "emergency stop", "stand", "reset")
FREE = ("stop", "emergency stop")  # calls without token, because they stop motion


@dataclass(frozen=True)
class WalkActions:
    """Callbacks of the controls, called from server threads.

    Attributes:
        move: takes a velocity (3,), each -1..1: forward, left, turning left; zeros end it.
        push: takes a force (3,) in heading axes [N].
        call: takes one of CALLS.
    """

    move: Callable[[np.ndarray], None]
    push: Callable[[np.ndarray], None]
    call: Callable[[str], None]


class WalkControls:
    """Controls; `pad` passes on the velocity."""

    def __init__(self, server: viser.ViserServer, actions: WalkActions) -> None:
        self.actions, gui = actions, server.gui
        with gui.add_folder("Walk"):
            self.pad = VelocityPad(server, actions.move)
            calls = gui.add_button_group("robot", CALLS)
            pushes = gui.add_button_group("push 10 N s", tuple(PUSHES))

        def call(event: viser.GuiEvent, name: str) -> None:
            if name in FREE or may_command(server, event):
                actions.call(name)

        def push(event: viser.GuiEvent, way: str) -> None:
            if may_command(server, event):
                actions.push(np.array([*PUSHES[way], 0.0]) * PUSH)

        on_press(calls, call)
        on_press(pushes, push)


def in_root_axes(force: np.ndarray, X_world_root: pin.SE3, upright: np.ndarray) -> np.ndarray:
    """Rotate a force (3,) from heading axes to root link axes.

    Args:
        force: force in heading axes (3,) [N].
        upright: rotation (3, 3) of the root link of a standing robot facing x.
    """
    R = X_world_root.rotation @ upright.T
    yaw = math.atan2(R[1, 0], R[0, 0])
    return X_world_root.rotation.T @ pin.rpy.rpyToMatrix(0.0, 0.0, yaw) @ force
