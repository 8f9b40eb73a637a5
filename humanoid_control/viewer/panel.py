"""Panel of a robot page."""

from __future__ import annotations

import html
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from humanoid_control.viewer.policy_controls import PolicyActions, PolicyControls
from humanoid_control.viewer.power_controls import PowerActions, PowerControls
from humanoid_control.viewer.shared_control import SharedControl, on_press
from humanoid_control.viewer.tendon_controls import TendonActions, TendonControls
from humanoid_control.viewer.walk_controls import WalkActions, WalkControls

if TYPE_CHECKING:
    import viser

    from humanoid_control.kinematics import NodeStatus

SHOWN = {
    "robot": "robot",
    "targets": "targets",
    "dancer": "dancer",
    "shapes": "collision shapes, coloured by distance",
    "com": "centre of mass",
    "frames": "standard frames: x red, y green, z blue",
    "ik_markers": "inverse kinematics view",
    "tendon_markers": "tendons, coloured by agreement or tension",
    "human/markers": "the person: markers measured and fitted, forces",
    "footsteps/planned": "planned footsteps and balance points",
    "contacts": "edges of the soles: green while in contact",
    "follow": "the camera follows the robot",
    "shadows": "shadows (slow without a graphics processor)",
}
HIDDEN = ("shapes", "com", "frames", "ik_markers", "human/markers", "footsteps/planned", "follow")  # initially
MARKERS = ("ik_markers", "tendon_markers", "human/markers", "footsteps/planned", "contacts")  # topics in SHOWN
HISTORY = 240
COLORS = {"ok": "#2b8a3e", "warn": "#b36b00", "error": "#c92a2a"}


@dataclass(frozen=True)
class PanelActions:
    """Callbacks of the panel; None hides `walk`, `power`, `policy` or `tendons`.

    Attributes:
        labels: buttons of `play`, `pause` and `restart`.
        seekable: True if the time of the clip can be set.
    """

    show: Callable[[str, bool], None]
    seek: Callable[[float], None]
    play: Callable[[], None]
    pause: Callable[[], None]
    restart: Callable[[], None]
    walk: WalkActions | None = None
    power: PowerActions | None = None
    policy: PolicyActions | None = None
    tendons: TendonActions | None = None
    labels: tuple[str, str, str] = ("play", "pause", "restart")
    seekable: bool = True


class Panel:
    """Controls of the page."""

    def __init__(
        self, server: viser.ViserServer, title: str, actions: PanelActions, hidden: tuple[str, ...] = HIDDEN
    ) -> None:
        self.actions = actions
        gui = server.gui
        gui.set_panel_label(title)
        self._status = gui.add_markdown("**waiting for joint states**")
        self.power = PowerControls(server, actions.power) if actions.power is not None else None
        self.policy = PolicyControls(server, actions.policy) if actions.policy is not None else None
        self.walk = WalkControls(server, actions.walk) if actions.walk is not None else None
        self.tendons = TendonControls(server, actions.tendons) if actions.tendons is not None else None
        self._clip = gui.add_folder("Clip", visible=actions.walk is None and actions.tendons is None)
        with self._clip:
            slider = gui.add_slider(
                "time [s]", min=0.0, max=1.0, step=0.01, initial_value=0.0, disabled=not actions.seekable
            )
            self._time = SharedControl(slider, lambda value: actions.seek(float(value)))
            buttons = gui.add_button_group(actions.labels[0], actions.labels)
        with gui.add_folder("Show", expand_by_default=False):
            for key, label in SHOWN.items():
                self._checkbox(gui, key, label, key not in hidden)
        self._targets = gui.add_folder("Error of each target [cm]", visible=actions.walk is None and actions.seekable)
        with self._targets:
            self._errors = gui.add_markdown("no targets yet")
            self._plot = self._add_plot(gui, "mean error [cm]")
        with gui.add_folder("Nodes", expand_by_default=False):
            self._nodes = gui.add_html("no diagnostics yet")
        self._history: deque[tuple[float, float]] = deque(maxlen=HISTORY)

        calls = dict(zip(actions.labels, (actions.play, actions.pause, actions.restart), strict=True))
        on_press(buttons, lambda _, label: calls[label]())

    def _checkbox(self, gui: viser.GuiApi, key: str, label: str, shown: bool) -> None:
        box = gui.add_checkbox(label, initial_value=shown)

        @box.on_update
        def _(_: viser.GuiEvent) -> None:
            self.actions.show(key, bool(box.value))

    @staticmethod
    def _add_plot(gui: viser.GuiApi, label: str) -> viser.GuiUplotHandle:
        from viser import uplot

        return gui.add_uplot(
            data=(np.array([0.0, 1.0]), np.array([0.0, 0.0])),
            series=(uplot.Series(label="time [s]"), uplot.Series(label=label, stroke="#e8590c", width=2)),
            scales={"x": uplot.Scale(time=False, auto=True), "y": uplot.Scale(auto=True)},
            aspect=2.2,
        )

    def set_duration(self, seconds: float) -> None:
        self._clip.visible = True
        self._time.handle.max = max(0.1, round(seconds, 2))

    def set_time(self, seconds: float) -> None:
        """Set the clip time [s] without triggering the slider callback."""
        slider = self._time.handle
        self._time.show(float(np.clip(seconds, slider.min, slider.max)))

    def set_status(self, text: str) -> None:
        if self._status.content != text:
            self._status.content = text

    def set_over(self, words: str, command: str) -> None:
        self.set_status(f"**This run has ended.** {words}" + (f"\n\n`{command}`" if command else ""))

    def set_errors(self, time: float, errors: dict[str, float]) -> None:
        """Show the distance of each point to its target [m] at a time [s]."""
        if not self._targets.visible:
            self._targets.visible = True
        rows = [f"| {name} | {100 * e:.1f} |" for name, e in errors.items()]
        mean = 100 * float(np.mean(list(errors.values())))
        self._errors.content = "\n".join(["| point | cm |", "|---|---|", *rows, f"| **mean** | **{mean:.1f}** |"])
        self._history.append((time, mean))
        if len(self._history) > 2:
            t, y = np.array(self._history).T
            self._plot.data = (t - t[-1], y)

    def set_nodes(self, nodes: Mapping[str, NodeStatus]) -> None:
        lines = []
        for name, (level, message, values) in sorted(nodes.items()):
            color = COLORS[("ok", "warn", "error")[min(level, 2)]]
            head = f"<b>{html.escape(name)}</b> <span style='color:{color}'>{html.escape(message)}</span>"
            detail = (
                f"{values.get('rate_hz', '?')} Hz, tick {values.get('execution_p50_ms', '?')} / "
                f"{values.get('execution_p99_ms', '?')} ms, missed {values.get('missed_percent', '?')} %"
            )
            lines.append(f"<div style='margin:4px 12px'>{head}<br><small>{html.escape(detail)}</small></div>")
        self._nodes.content = "".join(lines)
