"""Films: the rasterizer against rays that are cast one by one, and files that ffmpeg reads back."""

import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from humanoid_control.cli.main import main
from humanoid_control.errors import ConfigError
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.viewer.dance.dancer import make_dancer
from humanoid_control.viewer.film import Film, FilmSize, vertex_normals, write_film
from humanoid_control.viewer.raster import (
    SHADOW,
    Canvas,
    Lines,
    Surfaces,
    look_at,
    paint_floor,
    paint_lines,
    paint_shadows,
    paint_surfaces,
    place_surfaces,
)

W, H = 96, 64
LIGHT = np.array([0.45, -0.35, 0.82]) / np.linalg.norm([0.45, -0.35, 0.82])


def scene_of(triangles, colors):
    """Each triangle (3, 3) by itself, in the frame of one body."""
    vertices = np.concatenate(triangles)
    faces = np.arange(len(vertices)).reshape(-1, 3)
    return Surfaces(
        vertices, vertex_normals(vertices, faces), np.zeros(len(vertices), np.int64), faces, np.array(colors, float)
    )


def painted(surfaces, camera, floor=True, R=None, p=(0.0, 0.0, 0.0)):
    canvas, n = Canvas.new(W, H), len(surfaces.vertices)
    world, normal = np.empty((n, 3)), np.empty((n, 3))
    place_surfaces(surfaces, (np.eye(3) if R is None else R)[None], np.array([p]), world, normal)
    if floor:
        paint_floor(camera, canvas)
        paint_shadows(camera, LIGHT, surfaces.faces, world, canvas)
    paint_surfaces(camera, LIGHT, surfaces, world, normal, canvas)
    return canvas, world


def rays(camera):
    """Directions (H, W, 3) through the middles of the pixels, 1 ahead."""
    v, u = np.mgrid[0:H, 0:W] + 0.5
    own = np.stack([(u - W / 2) / camera.focal, (H / 2 - v) / camera.focal, np.ones_like(u)], axis=-1)
    return own @ camera.R


def cast(triangle, camera):
    """Depth (H, W) at which rays meet a triangle, by Moeller and Trumbore; infinite where they miss it."""
    d, (a, b, c) = rays(camera), triangle
    e1, e2 = b - a, c - a
    p = np.cross(d, e2)
    det = p @ e1
    s = camera.eye - a
    with np.errstate(all="ignore"):
        u, q = (p @ s) / det, np.cross(s, e1)
        v, t = (d @ q) / det, (e2 @ q) / det
        hit = (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0)
    return np.where(hit, t, np.inf)


def test_triangles_are_seen_where_rays_meet_them_the_nearest_first():
    rng = np.random.default_rng(3)
    triangles = [rng.uniform([-1, -1.5, 0.2], [1, 1.5, 2.0], (3, 3)) for _ in range(40)]
    colors = rng.uniform(0.2, 1.0, (40, 3))
    camera = look_at(np.array([5.0, 0.4, 1.4]), np.array([0.0, 0.0, 1.0]), 0.7, H)
    canvas, _ = painted(scene_of(triangles, colors), camera, floor=False)
    depth = np.array([cast(t, camera) for t in triangles])
    nearest, first = depth.min(axis=0), depth.argmin(axis=0)
    seen = canvas.depth > 0
    assert (seen != np.isfinite(nearest)).mean() < 2e-3, "but for edges through the middle of a pixel"
    both = seen & np.isfinite(nearest)
    assert both.sum() > 1000
    assert 1.0 / canvas.depth[both] == pytest.approx(nearest[both], rel=1e-3)
    ratio = canvas.color[both] / colors[first[both]]
    assert (np.ptp(ratio, axis=1) < 1e-3).mean() > 0.995, "the colour is the triangle's, darker or brighter"
    backwards, _ = painted(scene_of(triangles[::-1], colors[::-1]), camera, floor=False)
    assert (np.abs(backwards.color - canvas.color).max(axis=2) > 1e-3).mean() < 2e-3, "in whatever order they come"


def test_a_body_that_is_moved_is_seen_where_it_is():
    triangle = np.array([[0.0, -0.3, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 0.6]])
    turn, p = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), np.array([0.3, 0.2, 0.8])
    camera = look_at(np.array([3.0, -3.0, 1.4]), np.array([0.0, 0.0, 1.0]), 0.7, H)
    canvas, world = painted(scene_of([triangle], [[1, 0, 0]]), camera, floor=False, R=turn, p=p)
    assert world == pytest.approx(triangle @ turn.T + p)
    assert ((canvas.depth > 0) != np.isfinite(cast(world, camera))).sum() <= 2


def test_the_floor_is_where_it_is_and_shadows_lie_where_the_light_puts_them():
    height, half = 1.0, 0.4
    square = np.array([[-half, -half, height], [half, -half, height], [half, half, height], [-half, half, height]])
    camera = look_at(np.array([0.4, 0.0, 9.0]), np.array([0.0, 0.0, 0.0]), 0.5, H)
    canvas, _ = painted(scene_of([square[[0, 1, 2]], square[[0, 2, 3]]], [[1, 0, 0]] * 2), camera)
    plain = Canvas.new(W, H)
    paint_floor(camera, plain)
    d = rays(camera)
    t = -camera.eye[2] / d[..., 2]
    assert 1.0 / plain.depth == pytest.approx(t, rel=1e-4)
    at = camera.eye + t[..., None] * d
    moved = at[..., :2] + height * LIGHT[:2] / LIGHT[2]  # where the light to this place of the floor passes the square
    dark = (np.abs(moved) < half).all(axis=-1)
    floor = canvas.depth == plain.depth
    wrong = floor & (canvas.shadow != dark)
    assert dark.sum() > 100 and wrong.sum() < 0.1 * dark.sum(), "but for its edges"
    both = floor & canvas.shadow
    assert canvas.color[both] == pytest.approx(SHADOW * plain.color[both], rel=1e-5)


