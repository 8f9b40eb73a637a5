"""The study of whole bodies: clips by robots, kept outcomes, medians and goals, and GMR by a stand-in of it."""

import json
import sys
import types

import numpy as np
import pinocchio as pin
import pytest

from evidence.studies import gmr
from evidence.studies.whole_bodies import (
    CLIP,
    GMR,
    OURS,
    goal_line,
    in_contacts,
    measure_pair,
    median_tables,
    run_study,
)
from humanoid_control.errors import ClipError, ConfigError, UnknownNameError
from humanoid_control.evaluation.ground_contact import corner_paths
from humanoid_control.mocap import BodyPoints, load_body_points
from humanoid_control.retargeting import WholeBodyTask
from humanoid_control.retargeting.whole_body.contacts import find_floor, level
from humanoid_control.robots import load_robot
from humanoid_control.terminal import ReportTable


@pytest.fixture
def stand_in(monkeypatch):
    """A GMR that knows hrp2, and a joint more: it always answers with the same posture, turned, 0.3 m too high."""
    robot = load_robot("hrp2", "floating")
    names = ["its_own", *robot.joint_names[::-1]]

    class Model:
        njnt = len(names) + 1
        jnt_type = (0, *[3] * len(names))
        jnt_qposadr = (0, *range(7, 7 + len(names)))

        def joint(self, k):
            return types.SimpleNamespace(name="root" if k == 0 else names[k - 1])

    class Solver:
        model = Model()

        def __init__(self, kind, robot_name, actual_human_height):
            assert (kind, robot_name) == ("smplx", "its_hrp2") and 1.2 < actual_human_height < 2.2

        def retarget(self, person):
            assert "left_wrist" in person
            X = robot.X_world_root
            q = pin.Quaternion(pin.rpy.rpyToMatrix(0.0, 0.0, 0.5) @ X.rotation)
            place = X.translation + [0.1, 0.2, 0.3]
            posture = dict(zip(robot.joint_names, robot.postures["neutral"], strict=True)) | {"its_own": 9.0}
            return np.array([*place, q.w, q.x, q.y, q.z, *(posture[n] for n in names)])

    package, module = types.ModuleType(gmr.PEER), types.ModuleType(f"{gmr.PEER}.motion_retarget")
    module.GeneralMotionRetargeting = Solver
    monkeypatch.setitem(sys.modules, gmr.PEER, package)
    monkeypatch.setitem(sys.modules, f"{gmr.PEER}.motion_retarget", module)
    monkeypatch.setitem(gmr.GMR_ROBOTS, "hrp2", "its_hrp2")
    monkeypatch.setattr("evidence.studies.whole_bodies.gmr_installed", lambda: True)
    monkeypatch.setattr("evidence.studies.whole_bodies.KeptOutcomes", Here)
    return robot


class Here:
    """Outcomes made in this process, where the stand-in is."""

    def __init__(self, file, what):
        self.file = file

    def all(self, jobs, do, workers, show):
        return [do(job) for job in jobs]


@pytest.mark.nightly
def test_both_are_measured_on_the_same_frames(stand_in):
    """The stand-in stands still on the floor, wherever its own was, in the frames and contacts of the person."""
    report = run_study(robot=["hrp2", "suralp"], clips=["gentle_dance"])
    ours, theirs, _ = report.data["rows"]
    assert [(r["robot"], r["who"]) for r in report.data["rows"]] == [("hrp2", OURS), ("hrp2", GMR), ("suralp", OURS)]
    assert not any(r["why"] for r in report.data["rows"])
    assert ours["frames"] == theirs["frames"] == load_body_points("gentle_dance").n_frames
    assert theirs["slip_person_mm"] == theirs["jerk_p99_rad_s3"] == 0
    assert theirs["penetration_mm"] < 0.1 and theirs["floating_person_mm"] < 0.1, "its floor is where its soles are"
    assert not {"grade", "slip_mm", "floating_mm"} & set(theirs), "it has no contacts of its own"
    assert "error_cm" not in theirs and ours["error_cm"] > 0
    assert "contacts_agree_percent" not in theirs and ours["contacts_agree_percent"] > 10
    assert ours["slip_person_mm"] >= ours["slip_mm"] - 1e-6
    tables = [part for part in report.parts if isinstance(part, ReportTable)]
    assert len(tables) == 4
    for table in tables:
        assert [row[:2] for row in table.rows] == [["hrp2", OURS], ["hrp2", GMR], ["suralp", OURS]]
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert report.pictures()["whole_body.md"].startswith("# Whole bodies\n")


