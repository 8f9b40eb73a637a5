"""Triangles of visuals and shapes against the primitives they are made from; of volumes against their exact surface."""

import numpy as np
import pytest
import trimesh

from humanoid_control.collision.shapes import Box, Capsule, Cylinder, Ellipsoid, EllipticCapsule, Sphere
from humanoid_control.collision.ssv.distance import volume_distances as distances
from humanoid_control.collision.ssv.fitting import swept_volume
from humanoid_control.robots import CATALOGUE, load_robot
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.viewer.meshes import link_meshes, shape_mesh, volume_mesh
from test.robots_under_test import by_kind

RNG = np.random.default_rng(5)
CORES = [RNG.normal(size=(n, 3)) for n in (1, 2, 3) for _ in range(4)]
EXPECTED = [  # shape, exact volume, exact extent along x y z
    (Sphere((0.1, 0, 0.2), 0.1), 4 / 3 * np.pi * 1e-3, (0.2, 0.2, 0.2)),
    (Capsule((0, 0, -0.1), (0, 0, 0.2), 0.05), np.pi * 0.0025 * 0.3 + 4 / 3 * np.pi * 1.25e-4, (0.1, 0.1, 0.4)),
    (Cylinder((0, -0.1, 0), (0, 0.1, 0), 0.07), np.pi * 0.0049 * 0.2, (0.14, 0.2, 0.14)),
    (Box((0, 0, 0.3), (0.1, 0.2, 0.3)), 0.006, (0.1, 0.2, 0.3)),
    (Ellipsoid((0, 0, 0), (0.1, 0.2, 0.3)), 4 / 3 * np.pi * 0.006, (0.2, 0.4, 0.6)),
    (
        EllipticCapsule((0, 0, 0.4), 0.19, 0.16, 0.05, 0.22),
        np.pi * 0.19 * 0.16 * (0.22 + 4 / 3 * 0.05),
        (0.32, 0.38, 0.32),
    ),
]


@pytest.mark.parametrize(("shape", "volume", "extent"), EXPECTED, ids=[e[0].kind for e in EXPECTED])
def test_collision_shapes_have_their_size(shape, volume, extent):
    mesh = trimesh.Trimesh(*shape_mesh(shape))
    mesh.merge_vertices()
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(volume, rel=0.05)
    assert mesh.extents == pytest.approx(extent, rel=0.02)


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_every_robot_has_a_body_of_its_height(name):
    robot = load_robot(name, "fixed")
    meshes, poses = link_meshes(parse_urdf(robot.urdf, name)), robot.link_poses(robot.q("zero"))
    points = [
        vertices @ poses[link].rotation.T + poses[link].translation
        for link, groups in meshes.items()
        for (vertices, _), _ in groups
    ]
    p = np.vstack(points)
    lift = robot.X_world_root.translation[2] - robot.file.root_height["zero"]
    assert p[:, 2].min() == pytest.approx(lift, abs=0.02)
    assert np.ptp(p[:, 2]) == pytest.approx(robot.height, rel=0.06)
    assert all(np.isfinite(p).ravel())
    colors = {color for groups in meshes.values() for _, color in groups}
    assert len(colors) >= 3


URDF = """<robot name="r"><material name="m"><color rgba="1 0 0 1"/></material><link name="a">
  <visual><geometry><mesh filename="package://pkg/part.stl" scale="2 2 2"/></geometry><material name="m"/></visual>
  <visual><geometry><mesh filename="gone.stl"/></geometry></visual></link></robot>"""


def test_mesh_files_beside_the_urdf_are_found_and_missing_ones_left_out(tmp_path):
    trimesh.creation.box((0.1, 0.1, 0.1)).export(tmp_path / "part.stl")
    (((vertices, _), color),) = link_meshes(parse_urdf(URDF, "r"), tmp_path)["a"]
    assert np.ptp(vertices, axis=0) == pytest.approx([0.2] * 3)
    assert color == (255, 0, 0)


@pytest.mark.parametrize("core", CORES, ids=[f"{len(c)}_vertices_{k % 4}" for k, c in enumerate(CORES)])
def test_the_surface_is_at_the_radius_closed_and_outward(core):
    radius = 0.3
    vertices, faces = volume_mesh(core, radius)
    count = len(vertices)
    zero = np.zeros(count)
    cores = np.broadcast_to(core, (count, *core.shape))
    d = distances("p" + "plt"[len(core) - 1], vertices[:, None], zero, cores, zero).distance
    assert d == pytest.approx(radius, abs=1e-9)
    mesh = trimesh.Trimesh(vertices, faces)
    mesh.merge_vertices()
    mesh.update_faces(mesh.nondegenerate_faces())
    assert mesh.is_watertight and mesh.is_winding_consistent
    assert 0.96 < mesh.volume / swept_volume(core, radius) < 1.0


def test_triangles_without_area_are_drawn_as_lines():
    flat = np.array([[0.0, 0, 0], [0, 0, 1], [0, 0, 3]])
    assert np.ptp(volume_mesh(flat, 0.1)[0], axis=0) == pytest.approx([0.2, 0.2, 3.2], rel=0.02)
    assert np.ptp(volume_mesh(np.zeros((3, 3)), 0.1)[0], axis=0) == pytest.approx([0.2] * 3, rel=0.02)
