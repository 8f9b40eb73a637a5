"""`humanoid robots dh` and `humanoid robots map` as a user runs them."""

import json

import pytest

from humanoid_control.paths import share_dir
from humanoid_control.robots import load_robot


def one_line(result):
    assert result.returncode == 2, f"{result.stdout}\n{result.stderr}"
    lines = [line for line in result.stderr.strip().splitlines() if line.strip()]
    assert len(lines) == 1 and "Traceback" not in result.stderr, result.stderr
    return lines[0]


def test_dh_table_and_json(humanoid):
    shown = humanoid("robots", "dh", "we4rii")
    assert shown.returncode == 0, shown.stderr
    assert "l_girdle_elevation" in shown.stdout and "largest difference from the URDF" in shown.stdout
    table = json.loads(humanoid("robots", "dh", "hrp2", "--tip", "sternum", "--json").stdout)
    assert [row["joint"] for row in table["rows"]] == ["waist_rotation", "waist_flexion"]
    assert (table["base"], table["tip"]) == ("pelvis", "sternum")
    assert 0 <= max(table["difference_from_urdf"][k] for k in ("position_m", "rotation", "jacobian")) < 1e-9


def test_dh_mistakes(humanoid):
    assert "did you mean" in one_line(humanoid("robots", "dh", "hrp2", "--tip", "l_wirst"))
    assert "no joint moves 'mid_hip'" in one_line(humanoid("robots", "dh", "hrp2", "--tip", "mid_hip"))
    assert "did you mean" in one_line(humanoid("robots", "dh", "hrp2", "--base", "chst"))


def test_map_writes_a_file_with_which_the_robot_dances(humanoid):
    """A URDF alone, mapped, then retargeted: as well as with the file that belongs to it."""
    path = humanoid.folder / "unknown.urdf"
    path.write_text((share_dir() / "urdf" / "hrp2.urdf").read_text())
    refused = one_line(humanoid("retarget", "dance", "--robot", path.name))
    assert "lacks the points mid_hip, sternum" in refused and "robots map" in refused
    mapped = humanoid("robots", "map", path.name, "--json")
    assert mapped.returncode == 0, mapped.stderr
    found = json.loads(mapped.stdout)
    assert {p["point"] for p in found["points"]} >= {"mid_hip", "sternum", "l_wrist"}
    assert set(found["imitation_joints"]) == {
        load_robot("hrp2").joint_names[k] for k in load_robot("hrp2").imitation_joints
    }
    mean = {}
    for robot in (path.name, "hrp2"):
        row = json.loads(humanoid("retarget", "dance", "--speed", 3, "--robot", robot, "--json").stdout)["rows"][0]
        mean[robot] = row["mean"]
    assert mean[path.name] == pytest.approx(mean["hrp2"], abs=1)
    assert "exists already" in one_line(humanoid("robots", "map", path.name))


def test_map_mistakes(humanoid):
    assert "name a robot: humanoid robots map my_robot.urdf" in one_line(humanoid("robots", "map"))
    assert "URDF file not found" in one_line(humanoid("robots", "map", "nothing.urdf"))
    assert "exists already" in one_line(humanoid("robots", "map", "hrp2"))


def test_map_prints_the_soles_that_it_found(humanoid):
    path = humanoid.folder / "soles.urdf"
    path.write_text((share_dir() / "urdf" / "lola.urdf").read_text())
    shown = humanoid("robots", "map", path.name, "--bare")
    assert shown.returncode == 0, shown.stderr
    assert "soles, in the frame of the link" in shown.stdout and "its lowest" in shown.stdout
    assert all(f"{side}_foot" in shown.stdout for side in "lr")