def test_angles_of_gmr_come_by_name_and_its_root_with_the_scalar_last(stand_in):
    body = load_body_points("dance").cropped(20)
    q, took = gmr.gmr_frames("hrp2", stand_in, body)
    assert q.shape == (20, stand_in.nq) and len(took) == 20
    assert q[3, 7:] == pytest.approx(stand_in.postures["neutral"])
    X = pin.XYZQUATToSE3(q[0, :7])
    assert X.rotation == pytest.approx(pin.rpy.rpyToMatrix(0.0, 0.0, 0.5) @ stand_in.X_world_root.rotation, abs=1e-9)
    assert gmr.gmr_floor(stand_in, q) == pytest.approx(0.3, abs=1e-3)
    contacts = np.ones((20, 4), dtype=bool)
    trajectory, rate = gmr.gmr_trajectory("hrp2", stand_in, body, contacts)
    assert corner_paths(stand_in, trajectory.q())[..., 2] == pytest.approx(0.0, abs=1e-3) and rate > 0
    assert np.isnan(trajectory.errors).all() and trajectory.contacts is contacts


@pytest.mark.nightly
def test_ours_is_the_motion_of_the_pipeline(stand_in):
    body = load_body_points("dance").cropped(200)
    motion = WholeBodyTask.of(body, stand_in).solve()
    found = measure_pair(body, "hrp2", OURS)
    assert found["error_cm"] == pytest.approx(100 * motion.trajectory.errors[:, :12].mean(), abs=1e-4)
    every = measure_pair(body, "hrp2", CLIP)
    solved = WholeBodyTask.of(body, stand_in).solve(method="clip").trajectory
    assert every["error_cm"] == pytest.approx(100 * solved.errors[:, :12].mean(), abs=1e-4) != found["error_cm"]
    person = in_contacts(stand_in, motion.trajectory, motion.targets.contacts)
    assert {key: found[key] for key in person} == person and person["floating_person_mm"] > found["floating_mm"]
    assert level(body, find_floor(body)).n_frames == found["frames"]


@pytest.mark.nightly
def test_all_frames_at_once_stand_beside_frame_by_frame(stand_in):
    report = run_study(robot=["hrp2"], clips=["gentle_dance"], method=["live", "clip"])
    assert [r["who"] for r in report.data["rows"]] == [OURS, CLIP, GMR]
    with pytest.raises(UnknownNameError, match="did you mean clip"):
        run_study(robot=["hrp2"], clips=["gentle_dance"], method=["clp"])


@pytest.mark.nightly
def test_outcomes_are_kept_and_what_fails_is_a_row(tmp_path, mocap):
    kept, upper = tmp_path / "kept.jsonl", str(mocap("vicon_c3d/shd01.c3d"))
    report = run_study(robot=["hrp2"], clips=["gentle_dance", upper], resume=kept, workers=1)
    good, bad = report.data["rows"]
    assert good["grade"] in "ABCDF" and "legs" in bad["why"]
    assert any("shd01, hrp2, ours: ClipError" in part for part in report.parts if isinstance(part, str))
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    rows[0]["outcome"]["slip_mm"] = 77.0
    kept.write_text("".join(json.dumps(row) + "\n" for row in rows))
    again = run_study(robot=["hrp2"], clips=["gentle_dance", upper], resume=kept, workers=1)
    assert again.data["rows"][0]["slip_mm"] == 77.0, "what is kept is not done again"
    assert any("Goals missed in the median: hrp2: slip mm 77.0" in p for p in again.parts if isinstance(p, str))


