"""The picture of Dill: its cylinders, their places, and what the command refuses."""

import numpy as np

from evidence.benchmarks.branched_system import LENGTH, RADIUS, DillView, cylinder_mesh, laid_out, size_color
from humanoid_control.cli.main import main


def test_a_link_is_a_closed_cylinder_seen_from_outside():
    vertices, faces = cylinder_mesh()
    a, b, c = vertices[faces].transpose(1, 0, 2)
    volume = np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6
    assert 0.93 < volume / (np.pi * RADIUS**2 * LENGTH) < 1.0
    assert vertices[:, 0].min() == 0 and np.isclose(vertices[:, 0].max(), LENGTH)


def test_colours_go_from_blue_to_red_and_a_scene_is_laid_along_x():
    assert np.argmax(size_color(1, 7)) == 2 and np.argmax(size_color(7, 7)) == 0
    points = np.random.default_rng(0).normal(size=(200, 3)) * [1.0, 5.0, 3.0]
    turn = laid_out(points)
    spread = (points @ turn.T).std(axis=0)
    assert np.isclose(np.linalg.det(turn), 1) and spread[0] > spread[2] > spread[1]


def test_all_links_stand_above_the_floor():
    view = DillView(5, 8397)
    try:
        view.set_camera(1.5)
        handles = [h for n, h in view.server.scene._handle_from_node_name.items() if n.startswith("/link")]
        assert len(handles) == 32 and all(h.position[2] > 0 for h in handles)
    finally:
        view.stop()


def test_a_level_that_does_not_exist_is_refused_in_one_line(capsys, tmp_path):
    assert main(["picture", "--dill", "9", "-o", str(tmp_path / "d.png"), "--port", "8398"]) == 2
    said = capsys.readouterr()
    assert "--dill must be between 0 and 8, got 9" in said.err + said.out and not list(tmp_path.iterdir())
