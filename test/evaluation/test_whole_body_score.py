"""The whole-body score: what it measures beside brute force, and its tables, page and files."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.evaluation import contact_agreement, measure_clip
from humanoid_control.evaluation.clip_quality import MOST_DYNAMICS, ClipMeasures
from humanoid_control.evaluation.mesh_contact import mesh_contacts
from humanoid_control.evaluation.report.whole_body_report import (
    joint_table,
    whole_body_json,
    whole_body_notes,
    whole_body_page,
    whole_body_tables,
    whole_body_verdicts,
    write_whole_body,
)
from humanoid_control.evaluation.whole_body_score import score_motion, score_whole_body
from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import WholeBodyTask
from humanoid_control.robots import load_robot


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "floating")


@pytest.fixture(scope="module", autouse=True)
def meshes():
    """Our robots have none: their primitive shapes, by coal, are taken for meshes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("humanoid_control.evaluation.whole_body_score.geometry_with_meshes", lambda robot: "collision")
        patch.setattr("humanoid_control.evaluation.whole_body_score.MOST_MESHES", 200)
        yield


@pytest.fixture(scope="module")
def task(robot):
    return WholeBodyTask.of(load_body_points("dance").cropped(300), robot)


@pytest.fixture(scope="module")
def score(task):
    told = []
    found = score_whole_body(task, progress=told.append)
    assert told[-1] == 1.0 and told == sorted(told)
    return found


# -------- Measures


def test_contacts_agree_as_they_are_counted():
    robot = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]], dtype=bool)
    person = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 1], [1, 1, 1, 1]], dtype=bool)
    like = contact_agreement(robot, person)
    assert (like.frames, like.precision, like.recall) == (0.5, 1.0, 7 / 9)
    back = contact_agreement(person, robot)
    assert (back.frames, back.precision, back.recall) == (0.5, 7 / 9, 1.0)
    never = contact_agreement(np.zeros((3, 4), dtype=bool), np.zeros((3, 4), dtype=bool))
    assert never.frames == 1.0 and np.isnan(never.precision) and np.isnan(never.recall)
    with pytest.raises(ConfigError, match="differ in shape"):
        contact_agreement(robot, person[:2])


def test_meshes_count_for_the_grade_and_shapes_do_not_hide_them(robot, task):
    """Arms at random in every fifth frame: the share of the frames that were looked at, by coal on triangles."""
    motion, rng = task.solve(), np.random.default_rng(4)
    q = motion.trajectory.positions.copy()
    arms = robot.imitation_joints
    q[::6, arms] = rng.uniform(robot.lower[arms], robot.upper[arms], (len(q[::6]), len(arms)))
    tangled = replace(motion.trajectory, positions=q)
    found = score_motion("x", robot, tangled)
    assert found.mesh_step == 2 and len(q) == 300
    looked = mesh_contacts(robot, q[::2])
    assert (
        found.quality.numbers["meshes_percent"] == pytest.approx(100 * looked.share, abs=1e-3) and looked.share > 0.02
    )
    assert found.quality.grades["meshes_percent"] > "A"
    assert "meshes_percent" not in measure_clip(robot, tangled).numbers, "what was not looked at is not told"
    (table,) = (t for t in whole_body_tables([found]) if t.title == "self-collision")
    assert f"{len(q[::2])}, every 2." in table.rows[0] and " - ".join(looked.pairs[0]) in table.rows[0]


def test_a_robot_whose_meshes_are_not_found_says_so(robot, task, score, monkeypatch):
    def lost(*_):
        raise RobotError("hrp2: the mesh file a.stl is not found")

    monkeypatch.setattr("humanoid_control.evaluation.whole_body_score.mesh_contacts", lost)
    found = score_motion("x", robot, task.solve().trajectory)
    assert "meshes_percent" not in found.quality.numbers and found.measures.meshes is None
    assert any("a.stl is not found" in note for note in found.notes)
    (table,) = (t for t in whole_body_tables([found]) if t.title == "self-collision")
    assert table.columns == ["robot", "shapes touch %", "nearest mm"]
    beside = next(t for t in whole_body_tables([found, score]) if t.title == "self-collision")
    assert beside.rows[0][-3:] == ["-", "-", "-"] and beside.rows[1][-2] == "150, every 2."


def test_numbers_of_balance_and_torque_are_those_of_the_frames(score, robot):
    d, n = score.measures.dynamics, score.quality.numbers
    held = score.motion.contacts[d.frames].any(axis=1)
    assert len(d.frames) == len(score.motion.positions) - 2 < MOST_DYNAMICS
    assert n["balanced_percent"] == pytest.approx(100 * np.mean(d.outside[held] < 1e-6), abs=1e-3)
    assert n["com_outside_cm"] == pytest.approx(100 * d.outside[held].max(), abs=1e-3)
    worst = np.abs(d.torque / robot.effort).max(axis=1)
    assert n["torque_p99_percent"] == pytest.approx(100 * np.percentile(worst, 99), abs=1e-2)
    assert n["torque_beyond_percent"] == pytest.approx(100 * np.mean(worst > 1), abs=1e-3)
    force = np.linalg.norm(d.missing[held, :3], axis=1).mean() / (9.81 * robot.mass)
    assert n["missing_force_percent"] == pytest.approx(100 * force, abs=1e-3)
    assert 0 < n["balanced_percent"] < 100 and n["com_outside_cm"] > 1, "a dance is not always over its feet"
    t = score.motion
    like = contact_agreement(t.contacts, score.measures.person)
    assert n["contacts_agree_percent"] == pytest.approx(100 * like.frames, abs=1e-3)
    assert n["contact_precision_percent"] == pytest.approx(100 * like.precision, abs=1e-3)
    assert n["contact_recall_percent"] == pytest.approx(100 * like.recall, abs=1e-3)
    assert like.recall < like.precision, "a robot's contact begins when its sole is down"


