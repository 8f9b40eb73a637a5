"""The file of a robot's drives: what Lola's says, and what is said about a bad one."""

import numpy as np
import pytest
import yaml

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.paths import share_dir
from humanoid_control.robots import load_robot
from humanoid_control.robots.drives import drives_of, read_drive_file


@pytest.fixture(scope="module")
def lola():
    return load_robot("lola")


@pytest.fixture(scope="module")
def drives(lola):
    return drives_of(lola)


def test_lola_has_24_motors_of_the_kinds_the_source_tells(drives):
    motors = {d.name: len(d.joints) for d in drives.drives if d.motor is not None}
    assert sum(motors.values()) == 24
    kinds = [d.kind for d in drives.drives]
    assert (kinds.count("harmonic"), kinds.count("knee_screw"), kinds.count("ankle_screws")) == (18, 2, 2)
    assert kinds.count("vergence") == 1
    elastic = {d.name for d in drives.drives if d.elastic is not None}
    assert len(elastic) == 16, "two of the pelvis, three of the hip and the toe of each leg, three of each arm"
    assert not any(n.startswith("neck") or "knee" in n or "ankle" in n for n in elastic)


def test_rotors_are_on_the_link_before_the_joint(drives, lola):
    carriers = {d.name: d.carrier for d in drives.drives}
    assert (
        carriers["l_knee"] == "l_thigh" and carriers["r_ankle"] == "r_shank" and carriers["pelvis_rotation"] == "torso"
    )
    assert drives.of_joint("r_ankle_flexion").name == "r_ankle"
    assert drives.of_joint("r_camera_vergence") is None
    assert all(d.joint_counts == 0 for d in drives.drives if d.name.startswith("neck"))


def test_a_mirrored_drive_has_its_points_on_the_other_side(drives):
    by = {d.name: d for d in drives.drives}
    left, right = by["l_ankle"].geometry, by["r_ankle"].geometry
    np.testing.assert_array_equal(right["tops"], left["tops"] * [1, -1, 1])
    np.testing.assert_array_equal(right["bottoms"], left["bottoms"] * [1, -1, 1])
    assert right["coupler"] == left["coupler"]


def test_a_robot_without_such_a_file_has_no_drives():
    assert drives_of(load_robot("hrp2")).drives == ()


def bad(path, change):
    d = yaml.safe_load((share_dir() / "urdf" / "lola.drives.yaml").read_text())
    change(d, {row["name"]: row for row in d["drives"]})
    path.write_text(yaml.safe_dump(d))
    return path


def _add(d, row):
    d["drives"].append(row)


BAD = {
    "schema": (lambda d, r: d.update(schema="drives"), "first key must be 'schema: humanoid_drives/1'"),
    "file key": (lambda d, r: d.update(gears=[]), "unknown key 'gears'"),
    "joint": (
        lambda d, r: r["l_knee"].update(joints=["l_knee_flexoin"]),
        "unknown joint .*did you mean l_knee_flexion",
    ),
    "link": (
        lambda d, r: r["l_knee"].update(carrier="l_thihg"),
        r"unknown link 'l_thihg': did you mean l_thigh.*'l_knee'",
    ),
    "motor": (lambda d, r: r["l_knee"].update(motor="kne"), "unknown motor 'kne': did you mean knee"),
    "kind": (lambda d, r: r["l_knee"].update(kind="knee_srew"), "unknown kind 'knee_srew': did you mean knee_screw"),
    "key": (lambda d, r: r["l_knee"].update(pivt=[0, 0, 0]), "unknown key 'pivt': did you mean pivot"),
    "missing": (lambda d, r: r["l_knee"].pop("pivot"), r"drives\[5\] 'l_knee': lacks the key 'pivot'"),
    "no kind": (lambda d, r: r["l_knee"].pop("kind"), "lacks the key 'kind'"),
    "ratio": (lambda d, r: r["neck_flexion"].update(ratio=0), "ratio must not be zero"),
    "lead": (lambda d, r: r["l_knee"].update(lead=-0.005), "lead must be above zero, got -0.005"),
    "lead of a gear": (lambda d, r: r["neck_flexion"].update(lead=0.1), "unknown key 'lead'"),
    "inertia": (lambda d, r: d["motors"][0].update(inertia=[-1e-4, 1e-4]), "motor 'hip': inertia must not be negative"),
    "thin": (lambda d, r: d["motors"][0].update(inertia=[1e-4, 1e-5]), "at most twice"),
    "resistance": (lambda d, r: d["motors"][0].update(resistance=0), "resistance must be above zero, got 0"),
    "not a number": (lambda d, r: r["l_knee"].update(lead="five"), "'lead' must be a number, got five"),
    "a point": (lambda d, r: r["l_knee"].update(hinge=[1, 2]), r"'hinge' must be \[x, y, z\], got \[1, 2\]"),
    "infinite": (lambda d, r: r["l_knee"].update(hinge=[1, 2, float("inf")]), "'hinge' must be"),
    "elastic screw": (
        lambda d, r: r["l_knee"].update(elastic={"stiffness": 1e4, "damping": 1}),
        "a knee_screw is rigid",
    ),
    "stiffness": (
        lambda d, r: r["l_hip_flexion"].update(elastic={"stiffness": -1, "damping": 1}),
        "stiffness must be above zero",
    ),
    "friction": (lambda d, r: r["neck_flexion"].update(friction={"coulomb": -1}), "coulomb must not be negative"),
    "friction key": (lambda d, r: r["neck_flexion"].update(friction={"columb": 1}), "unknown key 'columb'"),
    "counts": (lambda d, r: r["neck_flexion"].update(motor_counts=1.5), "'motor_counts' must be a whole number"),
    "twice": (
        lambda d, r: _add(d, {"name": "x", "kind": "linear", "joints": ["neck_flexion"], "ratio": 2}),
        "driven joint 'neck_flexion' appears twice",
    ),
    "two joints": (lambda d, r: r["l_ankle"].update(joints=["l_ankle_flexion"]), "drives 2 joint"),
    "mirror": (lambda d, r: r["neck_flexion"].update(mirror="y"), "names no side"),
    "mirror axis": (lambda d, r: r["l_knee"].update(mirror="left"), "mirror must be x, y or z"),
    "no list": (lambda d, r: d.update(drives={"a": 1}), "'drives' must be a list"),
    "no mapping": (lambda d, r: d["drives"].append("hip"), "must be a mapping"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_answered_in_one_line(case, tmp_path, lola):
    change, says = BAD[case]
    path = bad(tmp_path / "lola.drives.yaml", change)
    with pytest.raises((RobotError, UnknownNameError), match=says) as e:
        read_drive_file(path, lola)
    assert "\n" not in str(e.value) and str(path) in str(e.value)


def test_a_file_that_is_no_yaml_is_refused(tmp_path, lola):
    path = tmp_path / "lola.drives.yaml"
    path.write_text("drives: [")
    with pytest.raises(RobotError, match="not a readable drive file"):
        read_drive_file(path, lola)
