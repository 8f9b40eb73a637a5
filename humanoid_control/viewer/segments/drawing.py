"""The editor's scene: the robot as a shade, and its volumes in the colours of their distances."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import viser

from humanoid_control.collision.ssv_file import SsvFile
from humanoid_control.collision.ssv_segments import Ssv, expand
from humanoid_control.robots import Robot
from humanoid_control.robots.urdf_tree import parse_urdf
from humanoid_control.viewer.meshes import link_meshes
from humanoid_control.viewer.segments.colors import PALETTE, UNKNOWN, Color, color_of
from humanoid_control.viewer.segments.distances import Distances
from humanoid_control.viewer.segments.document import Selection
from humanoid_control.viewer.segments.gaps import GapLines
from humanoid_control.viewer.segments.volume_mesh import volume_mesh

NET, NET_WIDER = (15, 15, 20), 5e-4  # around what is selected
CLOSEST, OTHERS, PLAIN = (
    0.85,
    0.3,
    0.6,
)  # opacity of a volume that is the nearest of a pair, that is not, without regard
SHADE = 0.35  # opacity of the robot itself
LAYER, LAYERS = 1.5e-4, 4  # [m] between surfaces in one place
Key = tuple[str, str]  # segment, volume


class Drawing:
    """What is seen. Everything hangs on frames of the links, so that a posture moves only these."""

    def __init__(self, server: viser.ViserServer, robot: Robot, folder: Path | None = None) -> None:
        """Draw the robot.

        Args:
            server: of the page.
            robot: whose links.
            folder: where the URDF's mesh files are.
        """
        self.server, self.robot = server, robot
        self.by_distance = True
        self._visible = {"robot": True, "volumes": True, "gaps": True}
        scene = server.scene
        scene.set_up_direction("+z")
        scene.configure_default_lights(cast_shadow=False)
        scene.add_grid("/floor", width=4.0, height=4.0, cell_size=0.25, section_size=1.0)
        self._links, self._looks = {}, []
        for link, meshes in link_meshes(parse_urdf(robot.urdf, robot.name), folder).items():
            self._links[link] = scene.add_frame(f"/links/{link}", show_axes=False)
            for k, ((vertices, faces), color) in enumerate(meshes):
                name = f"/links/{link}/look/{k}"
                mesh = scene.add_mesh_simple(name, vertices, faces, color=color, opacity=SHADE, cast_shadow=False)
                self._looks.append(mesh)
        self._volumes: dict[Key, viser.MeshHandle] = {}
        self._drawn: dict[Key, tuple[str, Ssv]] = {}
        self._net: viser.MeshHandle | None = None
        self._netted: tuple[str, Ssv] | None = None
        self._gaps = GapLines(server)

    def move(self, joints: np.ndarray) -> None:
        """Put the links where a posture (n,) puts them."""
        for link, X in self.robot.link_poses(self.robot.q(joints)).items():
            if link in self._links:
                q = pin.Quaternion(X.rotation)
                self._links[link].position = X.translation
                self._links[link].wxyz = np.array([q.w, q.x, q.y, q.z])

    def show(self, what: str, visible: bool) -> None:
        """Show or hide 'robot', 'volumes' or 'gaps'."""
        self._visible[what] = visible
        for handle in {"robot": self._looks, "volumes": list(self._volumes.values())}.get(what, []):
            handle.visible = visible

    def fade(self, opacity: float) -> None:
        """Opacity of what the robot looks like."""
        for mesh in self._looks:
            mesh.opacity = opacity

    def draw(self, file: SsvFile, selection: Selection, distances: Distances) -> None:
        """Bring the volumes, their colours and the gaps up to date."""
        seen = {(s.name, v.name): (s.link, v) for s in expand(file.segments) for v in s.ssvs}
        for key in [k for k, (link, _) in self._drawn.items() if k not in seen or seen[k][0] != link]:
            self._volumes.pop(key).remove()
            del self._drawn[key]
        names = list(dict.fromkeys(segment for segment, _ in seen))
        for k, ((key, (link, ssv)), d) in enumerate(zip(seen.items(), distances.volumes, strict=True)):
            if not self.by_distance:
                paint = PALETTE[names.index(key[0]) % len(PALETTE)], PLAIN
            elif np.isfinite(d):
                paint = color_of(d, distances.largest), CLOSEST
            else:
                paint = UNKNOWN, OTHERS
            self._draw_volume(key, link, layered(ssv, k), *paint)
        self._draw_net(seen.get((selection.segment, selection.volume)) if self._visible["volumes"] else None)
        self._gaps.draw(distances.gaps if self._visible["gaps"] else (), distances.largest)

    def _draw_volume(self, key: Key, link: str, ssv: Ssv, color: Color, opacity: float) -> None:
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

    def _draw_net(self, wanted: tuple[str, Ssv] | None) -> None:
        """A net around the selected volume."""
        if wanted == self._netted:
            return
        if self._net is not None:
            self._net.remove()
        self._net, self._netted = None, wanted
        if wanted is not None:
            link, ssv = wanted
            surface = triangles(replace(ssv, radius=ssv.radius + NET_WIDER))
            self._net = self.server.scene.add_mesh_simple(
                f"/links/{link}/selected", *surface, color=NET, wireframe=True, opacity=0.3, cast_shadow=False
            )


def layered(ssv: Ssv, k: int) -> Ssv:
    """A volume a hair larger, by its number: surfaces in one place would flicker."""
    return replace(ssv, radius=ssv.radius + LAYER * (k % LAYERS))


def triangles(ssv: Ssv) -> tuple[np.ndarray, np.ndarray]:
    """The surface of a volume in its link's frame, as the page takes it."""
    vertices, faces = volume_mesh(np.array(ssv.vertices), ssv.radius)
    return vertices.astype(np.float32), faces
