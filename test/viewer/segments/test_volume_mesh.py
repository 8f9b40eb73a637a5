"""The drawn surface of a volume against the distance from its core and the exact volume."""

import numpy as np
import pytest
import trimesh

from humanoid_control.collision.ssv.distance import distances
from humanoid_control.collision.ssv.fitting import swept_volume
from humanoid_control.viewer.meshes import volume_mesh
from humanoid_control.viewer.volume_editor.distances import INSIDE, STOPS, UNKNOWN, bar_html, color_of

RNG = np.random.default_rng(5)
CORES = [RNG.normal(size=(n, 3)) for n in (1, 2, 3) for _ in range(4)]


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


def test_colours_run_from_contact_to_the_largest_gap():
    assert color_of(0.0, 0.2) == STOPS[0][1] and color_of(0.2, 0.2) == color_of(5.0, 0.2) == STOPS[-1][1]
    assert color_of(-0.01, 0.2) == INSIDE and color_of(np.inf, 0.2) == UNKNOWN
    assert "smallest gap <b>20 mm</b>" in bar_html(0.2, 0.02) and "left:10.0%" in bar_html(0.2, 0.02)
    assert "overlap of <b>5 mm</b>: a &lt; b" in bar_html(0.2, -0.005, "a < b")
