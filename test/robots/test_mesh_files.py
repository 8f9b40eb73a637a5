"""Mesh files of others: damaged ones end another process, units are applied, strangers stay in their folder."""

import os
import signal

import numpy as np
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.robots.description import mesh_reader, meshes
from humanoid_control.robots.description.meshes import find_mesh, link_geometry, load_mesh
from humanoid_control.robots.description.urdf import parse_urdf

PLY = """ply
format ascii 1.0
element vertex 4
property float x
property float y
property float z
element face 4
property list uchar int vertex_indices
end_header
0 0 0
1 0 0
0 1 0
0 0 1
3 0 1 2
3 0 1 3
3 0 2 3
3 1 2 3
"""
DAMAGE = {
    "an index far out": ("3 0 1 2\n", "3 0 1 900000000\n"),
    "a negative index": ("3 0 1 2\n", "3 0 1 -5\n"),
    "a face without corners": ("3 0 1 2\n", "0\n"),
    "text where binary numbers are": ("ascii", "binary_little_endian"),
    "more vertices than any": ("vertex 4", "vertex 400000000"),
    "no end": ("element face 4", "element face 4000000000"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_mesh_does_not_end_this_process(case, tmp_path):
    path = tmp_path / "a.ply"
    path.write_text(PLY)
    assert len(load_mesh(path).faces) == 4
    (tmp_path / "b.ply").write_text(PLY.replace(*DAMAGE[case], 1))
    assert load_mesh(tmp_path / "b.ply") is None
    assert len(load_mesh(path).faces) == 4, "the next file is read"


def test_a_process_that_was_killed_is_started_again(tmp_path):
    path = tmp_path / "a.ply"
    path.write_text(PLY)
    assert load_mesh(path) is not None
    os.kill(mesh_reader._running[0].pid, signal.SIGKILL)
    assert len(load_mesh(path).faces) == 4


def test_a_mesh_that_takes_too_long_is_unreadable(tmp_path, monkeypatch):
    path = tmp_path / "a.ply"
    path.write_text(PLY)
    monkeypatch.setattr(mesh_reader, "LONGEST", 0.0)
    mesh_reader._end(mesh_reader._process())
    assert load_mesh(path) is None
    monkeypatch.undo()
    assert load_mesh(path) is not None


def collada(unit, half):
    corners = [f"{half * x} {half * y} {half * z}" for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    faces = "0 1 3 0 3 2 4 6 7 4 7 5 0 4 5 0 5 1 2 3 7 2 7 6 0 2 6 0 6 4 1 5 7 1 7 3"
    return f"""<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset>{unit}<up_axis>Z_UP</up_axis></asset><library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="a" count="24">{" ".join(corners)}</float_array><technique_common>
<accessor source="#a" count="8" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
<param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="12"><input semantic="VERTEX" source="#v" offset="0"/><p>{faces}</p></triangles></mesh></geometry>
</library_geometries><library_visual_scenes><visual_scene id="s"><node id="n"><instance_geometry url="#g"/></node>
</visual_scene></library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


ROBOT = """<robot name="box"><link name="a"><{tag}>
<geometry><mesh filename="{file}" scale="{scale}"/></geometry></{tag}>
</link></robot>"""


@pytest.mark.parametrize(
    ("unit", "half"), [('<unit name="u" meter="0.01"/>', 10), ("<unit meter='0.001'/>", 100), ("", 0.1)]
)
def test_the_unit_of_a_collada_file_is_applied(unit, half, tmp_path):
    (tmp_path / "box.dae").write_text(collada(unit, half))
    assert np.ptp(load_mesh(tmp_path / "box.dae").vertices, axis=0) == pytest.approx([0.2, 0.2, 0.2])
    tree = parse_urdf(ROBOT.format(tag="visual", file="box.dae", scale="1 1 2"), "box")
    (found,) = link_geometry(tree, tmp_path, "visual").values()
    assert np.ptp(found.vertices, axis=0) == pytest.approx([0.2, 0.2, 0.4])


def test_a_link_of_centimetres_is_refused_with_the_scale(tmp_path):
    (tmp_path / "box.dae").write_text(collada("", 10))
    tree = parse_urdf(ROBOT.format(tag="collision", file="box.dae", scale="1 1 1"), "box")
    with pytest.raises(RobotError, match=r"geometry of link 'a' .*spans 20 m: are its meshes in centimetres"):
        link_geometry(tree, tmp_path, "collision")


def test_a_strangers_robot_finds_no_mesh_outside_its_folder(tmp_path, monkeypatch):
    inside = tmp_path / "dropped" / "robot"
    inside.mkdir(parents=True)
    for place in (tmp_path / "secret.ply", inside / "own.ply"):
        place.write_text(PLY)
    (inside / "link.ply").symlink_to(tmp_path / "secret.ply")
    names = ("../../secret.ply", str(tmp_path / "secret.ply"), "package://x/../../secret.ply", "secret.ply", "link.ply")
    assert all(find_mesh(name, inside) for name in names)
    monkeypatch.setattr(meshes, "CONFINED", {tmp_path / "dropped"})
    assert [find_mesh(name, inside) for name in names] == [None] * 5
    assert find_mesh("own.ply", inside) and find_mesh("package://robot/own.ply", inside)


def test_a_folder_of_dropped_files_is_confined():
    from humanoid_control.viewer.dance.uploads import Uploads

    uploads = Uploads()
    assert uploads.folder in meshes.CONFINED
    uploads.close()
    assert uploads.folder not in meshes.CONFINED


@pytest.mark.parametrize("vertex", [None, np.nan, np.inf])
def test_a_mesh_without_triangles_or_with_places_that_are_none_is_not_read(tmp_path, vertex):
    corners = np.zeros((0 if vertex is None else 1, 3, 3), dtype="<f4")
    if vertex is not None:
        corners[0, 1:] = [[1, 0, 0], [0, vertex, 0]]
    rows = b"".join(bytes(12) + triangle.tobytes() + bytes(2) for triangle in corners)
    path = tmp_path / "odd.stl"
    path.write_bytes(bytes(80) + len(corners).to_bytes(4, "little") + rows)
    assert load_mesh(path) is None
