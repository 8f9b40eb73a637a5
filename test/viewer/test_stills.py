"""The row of robots with their volumes: one scale for all, and what its bar says."""

import socket

import numpy as np
import pytest

from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.retargeting import scale_to_robot
from humanoid_control.robots import load_robot
from humanoid_control.robots.volumes import volumes_of
from humanoid_control.viewer.stills import NEAREST_OPACITY, OTHER_OPACITY, CollisionRow, solved_moment
from humanoid_control.viewer.volume_editor.distances import (
    INSIDE,
    STOPS,
    UNKNOWN,
    EditorDistances,
    bar_html,
    color_of,
)
from humanoid_control.viewer.volume_editor.scene import MARK


def test_all_robots_share_one_scale_and_the_bar_marks_the_smallest_gap():
    lola = load_robot("lola", "fixed")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    row, largest, smallest = CollisionRow(port), [], []
    try:
        for robot in (lola, load_robot("we4rii", "fixed")):
            model, joints = volumes_of(robot, by_link=True), robot.postures["neutral"]
            row.add(robot, model, joints)
            distances = EditorDistances(robot).at(model, joints)
            largest.append(distances.largest)
            smallest.append(distances.smallest.distance)
        row.draw(2.0)
        assert row.largest == max(largest) and largest[0] != largest[1]
        script = row.bar_script(500)
        assert f"<b>{1000 * min(smallest):.0f} mm</b>" in script and f">{1000 * max(largest):.0f}</span>" in script
        assert len(script.splitlines()) == 1
        handles = row.row.server.scene._handle_from_node_name
        for robot, model, distances, _, place in row._robots:
            gap, mark = distances.smallest, handles[f"/mark/{robot.name}"]
            assert gap.distance == min(g.distance for g in distances.gaps)
            assert mark.position == pytest.approx((gap.point_1 + gap.point_2) / 2 + place, abs=1e-6)
            assert tuple(mark.color) == MARK
            of_gap = {gap.volume_1, gap.volume_2}
            for k, d in enumerate(distances.volumes):
                mesh = handles[f"/volumes/{robot.name}/{k}"]
                known = bool(np.isfinite(d))
                assert tuple(mesh.color) == (color_of(d, row.largest) if known else UNKNOWN)
                assert mesh.opacity == (NEAREST_OPACITY if known else OTHER_OPACITY)
                if model.volume_name(k) in of_gap:
                    assert known and NEAREST_OPACITY > OTHER_OPACITY
        for robot in ("lola", "we4rii"):
            names = {n for n in row.row.server.scene._handle_from_node_name if n.startswith(f"/volumes/{robot}/")}
            assert len(names) == len(volumes_of(load_robot(robot), by_link=True).arrays.radii)
    finally:
        row.stop()


@pytest.mark.parametrize("browser", [None, "/usr/bin/chromium"], ids=["no browser", "a browser"])
def test_the_wrong_kind_of_picture_is_refused_before_a_browser_is_looked_for(browser, capsys, monkeypatch):
    """A user without Chromium installs it for a command that is right, not to learn that it was wrong."""
    from humanoid_control.cli.main import main
    from humanoid_control.viewer import browser as viewer_browser

    monkeypatch.setattr(viewer_browser, "find_chromium", lambda: browser)
    assert main(["picture", "--collision", "-o", "x.jpg"]) == 2
    assert capsys.readouterr().err == "humanoid picture: -o must be a .png file, got x.jpg\n"
    with pytest.raises(SystemExit):
        main(["picture", "--colision"])
    assert "did you mean --collision" in capsys.readouterr().err


def test_a_machine_without_a_browser_is_told_what_to_install(capsys, monkeypatch, tmp_path):
    from humanoid_control.cli.main import main

    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["picture", "--collision", "-o", str(tmp_path / "x.png")]) == 2
    assert capsys.readouterr().err == "humanoid picture: no Chromium found: install the package 'chromium'\n"
    assert not (tmp_path / "x.png").exists()


def test_colours_run_from_contact_to_the_largest_gap():
    assert color_of(0.0, 0.2) == STOPS[0][1] and color_of(0.2, 0.2) == color_of(5.0, 0.2) == STOPS[-1][1]
    assert color_of(-0.01, 0.2) == INSIDE and color_of(np.inf, 0.2) == UNKNOWN
    assert "smallest gap <b>20 mm</b>" in bar_html(0.2, 0.02) and "left:10.0%" in bar_html(0.2, 0.02)
    assert "overlap of <b>5 mm</b>: a &lt; b" in bar_html(0.2, -0.005, "a < b")
    shares = [share for share, _ in STOPS]
    assert shares[0] == 0 and shares[-1] == 1 and (np.diff(shares) > 0).all()
    assert [color_of(0.2 * share, 0.2) for share in shares] == [color for _, color in STOPS]
    assert color_of(0.0, 0.0) == STOPS[0][1] and "left:0.0%" in bar_html(0.0, 0.0), "all touch"


def test_the_dancer_of_a_picture_stands_in_the_middle_with_all_of_its_limbs():
    body, robot = find_body_points(load_clip("dance").crop(0, 2)), load_robot("wabian2", "fixed")
    bones, (joints,) = solved_moment([robot], body, 1.0)
    scaled = scale_to_robot(body, robot)
    points = scaled.body[round(1.0 * body.rate)]
    hips = points[[scaled.body_names.index(f"{side}_hip") for side in "lr"]]
    points = np.concatenate([points, hips.mean(axis=0, keepdims=True)])
    apart = np.linalg.norm(bones[:, None, :2] - points[None, :, :2], axis=2)
    assert apart.min(axis=1).max() < 1e-9, "each bone ends in points of the dancer"
    ends = [f"{side}_{point}" for side in "lr" for point in ("wrist", "ankle")]
    assert set(np.argmin(apart, axis=1)) >= {scaled.body_names.index(end) for end in ends}
    assert ((joints >= robot.lower) & (joints <= robot.upper)).all()
