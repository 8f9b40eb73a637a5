"""Editing actions, independent of the page."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import trimesh

from humanoid_control.collision.ssv.fitting import fit_volumes
from humanoid_control.collision.ssv.pair_selection import PairChoice, Sampling
from humanoid_control.collision.ssv.segments import Segment, SegmentPair, Volume, expand
from humanoid_control.errors import HumanoidError, RobotError, UnknownNameError
from humanoid_control.robots import Robot
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.robots.volumes import find_pairs, fit_link
from humanoid_control.viewer.meshes import link_meshes
from humanoid_control.viewer.volume_editor import edits
from humanoid_control.viewer.volume_editor.distances import Distances, EditorDistances
from humanoid_control.viewer.volume_editor.document import Document, Selection, owners

MESH_TYPES = (".stl", ".obj", ".ply", ".off")
VISUALS, INERTIA = "the visual geometry of the link", "the link's inertia"  # sources of a fit
SHAPES = ("auto", "point", "line", "triangle", "rectangle")
NEW_RADIUS = 0.05  # [m]


class VolumeEditor:
    """Robot, its volumes, and a test posture.

    Attributes:
        joints: posture (n,) [rad].
        message: message of the last action; `failed`: it was rejected.
        choice: pairs of the last search, with reasons for exclusions.
    """

    def __init__(self, robot: Robot, document: Document, folder: Path | None = None) -> None:
        self.robot, self.document, self.folder = robot, document, folder
        self.joints = robot.postures["neutral"].copy()
        self.message, self.failed = "", False
        self.choice: PairChoice | None = None
        self._distances = EditorDistances(robot)

    def attempt(self, act: Callable[[], object]) -> bool:
        """Run an action; return True, or store the reason in `message`."""
        try:
            answer = act()
        except HumanoidError as e:
            self.message, self.failed = str(e), True
            return False
        self.message, self.failed = answer if isinstance(answer, str) else "", False
        return True

    def pick(self, origin: np.ndarray, direction: np.ndarray) -> bool:
        """Select the first volume hit by a world-frame ray."""
        k = self._distances.pick(self.document.model, self.joints, origin, direction)
        if k is None:
            return False
        segment, _, volume = self.document.model.volume_name(k).rpartition(".")
        found = owners(self.document.file)[Selection(segment, volume)]
        self.document.select(found.segment, found.volume)
        return True

    def distances(self) -> Distances:
        return self._distances.at(self.document.model, self.joints)

    # -- volumes ----------------------------------------------------------------------------------------------

    def add(self, kind: str) -> None:
        s = self.document.need_segment()
        center = np.mean([p for v in s.volumes for p in v.vertices], axis=0)
        radius = round(float(np.median([v.radius for v in s.volumes])) or NEW_RADIUS, 4)
        self._add(s, edits.new_volume(kind, (v.name for v in s.volumes), radius, center))

    def copy(self) -> None:
        s, v = self.document.need_segment(), self.document.need_volume()
        self._add(s, edits.copied(v, (x.name for x in s.volumes)))

    def delete(self) -> str:
        """Delete the selected volume, with its segment if empty."""
        s, v = self.document.need_segment(), self.document.need_volume()
        before = len(self.document.file.pairs or ())
        self.document.change(edits.delete_volume(self.document.file, s.name, v.name))
        lost = before - len(self.document.file.pairs or ())
        return f"{s.name}.{v.name} deleted" + (f", with {lost} pairs" if lost else "")

    def change(self, gesture: str, new: Callable[[Volume], Volume]) -> None:
        """Change the selected volume; equal gestures form one undo step."""
        s, v = self.document.need_segment(), self.document.need_volume()
        after = new(v)
        if after == v:
            return
        if after.name != v.name and after.name in {x.name for x in s.volumes}:
            raise RobotError(f"segment '{s.name}' has a volume '{after.name}' already")
        file = edits.replace_volume(self.document.file, s.name, v.name, after)
        self.document.change(file, Selection(s.name, after.name), gesture)

    def flip(self, axis: str) -> None:
        """Add the mirror image of the selected volume to its segment."""
        s, v = self.document.need_segment(), self.document.need_volume()
        file, name = edits.flip_volume(self.document.file, s.name, v.name, axis)
        self.document.change(file, Selection(s.name, name))

    def fit(self, source: str, shape: str) -> str:
        """Replace the selected segment's volumes by ones fitted to its link."""
        link = self.document.need_segment().link
        return self._fit(volumes_around(self.robot, link, source, shape, self.folder), source)

    def fit_mesh(self, name: str, content: bytes, shape: str, scale: float) -> str:
        """Fit to a mesh file in the link frame instead; `scale`: metres per unit."""
        if not (np.isfinite(scale) and scale > 0):
            raise RobotError(f"the unit of a mesh must be a positive number of metres, got {scale:g}")
        return self._fit(fit_volumes(mesh_points(name, content) * scale, shape, "fit"), name)

    def _fit(self, ssvs: tuple[Volume, ...], source: str) -> str:
        s = self.document.need_segment()
        rounded = tuple(  # rounded to a micrometre, but still enclosing the fitted points
            replace(v, radius=round(v.radius + 1.5e-6, 6), vertices=edits.points_of(np.array(v.vertices))) for v in ssvs
        )
        self.document.change(edits.with_segment(self.document.file, replace(s, volumes=rounded)))
        return f"{s.name}: {len(ssvs)} volume{'s' if len(ssvs) > 1 else ''} around {source}"

    def _add(self, s: Segment, ssv: Volume) -> None:
        self.document.change(edits.add_volume(self.document.file, s.name, ssv), Selection(s.name, ssv.name))

    # -- segments ---------------------------------------------------------------------------------------------

    def new_segment(self, link: str) -> None:
        """Add a segment with one volume to a link."""
        names = [s.name for s in expand(self.document.file.segments)]
        ssv = edits.new_volume("point", (), NEW_RADIUS, np.zeros(3))
        s = Segment(edits.free_name(link, names), link, (ssv,))
        self.document.change(edits.with_segment(self.document.file, s), Selection(s.name, ssv.name))

    def rename_segment(self, name: str, gesture: str = "") -> None:
        s = self.document.need_segment()
        file = edits.rename_segment(self.document.file, s.name, name)
        self.document.change(file, Selection(name, self.document.selection.volume), gesture)

    def delete_segment(self) -> str:
        s = self.document.need_segment()
        self.document.change(edits.without_segment(self.document.file, s.name))
        return f"segment {s.name} deleted"

    def to_other_side(self, axis: str) -> str:
        """Replace the opposite segment by a mirror image, once."""
        s = self.document.need_segment()
        file, name = edits.copy_to_other_side(self.document.file, s.name, axis)
        self.document.change(file)
        return f"{name} is the mirror image of {s.name} now"

    def stand_for_both(self, axis: str) -> None:
        """Let the selected segment define both sides, or one (empty)."""
        s = self.document.need_segment()
        self.document.change(edits.stand_for_both(self.document.file, s.name, axis))

    # -- pairs and postures -----------------------------------------------------------------------------------

    def find_pairs(self, sampling: Sampling | None = None) -> Callable[[], str]:
        """Search pairs by random postures, without changes; takes seconds.

        Returns:
            Function that replaces the present pairs by the result.
        """
        file = self.document.file
        choice = find_pairs(self.robot, file.segments, sampling)

        def take() -> str:
            if self.document.file.segments != file.segments:
                raise RobotError("the volumes were changed while pairs were searched: search again")
            self.document.change(replace(self.document.file, pairs=choice.pairs))
            self.choice = choice
            return f"{len(choice.pairs)} pairs to watch, {len(choice.left_out)} left out"

        return take

    def add_pair(self, first: str, second: str) -> None:
        self.document.change(edits.with_pair(self.document.file, SegmentPair(first, second)))

    def remove_pairs(self, first: str, second: str) -> None:
        self.document.change(edits.without_pairs(self.document.file, first, second))

    def set_posture(self, name: str) -> None:
        self.joints = self.robot.joints(self.robot.q(name)).copy()

    def set_joint(self, joint: str, angle: float) -> None:
        """Move a joint within its limits [rad]; mimic joints follow."""
        k = self.robot.joint_index(joint)
        self.joints[k] = np.clip(angle, self.robot.lower[k], self.robot.upper[k])
        self.robot.follow(self.joints)


