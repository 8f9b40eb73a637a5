"""Panel of the dance page."""

from __future__ import annotations

import html
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from humanoid_control.errors import shown
from humanoid_control.retargeting.whole_body.contacts import EDGES
from humanoid_control.viewer.dance.stage import INSIDE, SHOWN
from humanoid_control.viewer.shared_control import SharedControl, on_press

if TYPE_CHECKING:
    import viser

SPEEDS = (0.1, 2.0, 0.05)  # minimum, maximum, step
PLOTS = 2
NO_JOINT = "none"
WINDOW = 8.0  # [s] time span of a joint plot
GRADE_COLORS = {"A": "#1a7f4b", "B": "#5f8f1f", "C": "#b58100", "D": "#c8590b", "F": "#b3261e"}
ANGLE, LIMIT = "#1c7ed6", "#c92a2a"
ANOTHER = "another robot ..."
MOST_NOTES, LONGEST_NOTE = 4, 160  # lines, characters
NOTE_STYLE = "margin:2px 14px;font-size:12px;color:#868e96;overflow-wrap:anywhere"


class Actions(NamedTuple):
    """Callbacks of the controls."""

    clip: Callable[[str], None]
    robot: Callable[[str, bool], None]
    play: Callable[[str], None]
    seek: Callable[[float], None]
    speed: Callable[[float], None]
    loop: Callable[[bool], None]
    follow: Callable[[bool], None]
    show: Callable[[str, bool], None]
    inside: Callable[[bool], None]
    upload: Callable[[str, bytes], None]


class ControlRow(NamedTuple):
    """Table row of a dancer.

    Attributes:
        whole_body: root and legs move.
        error: mean tracking error [m].
        contacts: edges in contact (4,).
        slip: current slip [m].
        worst_slip: largest slip [m].
        step_time: solver time [s].
        grade: grade after a complete clip, or empty.
    """

    title: str
    whole_body: bool
    error: float
    contacts: np.ndarray
    slip: float
    worst_slip: float
    step_time: float
    grade: str = ""
    verdict: str = ""


class JointPlot:
    """Recent angle of one joint, between its limits."""

    def __init__(self, gui: viser.GuiApi, label: str) -> None:
        from viser import uplot

        self.picker = gui.add_dropdown(label, (NO_JOINT,))
        self._plot = gui.add_uplot(
            data=tuple(np.zeros(2) for _ in range(4)),
            series=(
                uplot.Series(label="time [s]"),
                uplot.Series(label="angle [deg]", stroke=ANGLE, width=2),
                uplot.Series(label="least", stroke=LIMIT, width=1, dash=(4, 4)),
                uplot.Series(label="most", stroke=LIMIT, width=1, dash=(4, 4)),
            ),
            scales={"x": uplot.Scale(time=False, auto=True), "y": uplot.Scale(auto=True)},
            aspect=2.4,
            visible=False,
        )
        self._history: deque[tuple[float, float]] = deque(maxlen=600)
        self._of = NO_JOINT

    def offer(self, joints: Sequence[str]) -> None:
        """Set the selectable joints."""
        options = (NO_JOINT, *joints)
        if tuple(self.picker.options) != options:
            chosen = self.picker.value
            self.picker.options = options
            if chosen in options and self.picker.value != chosen:
                self.picker.value = chosen  # type: ignore[misc]

    def add(self, now: float, angle: float, lower: float, upper: float) -> None:
        """Add an angle [rad] at time `now` [s], with limits [rad]."""
        if self._of != self.picker.value:
            self._of = self.picker.value
            self._history.clear()
        self._plot.visible = True
        self._history.append((now, math.degrees(angle)))
        while self._history[0][0] < now - WINDOW:
            self._history.popleft()
        if len(self._history) > 2:
            t, y = np.array(self._history).T
            ends = (math.degrees(max(lower, -math.tau)), math.degrees(min(upper, math.tau)))
            self._plot.data = (t - t[-1], y, *(np.full(len(t), end) for end in ends))

    def clear(self) -> None:
        if self._plot.visible:
            self._plot.visible = False


