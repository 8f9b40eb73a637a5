"""The process that prepares a performance: what it is asked, and what it answers to what cannot be."""

import io
import json

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.performing import DynamicMotion, read_motion, standing_motion
from humanoid_control.performing.preparation import Preparer, serve
from humanoid_control.robots import load_robot

CLIP = {"name": "gentle_dance", "clean": True, "marker_set": None, "rate": None, "unit": "", "scale": 1.0, "up": ""}


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "floating")


@pytest.fixture(scope="module")
def standing(robot, tmp_path_factory):
    path = tmp_path_factory.mktemp("motion") / "standing.npz"
    standing_motion(robot, robot.q("neutral")).write(path)
    return path


def answers(*requests, robot="hrp2"):
    out = io.StringIO()
    serve(robot, [json.dumps(r) for r in requests], out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_file_and_the_way_to_it_are_handed_over(robot, standing):
    out = io.StringIO()
    preparer = Preparer(robot, out)
    try:
        motion = DynamicMotion.read(preparer.answer({"do": "motion", "motion": str(standing)})["file"])
        assert np.array_equal(motion.q, standing_motion(robot, robot.q("neutral")).q)
        assert preparer.answer({"do": "way", "q": robot.q("neutral").tolist()}) == {"file": None}
        q = robot.q("neutral")
        q[7 + robot.index["l_elbow_y" if "l_elbow_y" in robot.index else robot.joint_names[-1]]] += 0.1
        way = DynamicMotion.read(preparer.answer({"do": "way", "q": q.tolist()})["file"])
        assert np.abs(way.q[0, 7:] - q[7:]).max() < 0.02 and np.abs(way.q[-1] - motion.q[0]).max() < 0.02
        assert "path" in json.loads(out.getvalue().splitlines()[-1])["progress"]
    finally:
        preparer.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(q=d["q"] * np.nan), "q contains a non-numeric value"),
        (lambda d: d.update(rate=0.0), "the rate must be positive, got 0 Hz"),
        (lambda d: d.update(rate=-100.0), "the rate must be positive, got -100 Hz"),
        (lambda d: d.update(joint_names=d["joint_names"][::-1]), "is a motion of hrp2, not of hrp2"),
        (lambda d: d.update(joint_names=np.array(["a", "b"]), robot="lola"), "is a motion of lola, not of hrp2"),
        (lambda d: d.pop("forces"), "is not a feasible motion: lacks forces"),
    ],
    ids=["not a number", "no rate", "rate below zero", "other order", "other robot", "a field less"],
)
def test_a_file_that_cannot_be_performed_is_refused_by_name(standing, robot, tmp_path, change, message):
    with np.load(standing) as file:
        content = dict(file)
    change(content)
    path = tmp_path / "bad.npz"
    np.savez(path, **content)
    with pytest.raises(ClipError, match=message):
        read_motion(path, robot)
    assert message in answers({"do": "motion", "motion": str(path)})[-1]["error"]


def test_what_is_no_file_is_refused(tmp_path):
    path = tmp_path / "text.npz"
    path.write_text("no motion")
    assert "is not a feasible motion" in answers({"do": "motion", "motion": str(path)})[-1]["error"]
    assert "absent.npz" in answers({"do": "motion", "motion": str(tmp_path / "absent.npz")})[-1]["error"]


def test_a_robot_or_a_clip_that_is_not_there_is_an_answer():
    assert "unknown robot" in answers(robot="nobody")[-1]["error"]
    absent = {"do": "motion", "motion": "", "clip": CLIP | {"name": "/nowhere/dance.bvh"}, "pace": 0.0}
    assert "/nowhere/dance.bvh" in answers(absent)[-1]["error"]
    bare = {"do": "motion", "motion": "", "clip": {}, "pace": 0.0}
    assert "failed: KeyError" in answers(bare)[-1]["error"], "whoever waits gets an answer"
