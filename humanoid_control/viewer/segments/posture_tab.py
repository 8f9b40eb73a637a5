"""The panel's part for the posture: named ones, and a slider for each joint."""

from __future__ import annotations

from typing import Any

import numpy as np
import viser

from humanoid_control.viewer.segments.controls import Do, on_change, on_choice, put
from humanoid_control.viewer.segments.editor import Editor

FREE_TURN = 180.0  # [deg] range of a slider of a joint without limits


class PostureTab:
    """Angles are shown in degrees; a sliding joint's path as its angle would be, 1 m as 57.3."""

    def __init__(self, gui: viser.GuiApi, editor: Editor, do: Do) -> None:
        self._editor, robot = editor, editor.robot
        named = gui.add_button_group("posture", tuple(robot.postures))
        on_choice(named, do, editor.set_posture)
        followers = {row[0] for row in robot.mimic}
        self._sliders: dict[str, Any] = {}
        for joint, k in robot.index.items():
            if k in followers:
                continue
            low, high = (float(np.clip(np.degrees(x[k]), -FREE_TURN, FREE_TURN)) for x in (robot.lower, robot.upper))
            if high - low < 0.1:
                continue
            angle = float(np.clip(round(np.degrees(editor.joints[k]), 1), low, high))
            slider = gui.add_slider(f"{joint} [deg]", min=low, max=high, step=0.1, initial_value=angle)
            self._sliders[joint] = slider
            self._on_slider(slider, joint, do)

    def _on_slider(self, slider: Any, joint: str, do: Do) -> None:
        on_change(slider, do, lambda angle: self._editor.set_joint(joint, float(np.radians(angle))))

    def show(self) -> None:
        """Bring the sliders up to date."""
        for joint, slider in self._sliders.items():
            angle = float(np.degrees(self._editor.joints[self._editor.robot.index[joint]]))
            if abs(slider.value - angle) > 0.06:
                put(slider, value=float(np.clip(round(angle, 1), slider.min, slider.max)))
