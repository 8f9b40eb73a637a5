"""The study of humanoids: every robot is an outcome, whatever becomes of it, and the page shows what was measured."""

from __future__ import annotations

import json

import numpy as np
import pytest

from evidence.studies.humanoids import REFUSED, UPPER, WHOLE, run_study
from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.evaluation import measure_ground_contact
from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import retarget_whole_body
from humanoid_control.robots import load_robot
from humanoid_control.terminal import ReportTable

ONE_ARM = """<robot name="stump">
<link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>"""


@pytest.mark.nightly
def test_robots_that_move_that_stand_and_that_fail_are_all_in_the_table(tmp_path):
    bad = tmp_path / "stump.urdf"
    bad.write_text(ONE_ARM)
    kept = tmp_path / "kept.jsonl"
    report = run_study(robot=["hrp2", "armar3", str(bad)], clips=["dance"], resume=kept, workers=1)
    hrp2, armar3, stump = report.data["rows"]
    assert (hrp2["moved"], armar3["moved"], stump["moved"]) == (WHOLE, UPPER, REFUSED)
    assert "lacks the points" in stump["why"] and hrp2["why"] == ""
    assert hrp2["soles"] == 2 and armar3["soles"] == 1 and stump["joints"] == 1

    robot = load_robot("hrp2", "floating")
    motion = retarget_whole_body(load_body_points("dance"), robot)
    theirs = measure_ground_contact(robot, motion.q(), motion.contacts, motion.rate).row()
    assert {key: hrp2[key] for key in theirs} == pytest.approx(theirs)
    assert hrp2["error_cm"] == pytest.approx(100 * motion.errors[:, :7].mean(), abs=0.01)
    inside = np.all((motion.positions <= robot.upper) & (motion.positions >= robot.lower))
    assert (hrp2["beyond_range_rad"] == 0) == inside and hrp2["beyond_speed_rad_s"] == 0

    page = report.pictures()["humanoids.md"]
    robots, moved = (part for part in report.parts if isinstance(part, ReportTable))
    assert [row[0] for row in robots.rows] == ["hrp2", "armar3", str(bad)]
    assert moved.rows[0][1] == WHOLE and moved.rows[0][-2] == "kept" and moved.rows[2][1] == REFUSED
    assert "| hrp2 | whole body |" in page and "1 of 3 move their whole body, 1 of 3 runs rejected." in page
    assert len(kept.read_text().splitlines()) == 3
    row = json.loads(kept.read_text().splitlines()[0])
    row["outcome"]["kg"] = 1234.5
    kept.write_text(json.dumps(row) + "\n")
    again = run_study(robot=["hrp2"], clips=["dance"], resume=kept, workers=1)
    assert again.data["rows"][0]["kg"] == 1234.5, "what is kept is not done again"


def test_nothing_to_study_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("evidence.studies.humanoids.found_humanoids", list)
    with pytest.raises(ConfigError, match="humanoid robots list"):
        run_study()
    with pytest.raises(RobotError, match="URDF file not found:"):
        run_study(robot=[str(tmp_path / "nowhere.urdf")])
