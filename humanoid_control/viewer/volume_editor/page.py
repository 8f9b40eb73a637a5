"""Page of the volume editor, with the tabs volume, segment, posture, pairs."""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from humanoid_control.collision.ssv.distance_kernels import TYPE_NAMES
from humanoid_control.collision.ssv.segments import AXES, expand
from humanoid_control.files import mirrored_name
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.viewer.server import open_server
from humanoid_control.viewer.volume_editor import edits
from humanoid_control.viewer.volume_editor.distances import Distances, bar_html, color_of
from humanoid_control.viewer.volume_editor.editor import INERTIA, SHAPES, VISUALS, VolumeEditor
from humanoid_control.viewer.volume_editor.scene import HANDLES, ROBOT_OPACITY, DragHandles, VolumeScene

if TYPE_CHECKING:
    import viser

NONE = "-"
ROWS = 14
FREE_TURN = 180.0  # [deg] slider range of a joint without limits
SMALL = "margin:4px 14px;font-size:12px;line-height:1.4"
UNITS = {"m": 1.0, "mm": 0.001}
MM = 1000.0
HINT = "drag the arrows in the scene, or enter numbers here, in the frame of the link"
Act = Callable[[], object]
Do = Callable[[Act], None]


def on_change(handle: Any, do: Do, act: Callable[[Any], object]) -> None:
    """Call `act` with the new value after a change by the user."""

    @handle.on_update
    async def _(event: viser.GuiEvent) -> None:
        if event.client_id is not None:
            value = handle.value
            do(lambda: act(value))


def on_click(handle: Any, do: Do, act: Act) -> None:
    @handle.on_click
    async def _(_: viser.GuiEvent) -> None:
        do(act)


def on_choice(handle: Any, do: Do, act: Callable[[str], object]) -> None:
    """Call `act` with the label of the clicked button."""

    @handle.on_click
    async def _(_: viser.GuiEvent) -> None:
        value = str(handle.value)
        do(lambda: act(value))


def put(handle: Any, **values: Any) -> None:
    for name, value in values.items():
        if getattr(handle, name) != value:
            setattr(handle, name, value)


def choose(handle: Any, options: Sequence[str], value: str) -> None:
    """Set options and value of a drop-down list."""
    options = tuple(options) or (NONE,)
    value = value if value in options else options[0]
    if tuple(handle.options) != options:
        handle.options = options
    put(handle, value=value)


class PairsTab:
    """Tab of collision pairs."""

    def __init__(self, gui: viser.GuiApi, editor: VolumeEditor, do: Do) -> None:
        self._editor, self._shown = editor, 0
        self._table = gui.add_html("")
        with gui.add_folder("By hand"):
            self._first = gui.add_dropdown("segment", (NONE,))
            self._second = gui.add_dropdown("and", (NONE,))
            by_hand = gui.add_button_group("pair", ("watch", "do not watch"))
        on_choice(by_hand, do, self._by_hand)
        search = gui.add_button("search pairs by random postures", hint="replaces all pairs")
        self._reasons = gui.add_html("")

        @search.on_click
        def _(_: viser.GuiEvent) -> None:  # in a separate thread, because it takes seconds
            search.disabled, search.label = True, "searching ..."
            do(editor.find_pairs())
            search.disabled, search.label = False, "search pairs by random postures"

    def _by_hand(self, what: str) -> None:
        act = self._editor.add_pair if what == "watch" else self._editor.remove_pairs
        act(self._first.value, self._second.value)

    def show(self, distances: Distances) -> None:
        names = [s.name for s in expand(self._editor.document.file.segments)]
        choose(self._first, names, self._first.value)
        choose(self._second, names, self._second.value)
        rows = "".join(
            f"<tr><td style='text-align:right;padding-right:10px'><b style='color:rgb"
            f"{color_of(g.distance, distances.largest)}'>&#9632;</b> {1000 * g.distance:.0f}</td>"
            f"<td>{html.escape(g.volume_1)} &ndash; {html.escape(g.volume_2)}</td></tr>"
            for g in distances.gaps[:ROWS]
        )
        count = len(distances.gaps)
        head = f"{count} pairs watched; nearest volumes [mm]:" if count else "no pairs watched: search them below"
        self._table.content = f"<div style='{SMALL}'>{head}<table>{rows}</table></div>"
        choice = self._editor.choice
        if choice is not None:
            lines = "<br>".join(html.escape(x) for x in choice.explain())
            text = f"<div style='{SMALL}'><b>left out by the last search</b><br>{lines}</div>"
            if self._reasons.content != text:
                self._reasons.content = text