def volumes_around(robot: Robot, link: str, source: str, shape: str, folder: Path | None = None) -> tuple[Volume, ...]:
    """Return volumes fitted to a link.

    Args:
        source: VISUALS: meshes of the URDF; INERTIA: solid ellipsoid of its mass and inertia.
        shape: shape of `fit_volumes`.

    Raises:
        UnknownNameError: if source, shape or link is unknown.
        RobotError: if the link has no visuals or no mass.
    """
    if source == INERTIA:
        return fit_link(robot, link, shape).volumes
    if source != VISUALS:
        raise UnknownNameError("source", source, (VISUALS, INERTIA))
    meshes = link_meshes(parse_urdf(robot.urdf, robot.name), folder)
    if link not in meshes:
        raise UnknownNameError("link", link, meshes, hint=f"(robot {robot.name})")
    if not meshes[link]:
        raise RobotError(f"{robot.name}: link '{link}' has no visual geometry to fit a volume to: use its inertia")
    return fit_volumes(np.vstack([vertices for (vertices, _), _ in meshes[link]]), shape, link)


def mesh_points(name: str, content: bytes) -> np.ndarray:
    """Return the vertices (n, 3) of a mesh file, in its units and frame.

    Args:
        name: file name; its suffix is the format.

    Raises:
        RobotError: if the format is unsupported or the mesh invalid.
    """
    kind = Path(name).suffix.lower()
    if kind not in MESH_TYPES:
        raise RobotError(f"{name}: a mesh must be one of {', '.join(MESH_TYPES)}")
    try:
        mesh = trimesh.load_mesh(io.BytesIO(content), file_type=kind[1:])
        points = np.asarray(mesh.vertices, dtype=float).reshape(-1, 3)
    except Exception as e:  # trimesh parsers raise arbitrary exceptions
        raise RobotError(f"{name}: not a readable mesh: {(str(e) or type(e).__name__).splitlines()[0]}") from None
    if not len(points) or not np.isfinite(points).all():
        raise RobotError(f"{name}: a mesh without vertices, or with some that are not finite")
    return points
