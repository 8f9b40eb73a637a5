"""Measured reaches: the axes of the exoskeleton by the board that people pointed at, and files that are none."""

import numpy as np
import pytest
from scipy.io import savemat

from humanoid_control.errors import ClipError
from humanoid_control.reaching import compare_person, person_arm, read_measured_reaches, summary
from test.conftest import DATA

FOLDER = DATA / "human_motion" / "reaching_hug_mp"


@pytest.fixture(scope="module")
def person():
    path = FOLDER / "S01_trajs.mat"
    if not path.is_file():
        pytest.skip(f"needs {path}: set HUMANOID_TEST_DATA to the folder that holds human_motion/")
    return read_measured_reaches(path)


def test_all_motions_of_a_person_are_read(person):
    assert len(person) == 10 * 30
    one = person[0]
    assert (one.task, one.repetition, one.motion, one.begin, one.end) == (1, 1, 1, "R", "1")
    assert one.seconds == pytest.approx(1.89)
    assert np.allclose(np.rad2deg(one.q[0]), [-20.625, -2.743, 1.180, 37.477], atol=0.01)
    assert min(r.seconds for r in person) > 0.3 and max(r.seconds for r in person) < 4


def test_the_hand_is_on_the_board_where_people_pointed(person):
    """Seen by the person: rows 1 to 4 above 9 to 12, from left to right, all in one plane in front."""
    arm = person_arm(4)
    at = {}
    for name in ("1", "2", "3", "4", "9", "10", "11", "12"):
        at[name] = np.median([arm.hand(r.q[-1]) for r in person if r.end == name], axis=0)
    places = np.array(list(at.values()))
    assert np.ptp(places[:, 0]) < 0.08 and 0.45 < places[:, 0].mean() < 0.7, "a plane in front"
    for row in (("1", "2", "3", "4"), ("9", "10", "11", "12")):
        y = [at[name][1] for name in row]
        assert y == sorted(y, reverse=True), "from left to right"
        assert np.ptp([at[name][2] for name in row]) < 0.12, "a row is level"
    assert min(at[k][2] for k in ("1", "2", "3", "4")) > max(at[k][2] for k in ("9", "10", "11", "12")) + 0.1


def test_criteria_beside_one_person(person):
    """The order that the published study found: angle jerk nearest, then torque change; torque alone far away."""
    found = summary(compare_person(person, 5))
    assert found["maj"]["median"] == pytest.approx(5.0, abs=0.1)
    assert found["maj"]["median"] < found["mtc"]["median"] < found["mtc_weightless"]["median"]
    assert found["torque"]["median"] > 30 and found["torque"]["nearest"] == 0
    assert found["maj"]["nearest"] > 0.6


def cells(motion):
    """A file's content with one motion in a cell of a cell."""
    outer, inner = np.empty((1, 1), dtype=object), np.empty((1, 1), dtype=object)
    outer[0, 0], inner[0, 0] = inner, motion
    return {"tasks": outer}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"trajs": np.zeros(3)}, "no cell array 'tasks'"),
        ({"tasks": np.zeros((2, 2))}, "no cell array 'tasks'"),
        (cells(np.zeros((3, 9))), "must be 4 x samples"),
        (cells(np.full((4, 9), np.nan)), "non-numeric"),
        (cells(np.zeros((4, 2))), "2 samples"),
        (cells(np.zeros((0, 0))), "contains no motion"),
    ],
)
def test_other_files_are_refused(tmp_path, content, words):
    savemat(tmp_path / "S.mat", content)
    with pytest.raises(ClipError, match=words):
        read_measured_reaches(tmp_path / "S.mat")


def test_rubbish_and_missing_files_are_refused(tmp_path):
    path = tmp_path / "S.mat"
    path.write_bytes(b"no MATLAB file at all" * 20)
    with pytest.raises(ClipError, match="not a MATLAB file"):
        read_measured_reaches(path)
    with pytest.raises(ClipError, match="cannot be read"):
        read_measured_reaches(tmp_path / "nowhere.mat")
