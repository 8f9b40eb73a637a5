"""The panel's part for the selected segment: its name and link, its other side, fitting, new segments."""

from __future__ import annotations

import viser

from humanoid_control.collision.ssv_segments import AXES, other_side
from humanoid_control.robots.urdf_tree import parse_urdf
from humanoid_control.viewer.segments.controls import NONE, Do, choose, on_change, on_choice, on_click, put
from humanoid_control.viewer.segments.editor import Editor
from humanoid_control.viewer.segments.fitting import INERTIA, LOOK, SHAPES

UNITS = {"m": 1.0, "mm": 0.001}


class SegmentTab:
    """A segment is all volumes that move with one link."""

    def __init__(self, gui: viser.GuiApi, editor: Editor, do: Do) -> None:
        self._editor = editor
        document = editor.document
        self._segment = gui.add_dropdown("segment", (NONE,))
        on_change(self._segment, do, lambda name: document.select(name))
        self._name = gui.add_text("name", "", hint="pairs follow")
        on_change(self._name, do, lambda name: editor.rename_segment(name.strip(), "segment name"))
        self._link = gui.add_markdown("")
        delete = gui.add_button("delete segment", color="gray")
        on_click(delete, do, editor.delete_segment)
        with gui.add_folder("Other side"):
            self._both = gui.add_dropdown(
                "drawn for both", (NONE, *AXES), hint="the other side is always the image, with this coordinate negated"
            )
            once = gui.add_button_group("copy there", AXES, hint="once; each side is its own afterwards")
        on_change(self._both, do, lambda axis: editor.stand_for_both("" if axis == NONE else axis))
        on_choice(once, do, editor.to_other_side)
        with gui.add_folder("Fit (replaces the volumes of this segment)"):
            shape = gui.add_dropdown("shape", SHAPES, hint="auto: the simplest that is not a tenth too large")
            look = gui.add_button(f"around {LOOK}")
            inertia = gui.add_button(f"around {INERTIA}")
            unit = gui.add_dropdown("unit of the mesh", tuple(UNITS))
            mesh = gui.add_upload_button("around a mesh file: STL, OBJ, PLY, OFF")
        on_click(look, do, lambda: editor.fit(LOOK, shape.value))
        on_click(inertia, do, lambda: editor.fit(INERTIA, shape.value))

        @mesh.on_upload
        async def _(_: viser.GuiEvent) -> None:
            file = mesh.value
            do(lambda: editor.fit_mesh(file.name, file.content, shape.value, UNITS[unit.value]))

        with gui.add_folder("New segment"):
            link = gui.add_dropdown("on the link", parse_urdf(editor.robot.urdf, editor.robot.name).links)
            new = gui.add_button("new segment")
        on_click(new, do, lambda: editor.new_segment(link.value))

    def show(self) -> None:
        """Bring the controls up to date."""
        document = self._editor.document
        choose(self._segment, [s.name for s in document.file.segments], document.selection.segment)
        s = document.segment
        put(self._name, disabled=s is None)
        if s is None:
            put(self._link, content="no segment: make one on a link below")
            return
        if self._name.value.strip() != s.name:
            put(self._name, value=s.name)
        put(self._both, value=s.mirror or NONE, disabled=other_side(s.name) == s.name)
        both = f", and its image on `{other_side(s.link)}`" if s.mirror else ""
        count = f"{len(s.ssvs)} volume{'s' if len(s.ssvs) > 1 else ''}"
        put(self._link, content=f"{count} on the link `{s.link}`{both}")
