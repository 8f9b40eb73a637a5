"""One source file a robot: everything generated from it is up to date, every number says where it is from."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.paths import share_dir
from humanoid_control.robots import CATALOGUE, MODELS, REFERENCES, load_robot
from humanoid_control.robots.generate.build import generated_files
from humanoid_control.robots.generate.source import (
    REFERENCE_MODEL,
    ROBOT,
    STUDY_MODEL,
    count_provenance,
    read_source,
    source_dir,
    source_names,
)


def test_generated_files_are_what_the_sources_give():
    for relative, text in generated_files().items():
        assert (share_dir() / relative).read_text() == text, f"{relative} is out of date: run `humanoid robots build`"


def test_the_catalogue_is_the_set_of_sources():
    kinds = {name: read_source(source_dir() / f"{name}.yaml").kind for name in source_names()}
    of_kind = {ROBOT: CATALOGUE, STUDY_MODEL: MODELS, REFERENCE_MODEL: REFERENCES}
    assert kinds == {name: kind for kind, names in of_kind.items() for name in names}
    assert len(CATALOGUE) == 6, "a study model is not counted among the robots"


@pytest.mark.parametrize("name", CATALOGUE + MODELS + REFERENCES)
def test_every_value_has_an_explained_provenance(name):
    source = read_source(source_dir() / f"{name}.yaml")
    assert sum(source.provenance.values()) > 100
    for joint in source.joints:
        assert set(joint["prov"]) == {"origin", "axis", "limits", "velocity", "effort"}


def test_a_mixed_provenance_counts_as_the_weaker_kind():
    node = [{"prov": "model:rob + estimated:batt"}, {"prov": "memory:x"}, {"prov": {"a": "paper:y", "b": "thesis:z"}}]
    assert count_provenance(node) == {"published": 2, "recalled": 1, "estimated": 1}


@pytest.mark.parametrize("name", CATALOGUE + MODELS + REFERENCES)
def test_left_and_right_are_mirror_images(name):
    source = read_source(source_dir() / f"{name}.yaml")
    joints = {j["name"]: j for j in source.joints}
    links = {k["name"]: k for k in source.links}
    flip = np.array([1, -1, 1])
    for left in [j for j in joints.values() if j["name"].startswith("l_")]:
        right = joints["r_" + left["name"][2:]]
        assert np.allclose(right["xyz"], flip * left["xyz"])
        assert np.allclose(right["axis"], [-left["axis"][0], left["axis"][1], -left["axis"][2]])
        assert (right["lower"], right["upper"]) == (left["lower"], left["upper"])
    for left in [k for k in links.values() if k["name"].startswith("l_")]:
        right = links["r_" + left["name"][2:]]
        assert right["mass"] == left["mass"]
        assert np.allclose(right["com"], flip * left["com"])


def test_a_source_of_an_unknown_kind_is_refused(tmp_path):
    path = tmp_path / "recommended.yaml"
    path.write_text((source_dir() / "recommended.yaml").read_text().replace("kind: study model", "kind: toy"))
    with pytest.raises(RobotError, match="kind must be 'robot' or 'study model' or 'reference model', got 'toy'"):
        read_source(path)


def test_a_source_with_an_unexplained_tag_is_refused(tmp_path):
    text = (source_dir() / "lola.yaml").read_text().replace('limits: "model:am2b"', 'limits: "model:nowhere"', 1)
    path = tmp_path / "lola.yaml"
    path.write_text(text)
    with pytest.raises(RobotError, match="model:nowhere is not explained"):
        read_source(path)


@pytest.mark.parametrize("name", CATALOGUE + MODELS + REFERENCES)
def test_urdf_is_plain_and_complete(name):
    """No meshes, a massless base_link on top, all joints of the source, limits in radians."""
    document = ET.parse(share_dir() / "urdf" / f"{name}.urdf").getroot()
    assert not list(document.iter("mesh"))
    source = read_source(source_dir() / f"{name}.yaml")
    assert document.find("link").get("name") == "base_link"
    assert document.find("link").find("inertial") is None
    joints = {j.get("name"): j for j in document.findall("joint")}
    assert set(joints) == {j["name"] for j in source.joints} | {"base_joint"}
    for row in source.joints:
        lower = float(joints[row["name"]].find("limit").get("lower"))
        expected = np.radians(row["lower"]) if row["type"] == "revolute" else row["lower"]
        assert lower == pytest.approx(expected, abs=1e-6)


# Dube 2012, Table 5.1 [deg]; one range for both arms. WE-4RII's waist range is not printed there.
TABLE_5_1 = {
    "armar3": {
        "waist_flexion": (-10, 60), "waist_lateral_flexion": (-20, 20), "waist_rotation": (-180, 180),
        "shoulder_flexion": (-10, 180), "shoulder_abduction": (-45, 180), "shoulder_rotation": (-180, 180),
        "elbow_flexion": (-10, 150), "forearm_pronation": (-90, 90), "wrist_abduction": (-30, 30),
        "wrist_flexion": (-60, 60),
    },
    "hrp2": {
        "waist_flexion": (-5, 60), "waist_rotation": (-45, 45), "shoulder_flexion": (-60, 180),
        "shoulder_abduction": (-30, 90), "shoulder_rotation": (-90, 90), "elbow_flexion": (0, 135),
        "forearm_pronation": (-90, 90), "wrist_flexion": (-90, 90),
    },
    "suralp": {
        "waist_rotation": (-40, 40), "shoulder_flexion": (-180, 180), "shoulder_abduction": (-23, 135),
        "shoulder_rotation": (-180, 180), "elbow_flexion": (-49, 110), "forearm_pronation": (-180, 180),
        "wrist_flexion": (-16, 90),
    },
    "wabian2": {
        "waist_flexion": (-30, 45), "waist_lateral_flexion": (-50, 50), "waist_rotation": (-180, 180),
        "shoulder_flexion": (-180, 180), "shoulder_abduction": (-17, 196), "shoulder_rotation": (-180, 180),
        "elbow_flexion": (-10, 130), "forearm_pronation": (-180, 180), "wrist_abduction": (-47, 47),
        "wrist_flexion": (-115, 41),
    },
    "we4rii": {
        "girdle_protraction": (-18, 25), "girdle_elevation": (0, 120), "shoulder_flexion": (-180, 200),
        "shoulder_abduction": (-25, 180), "shoulder_rotation": (-80, 115), "elbow_flexion": (0, 160),
        "forearm_pronation": (-180, 180), "wrist_abduction": (-55, 65), "wrist_flexion": (-100, 115),
    },
}  # fmt: skip


# Dube 2012, Table 7.1 [deg]: recommended ranges for a humanoid with a girdle.
TABLE_7_1 = {
    "waist_flexion": (-30, 60), "waist_lateral_flexion": (-35, 35), "waist_rotation": (-30, 30),
    "girdle_protraction": (-30, 30), "girdle_elevation": (0, 90), "shoulder_flexion": (-90, 120),
    "shoulder_abduction": (-90, 120), "shoulder_rotation": (-90, 90), "elbow_flexion": (0, 150),
}  # fmt: skip


def test_the_recommended_model_has_the_recommended_joints_and_ranges():
    """Table 7.1 row by row, on the segment lengths of WE-4RII; what the table leaves open is as there."""
    robot, we4rii = load_robot("recommended", "fixed"), load_robot("we4rii", "fixed")
    for joint, expected in TABLE_7_1.items():
        for full in [joint] if joint.startswith("waist") else [f"l_{joint}", f"r_{joint}"]:
            k = robot.joint_index(full)
            assert np.degrees([robot.lower[k], robot.upper[k]]) == pytest.approx(expected, abs=1e-6), full
            assert k in robot.imitation_joints
    others = set(robot.joint_names) - {j for t in TABLE_7_1 for j in (t, f"l_{t}", f"r_{t}")}
    for joint in others:
        a, b = robot.joint_index(joint), we4rii.joint_index(joint)
        assert (robot.lower[a], robot.upper[a]) == pytest.approx((we4rii.lower[b], we4rii.upper[b]))
    assert robot.segment_lengths() == pytest.approx(we4rii.segment_lengths(), abs=1e-9)
    points = ["mid_hip", "sternum", "l_girdle", "r_girdle"]
    mid_hip, sternum, *girdles = robot.point_positions(robot.q("zero"), points)
    assert girdles == [pytest.approx(sternum)] * 2, "a girdle centred at the sternum needs no more than these ranges"
    assert 0 < robot.model.jointPlacements[1].translation[2] - mid_hip[2] < 0.1, "the waist is close to the hip line"


@pytest.mark.parametrize("name", TABLE_5_1)
def test_joint_ranges_are_those_of_the_published_table(name):
    joints = {j["name"]: (j["lower"], j["upper"]) for j in read_source(source_dir() / f"{name}.yaml").joints}
    for joint, expected in TABLE_5_1[name].items():
        for full in [joint] if joint.startswith("waist") else [f"l_{joint}", f"r_{joint}"]:
            assert joints[full] == expected, full
    source = read_source(source_dir() / f"{name}.yaml")
    named = {j.removeprefix("l_").removeprefix("r_") for j in source.imitation_joints} - {
        "waist_flexion",
        "waist_rotation",
    }
    assert named - {"waist_lateral_flexion"} <= set(TABLE_5_1[name]), "every imitation joint is in the table"