class PostureTab:
    """Tab of joint positions in degrees; sliding joints show 57.3 per metre."""

    def __init__(self, gui: viser.GuiApi, editor: VolumeEditor, do: Do) -> None:
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
        for joint, slider in self._sliders.items():
            angle = float(np.degrees(self._editor.joints[self._editor.robot.index[joint]]))
            if abs(slider.value - angle) > 0.06:
                put(slider, value=float(np.clip(round(angle, 1), slider.min, slider.max)))


class SegmentTab:
    """Tab of the selected segment (volumes of one link)."""

    def __init__(self, gui: viser.GuiApi, editor: VolumeEditor, do: Do) -> None:
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
            once = gui.add_button_group("copy there", AXES, hint="once; afterwards the sides are independent")
        on_change(self._both, do, lambda axis: editor.stand_for_both("" if axis == NONE else axis))
        on_choice(once, do, editor.to_other_side)
        with gui.add_folder("Fit (replaces the volumes of this segment)"):
            shape = gui.add_dropdown("shape", SHAPES, hint="auto: the simplest within 10 % of the smallest")
            visuals = gui.add_button(f"around {VISUALS}")
            inertia = gui.add_button(f"around {INERTIA}")
            unit = gui.add_dropdown("unit of the mesh", tuple(UNITS))
            mesh = gui.add_upload_button("around a mesh file: STL, OBJ, PLY, OFF")
        on_click(visuals, do, lambda: editor.fit(VISUALS, shape.value))
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
        document = self._editor.document
        choose(self._segment, [s.name for s in document.file.segments], document.selection.segment)
        s = document.segment
        put(self._name, disabled=s is None)
        if s is None:
            put(self._link, content="no segment: create one on a link below")
            return
        if self._name.value.strip() != s.name:
            put(self._name, value=s.name)
        put(self._both, value=s.mirror or NONE, disabled=mirrored_name(s.name) == s.name)
        both = f", and its image on `{mirrored_name(s.link)}`" if s.mirror else ""
        count = f"{len(s.volumes)} volume{'s' if len(s.volumes) > 1 else ''}"
        put(self._link, content=f"{count} on the link `{s.link}`{both}")


class VolumeTab:
    """Tab of the selected volume; lengths in millimetres in the link frame."""

    def __init__(self, gui: viser.GuiApi, editor: VolumeEditor, do: Do) -> None:
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
        self._group = gui.add_text("group", "", hint="a pair may be restricted to the volumes of some groups")
        self._mirror = gui.add_dropdown(
            "own image", (NONE, *AXES), hint="always adds the same volume with this coordinate negated"
        )
        flip = gui.add_button_group("mirror", AXES, hint="add an independent image with this coordinate negated")
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
        document = self._editor.document
        choose(self._segment, [s.name for s in document.file.segments], document.selection.segment)
        s, v = document.segment, document.volume
        choose(self._volume, [x.name for x in s.volumes] if s else [], document.selection.volume)
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


SHOWN = {"robot": "robot", "volumes": "volumes", "gaps": "smallest gaps"}
BY_DISTANCE, BY_SEGMENT = "distance", "segment"


# -------- The page


class VolumeEditorPage:
    """Page that edits the volumes of one robot."""

    def __init__(self, host: str, port: int, editor: VolumeEditor, origins: Sequence[str] = ()) -> None:
        """Open the page; see `open_server`."""
        self.editor = editor
        self.server = open_server(port, host, origins)
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
            handles = gui.add_dropdown("handles", tuple(HANDLES), hint="draggable parts of the scene")
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
        """Run an action and refresh the page."""
        with self._lock:
            self.editor.attempt(act)
            self.refresh()

    def refresh(self) -> None:
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
        """Test whether to apply a drag position; a busy page skips it."""
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
        self.server.stop()
