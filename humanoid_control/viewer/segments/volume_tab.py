"""The panel's part for the selected volume: which one, its numbers, and what can be done with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import viser

from humanoid_control.collision.ssv_lanes import TYPE_NAMES
from humanoid_control.collision.ssv_segments import AXES
from humanoid_control.viewer.segments import edits
from humanoid_control.viewer.segments.controls import NONE, Do, choose, on_change, on_choice, put
from humanoid_control.viewer.segments.editor import Editor

MM = 1000.0
HINT = "drag the arrows in the scene, or write numbers here, in the frame of the link"


class VolumeTab:
    """Lengths are shown in millimetres, in the frame of the link."""

    def __init__(self, gui: viser.GuiApi, editor: Editor, do: Do) -> None:
        self._editor, document = editor, editor.document
        self._segment = gui.add_dropdown("segment", (NONE,), hint="or click a volume in the scene")
        self._volume = gui.add_dropdown("volume", (NONE,))
        on_change(self._segment, do, lambda name: document.select(name))
        on_change(self._volume, do, lambda name: document.select(document.selection.segment, name))
        add = gui.add_button_group("add", TYPE_NAMES, hint="a new volume in this segment")
        more = gui.add_button_group("selected", ("copy", "delete"))
        on_choice(add, do, editor.add)
        on_choice(more, do, lambda what: {"copy": editor.copy, "delete": editor.delete}[what]())
        self._name = gui.add_text("name", "")
        self._radius = gui.add_number("radius [mm]", 0.0, min=0.0, step=0.1, hint=HINT)
        self._vertices = [
            gui.add_vector3(f"vertex {k + 1} [mm]", (0.0, 0.0, 0.0), step=0.1, hint=HINT) for k in range(3)
        ]
        self._group = gui.add_text("group", "", hint="a pair may ask for the volumes of some groups only")
        self._mirror = gui.add_dropdown(
            "own image", (NONE, *AXES), hint="the same volume with this coordinate negated belongs to it, always"
        )
        flip = gui.add_button_group("mirror", AXES, hint="add an image, on its own, with this coordinate negated")
        size = gui.add_button_group("size", ("-10 %", "+10 %"))
        on_choice(flip, do, editor.flip)
        on_choice(size, do, lambda what: editor.change("", lambda v: edits.resized(v, 1.1 if "+" in what else 1 / 1.1)))
        on_change(self._name, do, self._rename)
        on_change(self._radius, do, lambda mm: editor.change("radius", lambda v: replace(v, radius=mm / MM)))
        on_change(self._group, do, lambda name: editor.change("group", lambda v: replace(v, group=name.strip())))
        on_change(
            self._mirror, do, lambda axis: editor.change("", lambda v: replace(v, mirror="" if axis == NONE else axis))
        )
        for k, handle in enumerate(self._vertices):
            self._on_vertex(handle, k, do)

    def _on_vertex(self, handle: Any, k: int, do: Do) -> None:
        def act(mm: tuple[float, float, float]) -> None:
            self._editor.change(f"vertex {k}", lambda v: edits.with_vertex(v, k, np.array(mm) / MM))

        on_change(handle, do, act)

    def _rename(self, name: str) -> None:
        self._editor.change("name", lambda v: replace(v, name=name.strip()))

    def show(self) -> None:
        """Bring the controls up to date."""
        document = self._editor.document
        choose(self._segment, [s.name for s in document.file.segments], document.selection.segment)
        s, v = document.segment, document.volume
        choose(self._volume, [x.name for x in s.ssvs] if s else [], document.selection.volume)
        for control in (self._name, self._radius, self._group, self._mirror):
            put(control, disabled=v is None)
        for k, handle in enumerate(self._vertices):
            put(handle, visible=v is not None and k < len(v.vertices))
        if v is None:
            return
        if self._name.value.strip() != v.name:
            put(self._name, value=v.name)
        if self._group.value.strip() != v.group:
            put(self._group, value=v.group)
        put(self._radius, value=round(MM * v.radius, 3))
        put(self._mirror, value=v.mirror or NONE)
        for handle, p in zip(self._vertices, v.vertices, strict=False):
            put(handle, value=tuple(round(MM * x, 3) for x in p))
