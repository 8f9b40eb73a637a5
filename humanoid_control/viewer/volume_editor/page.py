"""Page of the volume editor: the scene, its handles and the panel around one VolumeEditor."""

from __future__ import annotations

import html
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from humanoid_control.viewer.server import open_server
from humanoid_control.viewer.volume_editor.distances import bar_html
from humanoid_control.viewer.volume_editor.editor import VolumeEditor
from humanoid_control.viewer.volume_editor.scene import HANDLES, ROBOT_OPACITY, DragHandles, VolumeScene
from humanoid_control.viewer.volume_editor.tabs import (
    Act,
    PairsTab,
    PostureTab,
    SegmentTab,
    VolumeTab,
    on_change,
    on_choice,
    on_click,
)

if TYPE_CHECKING:
    import viser

SHOWN = {"robot": "robot", "volumes": "volumes", "gaps": "smallest gaps"}
BY_DISTANCE, BY_SEGMENT = "distance", "segment"


class VolumeEditorPage:
    """A page in which one robot's volumes are edited."""

    def __init__(self, host: str, port: int, editor: VolumeEditor) -> None:
        """Open the page.

        Args:
            host, port: where it listens.
            editor: what is edited.
        """
        self.editor = editor
        self.server = open_server(port, host)
        self._lock, self._ready, self._cost = threading.RLock(), 0.0, 0.0
        self.scene = VolumeScene(self.server, editor.robot, editor.folder)
        self.handles = DragHandles(self.server, self._dragged, self._phase)
        self._build_panel()
        self._set_camera()
        self.server.scene.on_click()(self._pick)
        self.refresh()

    def _build_panel(self) -> None:
        gui, editor = self.server.gui, self.editor
        gui.set_panel_label(f"{editor.robot.title}: collision volumes")
        gui.configure_theme(control_width="large", show_logo=False, show_share_button=False)
        self._status, self._bar = gui.add_html(""), gui.add_html("")
        steps = gui.add_button_group("steps", ("undo", "redo"))
        on_choice(steps, self.do, lambda what: {"undo": editor.document.undo, "redo": editor.document.redo}[what]())
        on_click(gui.add_button("save", color="green"), self.do, self._save)
        tabs = gui.add_tab_group()
        with tabs.add_tab("Volume"):
            self._volume = VolumeTab(gui, editor, self.do)
            handles = gui.add_dropdown("handles", tuple(HANDLES), hint="what can be dragged in the scene")
            on_change(handles, self.do, lambda which: setattr(self.handles, "shown", which))
        with tabs.add_tab("Segment"):
            self._segment = SegmentTab(gui, editor, self.do)
        with tabs.add_tab("Posture"):
            self._posture = PostureTab(gui, editor, self.do)
        with tabs.add_tab("Pairs"):
            self._pairs = PairsTab(gui, editor, self.do)
        with tabs.add_tab("Show"):
            self._build_show(gui)

    def _build_show(self, gui: viser.GuiApi) -> None:
        for key, label in SHOWN.items():
            box = gui.add_checkbox(label, initial_value=True)
            on_change(box, self.do, partial(self.scene.show, key))
        on_change(gui.add_slider("robot's opacity", 0.05, 1.0, 0.05, ROBOT_OPACITY), self.do, self.scene.fade)
        colors = gui.add_dropdown("colours by", (BY_DISTANCE, BY_SEGMENT))
        on_change(colors, self.do, lambda what: setattr(self.scene, "by_distance", what == BY_DISTANCE))

    def do(self, act: Act) -> None:
        """Do something and show what became of it."""
        with self._lock:
            self.editor.attempt(act)
            self.refresh()

    def refresh(self) -> None:
        """Bring everything on the page up to date."""
        begin = time.monotonic()
        editor, document = self.editor, self.editor.document
        distances = editor.distances()
        with self._lock, self.server.atomic():
            self.scene.move(editor.joints)
            self.scene.draw(document.file, document.selection, distances)
            self.handles.place(document.segment.link if document.segment else "", document.volume)
            self._status.content = self._status_html()
            gap = distances.smallest
            bar = bar_html(distances.largest, gap.distance, f"{gap.volume_1} - {gap.volume_2}") if gap else ""
            if self._bar.content != bar:
                self._bar.content = bar
            for tab in (self._volume, self._segment, self._posture):
                tab.show()
            self._pairs.show(distances)
        self._ready = time.monotonic()
        self._cost = self._ready - begin

    def _status_html(self) -> str:
        """File, state of saving, and the message about the last act."""
        document, editor = self.editor.document, self.editor
        where = html.escape(document.path.name if document.path else "no file")
        state = "<b style='color:#b36b00'>not saved</b>" if document.changed else "saved"
        color = "#c92a2a" if editor.failed else "#2b6a3e"
        word = f"<div style='color:{color}'>{html.escape(editor.message)}</div>" if editor.message else ""
        return f"<div style='margin:4px 14px;font-size:13px;line-height:1.4'>{where}: {state}{word}</div>"

    def _save(self) -> str:
        return f"written: {self.editor.document.save()}"

    def _pick(self, event: viser.SceneClickEvent) -> None:
        ray = np.array(event.ray_origin), np.array(event.ray_direction)
        self.do(lambda: self.editor.pick(*ray))

    def _dragged(self, gesture: str, new: object) -> None:
        self.do(lambda: self.editor.change(gesture, new))  # type: ignore[arg-type]

    def _phase(self, phase: str) -> bool:
        """Test whether a place of a drag is taken: not while the page is still busy with the one before."""
        if phase == "ended":
            self.editor.document.end_gesture()
            self.refresh()
        return phase != "update" or time.monotonic() - self._ready >= self._cost

    def _set_camera(self) -> None:
        h = float(np.nan_to_num(self.editor.robot.height, nan=1.6)) or 1.6
        camera = self.server.initial_camera
        camera.position = (0.98 * h, 0.1 * h, 0.62 * h)
        camera.look_at = (0.0, 0.28 * h, 0.5 * h)
        camera.up = (0.0, 0.0, 1.0)

    def stop(self) -> None:
        """Close the page."""
        self.server.stop()
