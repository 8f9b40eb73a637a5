"""The YAML of a marker set: every mistake is named, nothing is guessed."""

from __future__ import annotations

import pytest
import yaml

from humanoid_control.errors import ClipError
from humanoid_control.mocap.marker_sets import REQUIRED, read_marker_set

GOOD = {"points": {point: [point.upper()] for point in REQUIRED}}


def write(tmp_path, content):
    path = tmp_path / "set.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def changed(**points):
    return {"points": {**GOOD["points"], **points}}


def test_lists_and_alternatives(tmp_path):
    content = changed(head=[["A", "B"], ["C"]])
    found = read_marker_set(write(tmp_path, content), "mine")
    assert found.name == "mine"
    assert found.points["head"].inputs == {"head": (("A", "B"), ("C",))}
    assert found.points["l_hip"].inputs == {"l_hip": (("L_HIP",),)}
    assert found.points["l_hip"].rule is None


def test_rules_get_their_landmarks_and_side(tmp_path):
    content = changed(l_hip={"rule": "hip_centre"}, r_hip={"rule": "hip_centre"})
    content["landmarks"] = {"l_asis": ["A"], "r_asis": ["B"], "mid_psis": [["C", "D"], ["E"]]}
    found = read_marker_set(write(tmp_path, content), "mine")
    assert found.points["l_hip"].inputs == {"l_asis": (("A",),), "r_asis": (("B",),), "mid_psis": (("C", "D"), ("E",))}
    assert (found.points["l_hip"].side, found.points["r_hip"].side) == (1, -1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("points: [", "not valid YAML"),
        ("", "needs a mapping 'points'"),
        ("- a\n- b", "needs a mapping 'points'"),
        ("points: 3", "needs a mapping 'points'"),
        ({**GOOD, "point": {}}, "unknown entry 'point'"),
        (changed(l_elbw=["A"]), "did you mean l_elbow"),
        ({"points": {point: ["A"] for point in REQUIRED if point != "l_wrist"}}, "no labels for l_wrist"),
        (changed(l_elbow="LELB"), "expected a list of labels"),
        (changed(l_elbow=[]), "expected a list of labels"),
        (changed(l_elbow=[3]), "expected a list of labels"),
        (changed(l_elbow=[["A"], "B"]), "expected a list of labels"),
        (changed(l_elbow=None), "expected a list of labels"),
        (changed(l_hip={"rule": "hip"}), "hip_centre or shoulder_centre"),
        (changed(l_hip={"rule": ["hip_centre"]}), "hip_centre or shoulder_centre"),
        (changed(l_hip={"rule": "hip_centre"}), "needs the landmark(s) l_asis, r_asis, mid_psis"),
        ({**GOOD, "landmarks": {"left_asis": ["A"]}}, "'left_asis' is unknown"),
        ({**GOOD, "landmarks": ["l_asis"]}, "landmark"),
    ],
)
def test_mistake_is_named_in_one_line(tmp_path, content, says):
    with pytest.raises(ClipError) as caught:
        read_marker_set(write(tmp_path, content), "mine")
    assert says in str(caught.value)
    assert str(caught.value).startswith("marker set mine")
    assert str(caught.value).isprintable()


def test_file_that_is_not_there(tmp_path):
    with pytest.raises(ClipError, match="cannot be read"):
        read_marker_set(tmp_path / "none.yaml", "mine")


def test_file_that_is_no_text(tmp_path):
    path = tmp_path / "set.yaml"
    path.write_bytes(b"\xff\xfe\x00points")
    with pytest.raises(ClipError, match="not valid YAML"):
        read_marker_set(path, "mine")
