"""`humanoid score --whole-body`: tables with a verdict, JSON, page and files; mistakes are one line."""

import json

import pytest

from humanoid_control.evaluation import ClipMeasures
from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import WholeBodyTask, whole_body_settings
from humanoid_control.robots import load_robot

FAST = ("--speed", 6)  # few frames


def test_it_prints_every_table_and_one_verdict_a_robot(humanoid):
    result = humanoid("score", "gentle_dance", "--robot", "hrp2,wabian2", "--whole-body", "--details", *FAST)
    assert result.returncode == 0, result.stderr
    for words in ("distance of the points", "wrist", "contact of the soles", "precision", "beyond", "jerk"):
        assert words in result.stdout, words
    for words in ("has no meshes", "CoM", "support", "torque", "hrp2: joints", "wabian2: joints"):
        assert words in result.stdout, words
    verdicts = [line for line in result.stdout.splitlines() if line.startswith(("hrp2: ", "wabian2: ")) and line[6:]]
    assert len([v for v in verdicts if v.split(": ")[1] in "ABCDF"]) == 2


def test_numbers_are_those_of_the_package_and_files_hold_them(humanoid):
    result = humanoid(
        "score", "gentle_dance", "--robot", "hrp2", "--whole-body", "--acceleration", 50, *FAST, "--json",
        "-o", "out", "--html", "page.html",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    data = json.loads(result.stdout)
    (row,) = data["robots"]
    robot = load_robot("hrp2", "floating")
    motion = WholeBodyTask.of(load_body_points("gentle_dance"), robot, FAST[1]).solve(whole_body_settings(50.0))
    known = ClipMeasures(robot, motion.trajectory, motion.targets.contacts).quality().numbers
    assert {k: row["numbers"][k] for k in known} == pytest.approx(known)
    assert row["meshes"] is None and row["grade"] in "ABCDF"
    folder = humanoid.folder / "out"
    assert {p.name for p in folder.iterdir()} == {"score.json", "score.html", "hrp2.csv"}
    assert json.loads((folder / "score.json").read_text()) == data
    assert (humanoid.folder / "page.html").read_text() == (folder / "score.html").read_text()


def test_all_frames_at_once_are_scored_on_request(humanoid):
    rows = []
    for method in ("live", "clip"):
        options = ("--robot", "hrp2", "--whole-body", "--method", method, *FAST, "--json")
        result = humanoid("score", "gentle_dance", *options)
        assert result.returncode == 0, result.stderr
        rows += json.loads(result.stdout)["robots"]
    robot = load_robot("hrp2", "floating")
    task = WholeBodyTask.of(load_body_points("gentle_dance"), robot, FAST[1])
    motion = task.solve(method="clip")
    assert rows[1]["numbers"]["error_cm"] == pytest.approx(100 * motion.trajectory.errors[:, :12].mean(), abs=1e-4)
    assert rows[0]["numbers"]["error_cm"] != rows[1]["numbers"]["error_cm"]


MISTAKES = [
    (["--method", "dls"], "unknown method 'dls'"),
    (["--method", "live,clip"], "takes one --method"),
    (["--trough-rule", "both"], "--trough-rule applies to a fixed pelvis"),
    (["--acceleration", "20,50"], "takes one --acceleration"),
    (["--robot", "armar3"], "armar3"),
    (["--robot", "hrp2", "--html", "page.pdf"], "must be a .html file"),
    (["--robot", "hrp2", "--speed", "0"], "--speed must be between"),
]


@pytest.mark.parametrize(("options", "words"), MISTAKES, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_a_mistake_is_one_line_and_leaves_nothing(humanoid, options, words):
    result = humanoid("score", "dance", "--whole-body", *options)
    assert result.returncode == 2 and "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1 and words in lines[0], result.stderr
    assert list(humanoid.folder.iterdir()) == []