def test_lines_are_as_thick_as_they_are_and_hidden_by_what_is_before_them():
    camera = look_at(np.array([4.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0]), 0.7, H)
    wall = np.array([[0.5, 0.0, 0.0], [0.5, 3.0, 0.0], [0.5, 0.0, 3.0]])
    canvas, _ = painted(scene_of([wall], [[0.2, 0.2, 0.2]]), camera, floor=False)
    line = Lines(np.array([[[0.0, -1.0, 1.0], [0.0, 1.0, 1.0]]]), np.array([0.1]), np.array([[0, 1.0, 0]]), np.ones(1))
    paint_lines(camera, line, canvas)
    green = canvas.color[..., 1] > 0.5
    columns = np.nonzero(green.any(axis=0))[0]
    assert columns.max() <= W // 2 + 1, "the wall hides the other half"
    middle = green[:, W // 4 + 2 : W // 2 - 4].sum(axis=0)
    assert middle == pytest.approx(2 * 0.1 * camera.focal / 4.0, abs=1.0)
    behind = Lines(line.ends + [10.0, 0.0, 0.0], line.radii, line.colors, line.opacities)
    before = canvas.color.copy()
    paint_lines(camera, behind, canvas)
    assert np.array_equal(before, canvas.color), "what is behind the camera is not seen"


@pytest.fixture(scope="module")
def body():
    return find_body_points(load_clip("dance").crop(0.0, 3.0))


def test_dancers_are_seen_side_by_side_above_the_floor(body):
    pytest.importorskip("PIL", reason="needs pillow")
    size = FilmSize(320, 200, 30.0)
    film = Film([make_dancer(body, name) for name in ("hrp2", "lola")], size)
    picture = film.picture()
    assert picture.shape == (200, 320, 3) and picture.dtype == np.uint8
    dark = (picture.max(axis=2) < 120).sum(axis=0)
    left, right = dark[:160].sum(), dark[160:].sum()
    assert min(left, right) > 150 and dark[150:170].sum() < 0.1 * min(left, right), "one on each side"
    world = film.painter.world
    assert world[:, 2].min() > -5e-3 and world[:, 2].max() > 1.2
    assert np.array_equal(film.picture(), picture), "nothing but the dance moves it"


def test_what_no_film_can_be_is_refused(tmp_path):
    for size, name, says in (
        (FilmSize(321, 200), "a.mp4", "even number"),
        (FilmSize(320, 8), "a.mp4", "even number"),
        (FilmSize(), "a.gif", "must be a .mp4"),
    ):
        with pytest.raises(ConfigError, match=says):
            size.check(tmp_path / name)


def test_a_film_has_its_size_and_length(tmp_path, body, capsys):
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="needs imageio-ffmpeg")
    path = tmp_path / "a.mp4"
    size = ["--width", "160", "--height", "120"]
    args = ["--robot", "hrp2", "--whole-body", "--fps", "20", "--seconds", "0.5", "--at", "1"]
    assert main(["picture", "--video", str(path), *args, *size]) == 0
    assert "written" in capsys.readouterr().out
    frames = ffmpeg.read_frames(str(path))
    about = next(frames)
    assert about["size"] == (160, 120) and about["fps"] == 20
    pictures = [np.frombuffer(f, np.uint8).reshape(120, 160, 3).astype(int) for f in frames]
    assert len(pictures) == 10
    assert np.abs(pictures[-1] - pictures[0]).max() > 60, "it dances"
    assert list(tmp_path.iterdir()) == [path]


def test_a_film_that_is_interrupted_leaves_nothing(tmp_path, body):
    pytest.importorskip("imageio_ffmpeg", reason="needs imageio-ffmpeg")
    path, dancer = tmp_path / "a.mp4", make_dancer(body, "hrp2")
    path.write_bytes(b"an older film")

    def stop(done):
        if done > 0.1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_film(path, [dancer], 1.0, FilmSize(160, 120, 20.0), stop)
    assert path.read_bytes() == b"an older film" and list(tmp_path.iterdir()) == [path]


@pytest.mark.nightly
@pytest.mark.slow
def test_ctrl_c_ends_the_command_and_leaves_nothing(tmp_path):
    pytest.importorskip("imageio_ffmpeg", reason="needs imageio-ffmpeg")
    command = "from humanoid_control.cli.main import main; import sys; sys.exit(main())"
    args = ["picture", "--video", str(tmp_path / "a.mp4"), "--robot", "hrp2", "--whole-body"]
    process = subprocess.Popen([sys.executable, "-c", command, *args], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while not list(tmp_path.glob(".writing_*/a.mp4")):
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(30) == 130 and not process.stderr.read().strip()
    assert not list(tmp_path.iterdir())


def test_normals_point_out_of_a_sphere():
    trimesh = pytest.importorskip("trimesh")
    ball = trimesh.creation.icosphere(subdivisions=3)
    normals = vertex_normals(np.asarray(ball.vertices), np.asarray(ball.faces))
    assert (normals * ball.vertices).sum(axis=1).min() > math.cos(0.05)