class Controls:
    """Panel of the page."""

    def __init__(
        self, server: viser.ViserServer, clips: Sequence[str], robots: Sequence[str], actions: Actions
    ) -> None:
        """Build the panel."""
        gui, self._gui, self.actions = server.gui, server.gui, actions
        gui.set_panel_label("All robots dance")
        self._status = gui.add_markdown("")
        self._error = gui.add_html("")
        self._upload = gui.add_upload_button(
            "Add a clip or a robot", hint="BVH, FBX, C3D, TRC, NPZ ..., URDF, MJCF, or a zip; or drop it on the page"
        )
        self.clips = SharedControl(gui.add_dropdown("clip", tuple(clips)), lambda v: actions.clip(str(v)))
        self.buttons = gui.add_button_group("play", ("play", "pause", "restart"))
        self.time = SharedControl(
            gui.add_slider("time [s]", min=0.0, max=1.0, step=0.01, initial_value=0.0), lambda v: actions.seek(float(v))
        )
        self._speed = gui.add_slider(
            "speed", min=SPEEDS[0], max=SPEEDS[1], step=SPEEDS[2], initial_value=1.0, marks=((0.5, "½"), (1.0, "1"))
        )
        self._loop = gui.add_checkbox("restart at the end", initial_value=True)
        self._follow = gui.add_checkbox("the camera follows", initial_value=True)
        self._robots_folder = gui.add_folder("Robots")
        self._boxes: dict[str, SharedControl] = {}
        self._table = gui.add_html("")
        self._notes = gui.add_html("")
        self._joints_folder = gui.add_folder("Joints", expand_by_default=False)
        with self._joints_folder:
            self.plots = [JointPlot(gui, f"joint {k + 1}") for k in range(PLOTS)]
        with gui.add_folder("Show", expand_by_default=False):
            for key, label in SHOWN.items():
                self._checkbox(key, label)
            inside = gui.add_checkbox(INSIDE, initial_value=False)
            inside.on_update(lambda _: actions.inside(bool(inside.value)))
        with self._robots_folder:
            self._others = SharedControl(gui.add_dropdown("more", (ANOTHER,), visible=False), self._take_another)
        for name in robots:
            self.offer_robot(name)
        self._connect()

    def _checkbox(self, key: str, label: str) -> None:
        box = self._gui.add_checkbox(label, initial_value=True)
        box.on_update(lambda _: self.actions.show(key, bool(box.value)))

    def _connect(self) -> None:
        a = self.actions
        on_press(self.buttons, lambda _, label: a.play(str(label)))
        self._speed.on_update(lambda _: a.speed(float(self._speed.value)))
        self._loop.on_update(lambda _: a.loop(bool(self._loop.value)))
        self._follow.on_update(lambda _: a.follow(bool(self._follow.value)))
        self._upload.on_upload(lambda _: a.upload(self._upload.value.name, self._upload.value.content))

    # -- pickers

    def offer_robot(self, name: str, title: str = "") -> None:
        if name in self._boxes:
            return
        with self._robots_folder:
            box = self._gui.add_checkbox(title or name, initial_value=False)
        self._boxes[name] = SharedControl(box, lambda on: self.actions.robot(name, bool(on)))

    def offer_others(self, names: Iterable[str]) -> None:
        """Offer more robots in a list."""
        handle = self._others.handle
        handle.options = (ANOTHER, *names)
        handle.visible = len(handle.options) > 1

    def _take_another(self, name: str) -> None:
        if name != ANOTHER:
            self.offer_robot(name)
            self._others.show(ANOTHER)
            self.actions.robot(name, True)

    def set_robots(self, names: Iterable[str]) -> None:
        wanted = set(names)
        for name, box in self._boxes.items():
            box.show(name in wanted)

    def set_clips(self, titles: Sequence[str], chosen: str) -> None:
        self.clips.show(chosen, options=tuple(titles))

    # -- texts

    def set_status(self, text: str) -> None:
        if self._status.content != text:
            self._status.content = text

    def set_error(self, text: str) -> None:
        content = ""
        if text:
            content = (
                "<div style='margin:4px 12px;padding:6px 10px;border-radius:6px;background:#fff0f0;color:#a61e1e;"
                f"font-size:13px;overflow-wrap:anywhere'>{html.escape(text)}</div>"
            )
        if self._error.content != content:
            self._error.content = content

    def set_notes(self, notes: Sequence[str]) -> None:
        """Show the first notes."""
        lines = [*notes[:MOST_NOTES], *([f"and {len(notes) - MOST_NOTES} more"] if len(notes) > MOST_NOTES else [])]
        content = "".join(f"<div style='{NOTE_STYLE}'>{html.escape(shown(note, LONGEST_NOTE))}</div>" for note in lines)
        if self._notes.content != content:
            self._notes.content = content

    def set_time(self, seconds: float, duration: float) -> None:
        """Set time in the clip and duration [s]."""
        longest = max(0.1, math.floor(100 * duration) / 100)
        self.time.show(round(min(max(seconds, 0.0), longest), 2), max=longest)

    def set_rows(self, rows: Sequence[ControlRow]) -> None:
        content = "".join(row_html(row) for row in rows)
        if self._table.content != content:
            self._table.content = content


def row_html(row: ControlRow) -> str:
    color = GRADE_COLORS.get(row.grade, "#868e96")
    grade = row.grade or "–"
    lines = [f"error <b>{100 * row.error:.1f} cm</b>" if math.isfinite(row.error) else ""]
    if row.whole_body:
        chips = "".join(
            f"<span style='padding:1px 6px;margin-right:4px;border-radius:8px;color:#fff;"
            f"background:{'#2b8a3e' if on else '#adb5bd'}'>{edge.replace('_', ' ')}</span>"
            for edge, on in zip(EDGES, row.contacts, strict=True)
        )
        lines.append(f"slip <b>{1e3 * row.slip:.2f} mm</b>, at most {1e3 * row.worst_slip:.2f} mm")
        lines.append(chips)
    else:
        lines.append("upper body only")
    if math.isfinite(row.step_time):
        lines.append(f"solved in {1e3 * row.step_time:.2f} ms a frame")
    lines.append(html.escape(row.verdict) if row.verdict else "no grade until played to the end")
    return (
        "<div style='margin:6px 12px;padding:6px 10px;border:1px solid #ced4da;border-radius:8px;font-size:13px;"
        f"line-height:1.5'><b style='float:right;font-size:20px;color:{color}'>{grade}</b>"
        f"<b>{html.escape(row.title)}</b><br>{'<br>'.join(line for line in lines if line)}</div>"
    )
