"""Humanoids of others by their names: where they are found, what is said where they are not, and their robot files."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.cli.main import main
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.evaluation import measure_ground_contact
from humanoid_control.mocap import load_body_points
from humanoid_control.paths import share_dir
from humanoid_control.retargeting import retarget_whole_body
from humanoid_control.robots import catalogue, load_robot
from humanoid_control.robots.catalogue import load_robots
from humanoid_control.robots.description.robot_file import read_robot_file, shapes_from_urdf
from humanoid_control.robots.description.tree_changes import with_frames
from humanoid_control.robots.description.urdf import link_of, parse_urdf, placement, set_placement
from humanoid_control.robots.guess.limbs import GuessedFoot, _alike
from humanoid_control.robots.guess.robot_file import guess_robot_file
from humanoid_control.robots.humanoids import Humanoid, find_in, found_humanoids, humanoids
from humanoid_control.robots.names import KNOWN
from humanoid_control.robots.robot import Robot

FOLDER = share_dir() / "config" / "robots"
URDF = (share_dir() / "urdf" / "hrp2.urdf").read_text()


@pytest.fixture
def models(tmp_path, monkeypatch):
    """A folder of models, and nothing else on this machine; shapes are kept in a folder of their own."""
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setenv("HUMANOID_MODELS", str(folder))
    monkeypatch.setenv("HUMANOID_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    for name in ("ROBOT_DESCRIPTIONS_CACHE", "MENAGERIE_CACHE_DIR", "AMENT_PREFIX_PATH"):
        monkeypatch.delenv(name, raising=False)
    return folder


def lay(folder, path, text=URDF):
    file = folder / path
    file.parent.mkdir(parents=True)
    file.write_text(text)
    return file


def test_every_robot_file_is_of_a_model_and_can_be_read():
    named = {p.stem for p in FOLDER.glob("*.yaml")} - {"models"}
    assert named <= set(humanoids()) and len(humanoids()) >= 25
    for name in named:
        file = read_robot_file(FOLDER / f"{name}.yaml")
        assert {"mid_hip", "sternum", "l_wrist", "r_wrist"} <= set(file.points) and not file.collision, name
        assert len({foot.name[0] for foot in file.feet}) in (0, 2), name
        assert file.title == humanoids()[name].title
    assert not set(humanoids()) & set(KNOWN)


@pytest.mark.parametrize("inside", ["", "unitree_ros", "unitreerobotics+unitree_ros", "unitree_ros-master"])
def test_models_are_found_in_the_folders_of_the_variable(models, inside):
    assert find_in("unitree_ros", "robots/a.urdf") is None
    file = lay(models, f"{inside}/robots/a.urdf" if inside else "robots/a.urdf")
    assert find_in("unitree_ros", "robots/a.urdf") == file


def test_models_are_found_in_caches_and_packages(models, tmp_path, monkeypatch):
    kept = lay(tmp_path, "caches/robot_descriptions/unitree_ros/robots/a.urdf")
    assert find_in("unitree_ros", "robots/a.urdf") == kept
    zoo = lay(tmp_path, "caches/mujoco_menagerie/models/unitree_g1-0123abcd/g1.xml")
    assert find_in("mujoco_menagerie", "unitree_g1/g1.xml") == zoo
    packages = tmp_path / "packages"
    monkeypatch.syspath_prepend(str(packages))
    cmeel = lay(packages, "cmeel.prefix/share/example-robot-data/robots/b.urdf")
    assert find_in("example-robot-data", "robots/b.urdf") == cmeel
    module = lay(packages, "some_description/urdf/c.urdf")
    (module.parent.parent / "__init__.py").write_text("raise ImportError('is looked at, not run')\n")
    assert find_in("some-description", "urdf/c.urdf") == module


def test_absent_model_is_said_in_a_line_with_how_to_get_it(models, capsys):
    with pytest.raises(RobotError) as error:
        load_robot("h2")
    assert "git clone https://github.com/unitreerobotics/unitree_ros" in str(error.value)
    assert "HUMANOID_MODELS" in str(error.value) and "\n" not in str(error.value)
    assert main(["retarget", "dance", "--robot", "h2"]) == 2
    said = capsys.readouterr().err.strip()
    assert said.count("\n") == 0 and "git clone" in said
    with pytest.raises(UnknownNameError, match="did you mean h2"):
        load_robot("h22")
    with pytest.raises(RobotError, match="no robot given"):
        load_robots(["humanoids"])


@pytest.mark.nightly
def test_robot_is_guessed_at_first_use_and_kept(models, monkeypatch):
    lay(models, "unitree_ros/robots/h2_description/H2.urdf")
    assert found_humanoids() == ["h2"]
    robot = load_robot("h2")  # the written file is of another robot, so all of it is guessed
    assert robot.name == "h2" and robot.title == "Unitree H2" and len(robot.feet) == 2
    known = load_robot("hrp2")
    q = robot.q("zero")
    ours = robot.point_positions(q, ["l_wrist", "r_elbow"]) - robot.point_positions(q, ["mid_hip"])
    q = known.q("zero")
    theirs = known.point_positions(q, ["l_wrist", "r_elbow"]) - known.point_positions(q, ["mid_hip"])
    assert np.allclose(ours, theirs, atol=1e-3)

    def never(*_, **__):
        raise AssertionError("guessed again")

    monkeypatch.setattr("humanoid_control.robots.guess.robot_file.guess_robot_file", never)
    again = load_robot("h2", "fixed")
    assert [s.name for s in again.shapes] == [s.name for s in robot.shapes]
    (robot_again,) = load_robots(["humanoids"])
    assert robot_again.name == "h2"


@pytest.mark.nightly
def test_written_points_count_and_shapes_are_those_of_the_meshes(models, tmp_path, monkeypatch):
    path = lay(models, "place/robot.urdf")
    written = tmp_path / "mine.yaml"
    written.write_text("schema: humanoid_robot/1\nbase: fixed\npoints: {mid_hip: {link: pelvis, xyz: [0, 0, 0.123]}}\n")
    mine = Humanoid("mine", "Mine", (("place", "robot.urdf"),), "nowhere", written)
    monkeypatch.setattr(catalogue, "humanoids", lambda: {"mine": mine})
    robot = load_robot("mine")
    assert list(robot.points) == ["mid_hip"] and robot.file.points["mid_hip"][1][2] == 0.123
    own = {s.name for s in shapes_from_urdf(parse_urdf(URDF, ""))}
    assert robot.name == "mine" and {s.name for s in robot.shapes} >= own
    path.with_suffix(".yaml").write_text("schema: humanoid_robot/1\ntitle: Beside it\nheight: 1.5\n")
    beside = load_robot("mine")
    assert (beside.height, beside.title) == (1.5, "Beside it"), "a robot file beside the model counts before all"


def test_a_humanoid_by_name_has_the_title_of_the_catalogue_and_not_that_of_its_urdf(models, monkeypatch):
    path = lay(models, "place/robot.urdf")
    mine = Humanoid("mine", "Mine", (("place", "robot.urdf"),), "nowhere", None)
    monkeypatch.setattr(catalogue, "humanoids", lambda: {"mine": mine})
    for line in (f"title: {parse_urdf(URDF, '').name}", "height: 1.5"):
        path.with_suffix(".yaml").write_text(f"schema: humanoid_robot/1\n{line}\n")
        assert load_robot("mine").title == "Mine"


# -------- Soles on links with tilted axes


def askew(urdf, link, R):
    """The same robot with the frame of a link turned by R (3, 3)."""
    tree = parse_urdf(urdf, "askew")
    turn = pin.SE3(R, np.zeros(3))
    for joint in tree.joints:
        if link_of(joint, "child") == link:
            set_placement(joint, placement(joint.find("origin")) * turn)
            if (axis := joint.find("axis")) is not None:
                a = R.T @ np.array([float(v) for v in axis.get("xyz").split()])
                axis.set("xyz", " ".join(repr(float(v)) for v in a))
        elif link_of(joint, "parent") == link:
            set_placement(joint, turn.inverse() * placement(joint.find("origin")))
    element = next(e for e in tree.document.findall("link") if e.get("name") == link)
    for part in element:
        X = turn.inverse() * placement(part.find("origin"))
        if part.find("origin") is None:
            part.insert(0, ET.Element("origin"))
        part.find("origin").set("xyz", " ".join(repr(float(v)) for v in X.translation))
        part.find("origin").set("rpy", " ".join(repr(float(v)) for v in pin.rpy.matrixToRpy(X.rotation)))
    return tree.text()


def sole_corners(robot):
    poses = robot.link_poses(robot.q("zero"))
    return np.array([[poses[f.link].act(c) for c in f.corners()] for f in robot.feet])


@pytest.mark.nightly
def test_soles_on_links_that_lie_askew_are_where_they_are(tmp_path):
    feet = [foot.link for foot in load_robot("hrp2").feet]
    turned = URDF
    for link, angles in zip(feet, ((np.pi / 2, 0.0, 0.3), (0.2, -1.1, 2.0)), strict=True):
        turned = askew(turned, link, pin.rpy.rpyToMatrix(*angles))
    found = []
    for name, text in (("plain", URDF), ("turned", turned)):
        path = tmp_path / f"{name}.urdf"
        path.write_text(text)
        file, guessed = guess_robot_file(path, shapes=False)
        assert "collision:" not in file.read_text()
        found.append((load_robot(path, "fixed"), guessed))
    assert not found[0][0].file.frames and len(found[1][0].file.frames) == 2
    assert np.allclose(sole_corners(found[0][0]), sole_corners(found[1][0]), atol=2e-4)
    assert abs(found[0][0].file.root_height["neutral"] - found[1][0].file.root_height["neutral"]) < 1e-3


def test_frames_that_cannot_be_added_are_refused():
    tree = parse_urdf(URDF, "hrp2")
    with pytest.raises(UnknownNameError, match="pelviss"):
        with_frames(tree, {"a": ("pelviss", pin.SE3.Identity())})
    with pytest.raises(RobotError, match="a link has that name"):
        with_frames(tree, {"l_foot": ("pelvis", pin.SE3.Identity())})
    once = with_frames(tree, {"a": ("l_foot", pin.SE3.Identity())})
    assert with_frames(once, {"a": ("l_foot", pin.SE3.Identity())}).links == once.links, "its own URDF, read again"


def test_both_feet_get_what_their_soles_have_in_common():
    robot = load_robot("hrp2", "fixed")
    poses = robot.link_poses(robot.q("zero"))
    left, right = (GuessedFoot((f,), np.zeros(3), "", False) for f in robot.feet)
    wider = replace(right, soles=(replace(right.soles[0], y_min=right.soles[0].y_min - 0.03),))
    both = _alike([left, wider], poses)
    assert both[0].soles == left.soles and both[1].soles == right.soles


# -------- Hips that share a motor


def test_a_leg_whose_hip_follows_the_other_keeps_its_foot_in_place():
    """NAO's hips: one joint of the right leg mimics one of the left."""
    robot = load_robot("hrp2", "floating")
    tree = parse_urdf(robot.urdf, "shared")
    joint = next(j for j in tree.joints if j.get("name") == "r_hip_rotation")
    ET.SubElement(joint, "mimic", joint="l_hip_rotation", multiplier="1", offset="0")
    shared = Robot(tree, robot.file, "floating")
    assert len(shared.mimic) == 1
    motion = retarget_whole_body(load_body_points("dance"), shared)
    follower, leader, *_ = shared.mimic[0]
    assert np.allclose(motion.positions[:, follower], motion.positions[:, leader])
    contact = measure_ground_contact(shared, motion.q(), motion.contacts, motion.rate).row()
    assert contact["slip_mm"] < 1.0 and contact["slip_max_mm"] < 5.0 and contact["penetration_mm"] < 1.0
