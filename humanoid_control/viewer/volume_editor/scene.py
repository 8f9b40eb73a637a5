"""Scene of the volume editor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin

from humanoid_control.collision.ssv.segments import SegmentFile, Volume, expand
from humanoid_control.robots import Robot
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.viewer.meshes import core_axes, link_meshes, volume_mesh
from humanoid_control.viewer.scene import quaternion_wxyz
from humanoid_control.viewer.server import light_scene
from humanoid_control.viewer.volume_editor.distances import PALETTE, UNKNOWN, Color, Distances, VolumeGap, color_of
from humanoid_control.viewer.volume_editor.document import Selection
from humanoid_control.viewer.volume_editor.edits import moved, with_vertex

if TYPE_CHECKING:
    import viser

LEAST_RADIUS = 0.001  # [m] minimum radius by dragging
SIZES = {"whole": 0.14, "radius": 0.09, "vertex": 0.08}  # [m] arrow lengths
# All handles at once would overlap on small volumes.
HANDLES = {
    "vertices and radius": ("vertex", "radius"),
    "the whole": ("whole",),
    "all": ("whole", "vertex", "radius"),
    "none": (),
}
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
LINES = 12  # nearest pairs with a line
WIDTH, MARK_RADIUS = 0.008, 0.022  # [m]
MARK = (215, 0, 0)
NET, NET_DISTANCE = (15, 15, 20), 5e-4  # wireframe around the selected volume [m]
NEAREST, OTHERS, PLAIN = 0.85, 0.3, 0.6  # opacity of a pair's nearest volume, of others, without distance colours
ROBOT_OPACITY = 0.35
LAYER, LAYERS = 1.5e-4, 4  # [m] offset between coincident surfaces
Key = tuple[str, str]  # segment, volume
Change = Callable[[str, Callable[[Volume], Volume]], None]


class VolumeScene:
    """Scene of the editor; all objects are children of link frames."""

    def __init__(self, server: viser.ViserServer, robot: Robot, folder: Path | None = None) -> None:
        """Draw the robot."""
        self.server, self.robot = server, robot
        self.by_distance = True
        self._visible = {"robot": True, "volumes": True, "gaps": True}
        scene = server.scene
        scene.set_up_direction("+z")
        light_scene(scene, shadows=False)
        scene.add_grid("/floor", width=4.0, height=4.0, cell_size=0.25, section_size=1.0)
        self._links, self._visuals = {}, []
        for link, meshes in link_meshes(parse_urdf(robot.urdf, robot.name), folder).items():
            self._links[link] = scene.add_frame(f"/links/{link}", show_axes=False)
            for k, ((vertices, faces), color) in enumerate(meshes):
                name = f"/links/{link}/visual/{k}"
                mesh = scene.add_mesh_simple(
                    name, vertices, faces, color=color, opacity=ROBOT_OPACITY, cast_shadow=False
                )
                self._visuals.append(mesh)
        self._volumes: dict[Key, viser.MeshHandle] = {}
        self._drawn: dict[Key, tuple[str, Volume]] = {}
        self._net: viser.MeshHandle | None = None
        self._netted: tuple[str, Volume] | None = None
        self._gaps = GapLines(server)

    def move(self, joints: np.ndarray) -> None:
        """Update the link poses for a posture (n,) [rad]."""
        for link, X in self.robot.link_poses(self.robot.q(joints)).items():
            if link in self._links:
                self._links[link].position, self._links[link].wxyz = X.translation, quaternion_wxyz(X.rotation)

    def show(self, what: str, visible: bool) -> None:
        self._visible[what] = visible
        for handle in {"robot": self._visuals, "volumes": list(self._volumes.values())}.get(what, []):
            handle.visible = visible

    def fade(self, opacity: float) -> None:
        for mesh in self._visuals:
            mesh.opacity = opacity

    def draw(self, file: SegmentFile, selection: Selection, distances: Distances) -> None:
        seen = {(s.name, v.name): (s.link, v) for s in expand(file.segments) for v in s.volumes}
        for key in [k for k, (link, _) in self._drawn.items() if k not in seen or seen[k][0] != link]:
            self._volumes.pop(key).remove()
            del self._drawn[key]
        names = list(dict.fromkeys(segment for segment, _ in seen))
        for k, ((key, (link, ssv)), d) in enumerate(zip(seen.items(), distances.volumes, strict=True)):
            if not self.by_distance:
                paint = PALETTE[names.index(key[0]) % len(PALETTE)], PLAIN
            elif np.isfinite(d):
                paint = color_of(d, distances.largest), NEAREST
            else:
                paint = UNKNOWN, OTHERS
            self._draw_volume(key, link, layered(ssv, k), *paint)
        self._draw_net(seen.get((selection.segment, selection.volume)) if self._visible["volumes"] else None)
        self._gaps.draw(distances.gaps if self._visible["gaps"] else (), distances.largest)

    def _draw_volume(self, key: Key, link: str, ssv: Volume, color: Color, opacity: float) -> None:
        mesh = self._volumes.get(key)
        if mesh is None:
            name, shown = f"/links/{link}/volumes/{key[0]}.{key[1]}", self._visible["volumes"]
            mesh = self.server.scene.add_mesh_simple(
                name, *triangles(ssv), color=color, opacity=opacity, cast_shadow=False, visible=shown
            )
            self._volumes[key] = mesh
        else:
            before = self._drawn[key][1]
            if (before.radius, before.vertices) != (ssv.radius, ssv.vertices):
                mesh.vertices, mesh.faces = triangles(ssv)
            if tuple(mesh.color) != color:
                mesh.color = color
            if mesh.opacity != opacity:
                mesh.opacity = opacity
        self._drawn[key] = link, ssv

    def _draw_net(self, selected: tuple[str, Volume] | None) -> None:
        if selected == self._netted:
            return
        if self._net is not None:
            self._net.remove()
        self._net, self._netted = None, selected
        if selected is not None:
            link, ssv = selected
            surface = triangles(replace(ssv, radius=ssv.radius + NET_DISTANCE))
            self._net = self.server.scene.add_mesh_simple(
                f"/links/{link}/selected", *surface, color=NET, wireframe=True, opacity=0.3, cast_shadow=False
            )


class GapLines:
    """Lines across the smallest gaps, with a red mark on the smallest (Schwienbacher 2014, fig. 6.15)."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._scene = server.scene
        self._handles: list[viser.SceneNodeHandle] = []

    def draw(self, gaps: tuple[VolumeGap, ...], largest: float) -> None:
        """Draw the first of the sorted gaps; `largest`: colour scale [m]."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        near = gaps[:LINES]
        if not near:
            return
        scene = self._scene
        points = np.array([[g.point_1, g.point_2] for g in near], dtype=np.float32)
        colors = np.array([[color_of(g.distance, largest)] * 2 for g in near], dtype=np.uint8)
        place, smallest = points[0].mean(axis=0), f"{1000 * near[0].distance:.0f} mm"
        self._handles = [
            scene.add_line_segments("/gaps/lines", points, colors, thickness=WIDTH),
            scene.add_icosphere("/gaps/mark", radius=MARK_RADIUS, color=MARK, position=place, cast_shadow=False),
            scene.add_label("/gaps/label", smallest, position=place, anchor="bottom-left"),
        ]


class DragHandles:
    """Handles of one volume, in its link frame.

    Phases of a drag: 'start', 'update' at each position, 'end' at the last one, 'ended' after the change.
    """

    def __init__(self, server: viser.ViserServer, change: Change, phase: Callable[[str], bool]) -> None:
        """Create the handles, hidden.

        Args:
            change: called with a gesture and a function from the old to the new volume.
            phase: called with the phase; returns whether to apply this position.
        """
        self._server, self._change, self._phase = server, change, phase
        self._gizmos: dict[str, viser.TransformControlsHandle] = {}
        self._labels: dict[str, viser.LabelHandle] = {}
        self._of: tuple[str, int] | None = None
        self._dragged = ""
        self._base: Volume | None = None
        self._ssv: Volume | None = None
        self.shown = "vertices and radius"

    def place(self, link: str, ssv: Volume | None) -> None:
        """Attach the handles to a volume of a link; None: hide them."""
        self._ssv = ssv
        poses = self._poses(ssv) if ssv is not None else {}
        if (link, len(poses)) != self._of or poses.keys() != self._gizmos.keys():
            self._clear()
            for name, (position, wxyz) in poses.items():
                self._add(link, name, position, wxyz)
            self._of = link, len(poses)
        for name, (position, wxyz) in poses.items():
            if name in self._labels:
                self._labels[name].position = position
            if name != self._dragged:
                self._gizmos[name].position, self._gizmos[name].wxyz = position, wxyz

    def _poses(self, ssv: Volume) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        core = np.array(ssv.vertices)
        out: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        kinds = HANDLES[self.shown]
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
        """Whether the volume is a point, which cannot be rotated."""
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


def dragged(base: Volume, name: str, position: np.ndarray, wxyz: np.ndarray) -> Volume:
    """Return a volume after one of its handles was dragged.

    Args:
        base: volume at the start of the drag.
        name: handle: 'whole', 'radius', or 'vertex 2'.
        position: handle position (3,) in the link frame [m].
    """
    if name == "whole":
        turn = pin.Quaternion(float(wxyz[0]), *(float(x) for x in wxyz[1:])).normalized().toRotationMatrix()
        return moved(base, position - np.mean(base.vertices, axis=0), turn)
    if name == "radius":
        anchor, n = radius_line(base)
        return replace(base, radius=round(max(float((position - anchor) @ n), LEAST_RADIUS), 6))
    return with_vertex(base, int(name.split()[1]) - 1, position)


def radius_line(ssv: Volume) -> tuple[np.ndarray, np.ndarray]:
    """Return the core centre and the unit direction of the radius handle."""
    core = np.array(ssv.vertices)
    return core.mean(axis=0), core_axes(core)[2]


def layered(ssv: Volume, k: int) -> Volume:
    """Enlarge a volume slightly, by its index, against flicker."""
    return replace(ssv, radius=ssv.radius + LAYER * (k % LAYERS))


def triangles(ssv: Volume) -> tuple[np.ndarray, np.ndarray]:
    """Return the surface of a volume in its link frame."""
    vertices, faces = volume_mesh(np.array(ssv.vertices), ssv.radius)
    return vertices.astype(np.float32), faces
