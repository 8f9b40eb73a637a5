"""Filmstrips: every moment whole in its picture, seen from before the dancer, and at its time."""

import io
import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.cli.main import main
from humanoid_control.errors import ConfigError
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.viewer.dance.dancer import advance, make_dancer
from humanoid_control.viewer.dance.stage import HELD
from humanoid_control.viewer.filmstrip import GAP, Moments, StripLayout, StripRow, film_strip, strip_times
from test.walking_person import walking_person

TIMES = [0.5, 1.5, 2.5]


@pytest.fixture(scope="module")
def body():
    return find_body_points(load_clip("dance").crop(7.0, 10.0))


@pytest.fixture(scope="module")
def row(body):
    dancer = make_dancer(body, "hrp2")
    return StripRow(dancer, Moments.of(dancer, TIMES))


def turned(body, angle):
    """A clip, turned about the vertical through its origin."""
    R = pin.rpy.rpyToMatrix(0.0, 0.0, angle)
    return replace(body, positions=body.positions @ R.T, missing=body.missing.copy())


def opened(png):
    image = pytest.importorskip("PIL.Image", reason="needs pillow").open(io.BytesIO(png))
    return np.asarray(image.convert("RGB")).astype(int)


def greens(picture):
    """Pixels of edges that are held."""
    return np.abs(picture - np.array(HELD)).max(axis=2) < 40


def test_moments_are_the_middles_of_equal_parts():
    assert strip_times(2.0, 6.0, 3) == pytest.approx([3.0, 5.0, 7.0])
    assert strip_times(0.0, 5.0, 1) == pytest.approx([2.5])


def test_a_moment_is_that_of_the_dance(body, row):
    dancer = make_dancer(body, "hrp2")
    left = 0.0
    for time, view, seen in zip(TIMES, row.moments.views, row.moments.times, strict=True):
        left = advance(dancer, left + time - dancer.time)
        assert seen == pytest.approx(time, abs=2.0 * dancer.dt)
        for link, X in dancer.view().poses.items():
            off = view.poses[link].inverse() * X
            assert np.linalg.norm(off.translation) < 0.02 and np.linalg.norm(pin.log3(off.rotation)) < 0.05, link


def test_the_moments_of_a_robot_without_legs_are_kept_apart(body):
    moments = Moments.of(make_dancer(body, "armar3"), TIMES[:2])
    first, second = ([X.translation for X in view.poses.values()] for view in moments.views)
    assert np.linalg.norm(np.array(first) - second, axis=1).max() > 0.05


@pytest.mark.parametrize(("width", "height"), [(600, None), (600, 250), (400, 500)])
def test_nothing_that_is_seen_is_cut_off(row, width, height):
    layout = StripLayout.of([row.extents, row.extents], width, height)
    assert layout.columns[0][0] == layout.rows[0][0] == 0 and layout.columns[-1][1] == width
    assert height is None or layout.rows[-1][1] == height
    for parts in (layout.columns, layout.rows):
        assert all(b[0] - a[1] == GAP for a, b in pairwise(parts))
    widest = 0.0
    for r, (top, bottom) in enumerate(layout.rows):
        for k, (left, right) in enumerate(layout.columns):
            camera = row.camera(k, *layout.middles[r, k], layout.pixels)
            row.painter.place([row.moments.views[k]], np.zeros((1, 3)))
            x, y, z = camera.R @ (row.painter.world - camera.eye).T
            u, v = 0.5 * (right - left) + camera.focal * x / z, 0.5 * (bottom - top) - camera.focal * y / z
            assert z.min() > 1.0 and u.min() > 1.0 and u.max() < right - left - 1.0
            assert v.min() > 1.0 and v.max() < bottom - top - 0.05 * layout.pixels, "and there is room for the time"
            widest = max(widest, (u.max() - u.min()) / (right - left), (v.max() - v.min()) / (bottom - top))
    assert widest > 0.7, "as large as there is room for"


def test_too_small_a_strip_is_refused(row):
    with pytest.raises(ConfigError, match="of 3 moments, a row for each of 2 robots"):
        StripLayout.of([row.extents] * 2, 100, None)
    with pytest.raises(ConfigError, match=r"would be \d+ pixels high"):
        StripLayout.of([row.extents] * 20, 4000, None)


def test_the_camera_stands_before_the_dancer_wherever_the_clip_looks(body, row):
    dancer = make_dancer(turned(body, 2.0), "hrp2")
    other = StripRow(dancer, Moments.of(dancer, TIMES))
    assert other.extents == pytest.approx(row.extents, abs=0.01)
    face = row.moments.views[0].poses[dancer.robot.root_link].rotation[:, 0]
    assert math.cos(math.radians(50)) < -face @ row.camera(0, 0.0, 0.0, 1.0).R[2], "it sees the face"


@pytest.mark.nightly
def test_who_turns_is_seen_to_turn():
    walk, _ = walking_person(2)
    angle = np.linspace(0.0, 1.6, walk.n_frames)
    R = np.array([pin.rpy.rpyToMatrix(0.0, 0.0, a) for a in angle])
    middle = walk.mid_hip[:, None]
    body = replace(walk, positions=np.einsum("tij,tkj->tki", R, walk.positions - middle) + middle)
    dancer = make_dancer(body, "hrp2")
    moments = Moments.of(dancer, [0.3, 2.4])
    assert moments.headings[1] - moments.headings[0] == pytest.approx(1.2, abs=0.25)
    assert moments.heading == pytest.approx(moments.headings.mean(), abs=0.02)
    row = StripRow(dancer, moments)
    first, last = (row.camera(k, 0.0, 0.0, 1.0).R for k in (0, 1))
    assert first == pytest.approx(last)


@pytest.mark.nightly
def test_a_row_for_each_robot_with_its_contacts(body):
    done = []
    picture = opened(film_strip([make_dancer(body, n) for n in ("hrp2", "lola")], TIMES, 500, None, done.append))
    assert done == [1, 2] and picture.shape[1] == 500
    half = picture.shape[0] // 2
    for part in (picture[:half], picture[half:]):
        dark = part.max(axis=2) < 120
        for k in range(3):
            assert dark[:, k * 500 // 3 : (k + 1) * 500 // 3].sum() > 200, "a robot"
        rows = np.nonzero(greens(part))[0]
        assert len(rows) > 20 and rows.min() > 0.6 * half, "edges that are held are at the feet"


def test_the_command_writes_one(tmp_path, capsys):
    path = tmp_path / "strip.png"
    args = ["--robot", "hrp2", "--moments", "2", "--at", "1", "--seconds", "1", "--width", "300", "--height", "200"]
    assert main(["picture", "--strip", "--whole-body", "-o", str(path), *args]) == 0
    assert "written" in capsys.readouterr().out
    assert opened(path.read_bytes()).shape == (200, 300, 3)
    assert list(tmp_path.iterdir()) == [path]
    path.unlink()
    assert main(["picture", "--strip", "--whole-body", "-o", str(path), "--moments", "9", "--width", "200"]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and "--width" in said and not list(tmp_path.iterdir())