@pytest.mark.nightly
def test_what_is_not_known_has_no_number(robot, score, monkeypatch):
    monkeypatch.setattr(robot, "effort_known", np.zeros(robot.n, dtype=bool))
    found = score_motion("x", robot, score.motion)
    assert "balanced_percent" in found.quality.numbers
    assert "torque_p99_percent" not in found.quality.numbers and found.most_loaded() is None
    assert any("no torque limits" in note for note in found.notes)
    assert "contacts_agree_percent" not in found.quality.numbers, "nothing is known of the person"
    dynamics = whole_body_tables([found])[-1]
    assert not any("torque" in column for column in dynamics.columns)
    monkeypatch.setattr(type(robot), "mass", property(lambda self: 0.0))
    bare = score_motion("x", robot, score.motion)
    assert "balanced_percent" not in bare.quality.numbers and any("no masses" in note for note in bare.notes)
    assert not any("balance" in t.title for t in whole_body_tables([bare]))
    assert "balance, and torques" not in whole_body_page([bare])


def test_long_clips_have_dynamics_of_every_nth_frame(robot, score, monkeypatch):
    monkeypatch.setattr("humanoid_control.evaluation.clip_quality.MOST_DYNAMICS", 60)
    some = ClipMeasures(robot, score.motion).dynamics
    assert list(np.unique(np.diff(some.frames))) == [5] and len(some.frames) <= 60


def test_a_motion_of_others_has_no_errors(robot, score):
    theirs = replace(score.motion, errors=np.full_like(score.motion.errors, np.nan))
    numbers = measure_clip(robot, theirs).numbers
    assert not any(key.startswith("error") for key in numbers) and "slip_mm" in numbers


# -------- Reports


def test_tables_hold_the_numbers_and_one_verdict_a_robot(score):
    tables = {t.title: t for t in whole_body_tables([score])}
    n = score.quality.numbers
    for title, head, key in (
        ("distance of the points to their targets [cm]", "l wrist", "error_l_wrist_cm"),
        ("contact of the soles with the floor", "95 % below", "slip_mm"),
        ("limits of the joints", "speed / limit", "speed_share"),
        ("self-collision", "meshes touch %", "meshes_percent"),
        ("balance, and torques by inverse dynamics", "CoM over its support %", "balanced_percent"),
    ):
        table = tables[title]
        assert table.rows[0][0] == "hrp2" and len(table.rows[0]) == len(table.columns)
        assert table.rows[0][table.columns.index(head)] == pytest.approx(n[key], abs=0.06), head
    assert whole_body_verdicts([score]) == [f"hrp2: {score.quality.verdict}"]
    assert len(whole_body_notes([score, score])) == len(whole_body_notes([score]))
    loaded = score.most_loaded()
    shares = {row[0]: row[-1] for row in joint_table(score).rows if row[-1] != "-"}
    assert shares[loaded.joint] == max(shares.values()) and tables[list(tables)[-1]].rows[0][-1] == loaded.joint


def test_columns_say_what_every_frame_was(score, robot):
    columns = score.columns()
    t, d = score.motion, score.measures.dynamics
    assert columns["error_l_wrist_m"] == pytest.approx(t.errors[:, t.point_names.index("l_wrist")])
    assert np.nanmax(columns["slip_m"]) == pytest.approx(1e-3 * score.quality.numbers["slip_max_mm"], abs=1e-6)
    assert np.isnan(columns["torque_share"][[0, -1]]).all()
    assert columns["torque_share"][d.frames] == pytest.approx(np.abs(d.torque / robot.effort).max(axis=1))
    assert np.array_equal(columns["contact_l_toe"], t.contacts[:, 1])
    assert np.array_equal(columns["person_r_heel"], score.measures.person[:, 2])


def test_files_appear_whole_and_the_page_refers_to_nothing_outside(score, tmp_path):
    written = write_whole_body([score], tmp_path / "page.html", tmp_path / "out")
    assert len(written) == 2 and "3 files" in written[0]
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"score.json", "score.html", "hrp2.csv"}
    page = (tmp_path / "page.html").read_text()
    assert page == (tmp_path / "out" / "score.html").read_text() and page.count("<svg") == 4
    assert "url(http" not in page and "<script" not in page and score.quality.verdict in page
    data = json.loads((tmp_path / "out" / "score.json").read_text())
    assert data == whole_body_json([score]) and data["robots"][0]["numbers"]["slip_mm"] is not None
    assert data["robots"][0]["meshes"]["every"] == score.mesh_step
    with (tmp_path / "out" / "hrp2.csv").open() as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == data["frames"] and rows[0]["torque_share"] == "" and float(rows[5]["torque_share"]) > 0