def row(clip, robot="a", who=OURS, **numbers):
    good = {"slip_mm": 1.0, "penetration_mm": 0.5, "floating_mm": 4.0, "colliding_percent": 0.0, "meshes_percent": 0.4}
    good |= {"beyond_range_deg": 0.0, "speed_share": 1.0, "grade": "A", "why": "", "acceleration_p99_rad_s2": 20.4}
    return {"clip": clip, "robot": robot, "who": who} | good | numbers


def test_medians_are_over_clips_and_goals_are_ours():
    rows = [row("x"), row("y", slip_mm=3.0, grade="B"), row("z", slip_mm=1.5), row("w", why="ClipError: broken")]
    rows += [row("x", who=GMR, slip_mm=None, grade=None), row("x", robot="b", meshes_percent=None)]
    table, told = median_tables(rows)
    assert [r[:2] for r in told.rows] == [r[:2] for r in table.rows] and told.rows[0][-1] == 20
    slip = table.columns.index("slip mm")
    assert [r[:4] for r in table.rows] == [["a", OURS, 3, "2A 1B"], ["a", GMR, 1, "-"], ["b", OURS, 1, "1A"]]
    assert [r[slip] for r in table.rows] == [1.5, "-", 1.0]
    assert table.rows[2][table.columns.index("meshes touch %")] == "-"
    assert goal_line(rows) == "Every goal is met in the median."
    for key, beyond in (
        ("slip_mm", 2.01), ("penetration_mm", 1.01), ("floating_mm", 5.1), ("colliding_percent", 0.1),
        ("meshes_percent", 0.6), ("beyond_range_deg", 0.1), ("speed_share", 1.01),
    ):  # fmt: skip
        assert goal_line([row("x", **{key: beyond})]).startswith("Goals missed in the median: a: ")
    assert goal_line([row("x", who=GMR, slip_mm=30.0)]).startswith("Every goal")


def test_mistakes_are_told_before_anything_is_moved(tmp_path):
    with pytest.raises(UnknownNameError, match="hrp2"):
        run_study(robot=["hpr2"])
    with pytest.raises((ClipError, UnknownNameError)):
        run_study(robot=["hrp2"], clips=["dnace"])
    broken = tmp_path / "kept.jsonl"
    broken.write_text("nothing\n")
    with pytest.raises(ConfigError, match="contains no results of whole bodies"):
        run_study(robot=["hrp2"], clips=["dance"], resume=broken)


def test_a_person_in_a_t_has_no_rotation_but_that_of_the_world():
    """All segments of SMPL-X have the axes left, up, forward at rest; ours is turned about the vertical."""
    points = {
        "mid_hip": (0, 0, 1.0), "sternum": (0, 0, 1.4), "l_hip": (0, 0.1, 1.0), "r_hip": (0, -0.1, 1.0),
        "l_knee": (0, 0.1, 0.55), "r_knee": (0, -0.1, 0.55), "l_ankle": (0, 0.1, 0.1), "r_ankle": (0, -0.1, 0.1),
        "l_toe": (0.2, 0.1, 0.05), "r_toe": (0.2, -0.1, 0.05),
        "l_shoulder": (0, 0.2, 1.5), "r_shoulder": (0, -0.2, 1.5),
        "l_elbow": (0, 0.5, 1.5), "r_elbow": (0, -0.5, 1.5), "l_wrist": (0, 0.75, 1.5), "r_wrist": (0, -0.75, 1.5),
    }  # fmt: skip
    turn = pin.rpy.rpyToMatrix(0.0, 0.0, 0.7)
    at = np.array([list(points.values())] * 3, dtype=float) @ turn.T
    frames = gmr.smplx_frames(BodyPoints("T", 100.0, tuple(points), at, np.zeros(len(points))))
    rest = turn @ np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # columns: left, up, forward
    assert len(frames) == 3 and len(frames[0]) == 14
    for name, (place, q) in frames[0].items():
        R = pin.Quaternion(*np.asarray(q)).matrix()
        assert rest == pytest.approx(R, abs=1e-9), name
        assert np.isfinite(place).all()
    assert frames[0]["left_wrist"][0] == pytest.approx(at[0, 14])
