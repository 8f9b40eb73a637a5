"""Handles in the scene to drag: each vertex, the radius, and the whole of the selected volume."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pinocchio as pin
import viser

from humanoid_control.collision.ssv_segments import Ssv
from humanoid_control.viewer.segments.edits import moved, with_vertex
from humanoid_control.viewer.segments.volume_mesh import core_axes

LEAST_RADIUS = 0.001  # [m] that dragging leaves
SIZES = {"whole": 0.14, "radius": 0.09, "vertex": 0.08}  # [m] length of the arrows
# All at once lie on top of each other where a volume is small.
SHOWN = {
    "vertices and radius": ("vertex", "radius"),
    "the whole": ("whole",),
    "all": ("whole", "vertex", "radius"),
    "none": (),
}
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
Change = Callable[[str, Callable[[Ssv], Ssv]], None]


class Handles:
    """Gizmos of one volume at a time, in the frame of its link.

    The one being dragged is left alone, the others follow. What happens is told in phases: 'start', 'update', 'end'.
    """

    def __init__(self, server: viser.ViserServer, change: Change, phase: Callable[[str], bool]) -> None:
        """Prepare.

        Args:
            server: of the page.
            change: called with a gesture and a function from the volume before it to the one after it.
            phase: told the phase of a drag; False: this place may be left out.
        """
        self._server, self._change, self._phase = server, change, phase
        self._gizmos: dict[str, viser.TransformControlsHandle] = {}
        self._labels: dict[str, viser.LabelHandle] = {}
        self._of: tuple[str, int] | None = None
        self._dragged = ""
        self._base: Ssv | None = None
        self._ssv: Ssv | None = None
        self.shown = "vertices and radius"

    def place(self, link: str, ssv: Ssv | None) -> None:
        """Put the handles on a volume of a link; None: on nothing."""
        self._ssv = ssv
        wanted = self._wanted(ssv) if ssv is not None else {}
        if (link, len(wanted)) != self._of or wanted.keys() != self._gizmos.keys():
            self._clear()
            for name, (position, wxyz) in wanted.items():
                self._add(link, name, position, wxyz)
            self._of = link, len(wanted)
        for name, (position, wxyz) in wanted.items():
            if name in self._labels:
                self._labels[name].position = position
            if name != self._dragged:
                self._gizmos[name].position, self._gizmos[name].wxyz = position, wxyz

    def _wanted(self, ssv: Ssv) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Position and orientation of each handle in the frame of the link."""
        core = np.array(ssv.vertices)
        out: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        kinds = SHOWN[self.shown]
        if "whole" in kinds:
            out["whole"] = core.mean(axis=0), UPRIGHT
        if "vertex" in kinds and (len(core) > 1 or "whole" not in kinds):
            out |= {f"vertex {k + 1}": (v, UPRIGHT) for k, v in enumerate(core)}
        if "radius" in kinds:
            anchor, n = radius_line(ssv)
            q = pin.Quaternion.FromTwoVectors(np.array([1.0, 0.0, 0.0]), n)
            out["radius"] = anchor + ssv.radius * n, np.array([q.w, q.x, q.y, q.z])
        return out

    def _add(self, link: str, name: str, position: np.ndarray, wxyz: np.ndarray) -> None:
        kind = name.split()[0]
        handle = self._server.scene.add_transform_controls(
            f"/links/{link}/handles/{name.replace(' ', '_')}",
            scale=SIZES[kind],
            line_width=3.0,
            active_axes=(True, kind != "radius", kind != "radius"),
            disable_sliders=kind != "vertex",
            disable_rotations=kind != "whole" or self.single,
            depth_test=False,
            opacity=0.9,
            position=position,
            wxyz=wxyz,
        )
        if kind != "whole":
            self._labels[name] = self._server.scene.add_label(
                f"/links/{link}/handles/{name.replace(' ', '_')}_label", name, position=position, font_screen_scale=0.8
            )
        self._gizmos[name] = handle

        @handle.on_update
        async def _(event: viser.TransformControlsEvent) -> None:
            self._drag(name, event.phase, np.array(handle.position), np.array(handle.wxyz))

    @property
    def single(self) -> bool:
        """Whether the volume is a point, which cannot be turned."""
        return self._ssv is not None and len(self._ssv.vertices) == 1

    def _drag(self, name: str, phase: str, position: np.ndarray, wxyz: np.ndarray) -> None:
        if self._ssv is None or name not in self._gizmos:
            return
        if phase == "start" or self._dragged != name:
            self._dragged, self._base = name, self._ssv
        base = self._base
        if not self._phase(phase) or base is None:
            return
        if phase != "start":
            self._change(f"drag {name}", lambda _: dragged(base, name, position, wxyz))
        if phase == "end":
            self._dragged, self._base = "", None
            self._phase("ended")

    def _clear(self) -> None:
        for handle in (*self._gizmos.values(), *self._labels.values()):
            handle.remove()
        self._gizmos, self._labels, self._of, self._dragged = {}, {}, None, ""


def dragged(base: Ssv, name: str, position: np.ndarray, wxyz: np.ndarray) -> Ssv:
    """A volume after one of its handles was dragged.

    Args:
        base: as it was when the handle was taken.
        name: of the handle: 'whole', 'radius', or 'vertex 2'.
        position: where the handle is now (3,), in the link's frame [m].
        wxyz: its orientation.
    """
    if name == "whole":
        turn = pin.Quaternion(float(wxyz[0]), *(float(x) for x in wxyz[1:])).normalized().toRotationMatrix()
        return moved(base, position - np.mean(base.vertices, axis=0), turn)
    if name == "radius":
        anchor, n = radius_line(base)
        return replace(base, radius=round(max(float((position - anchor) @ n), LEAST_RADIUS), 6))
    return with_vertex(base, int(name.split()[1]) - 1, position)


def radius_line(ssv: Ssv) -> tuple[np.ndarray, np.ndarray]:
    """A point of the core and a direction (unit) away from it, along which the radius is dragged."""
    core = np.array(ssv.vertices)
    return core.mean(axis=0), core_axes(core)[2]
