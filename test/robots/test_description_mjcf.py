"""MJCF read as a tree: poses, masses and inertia matrix are MuJoCo's; what cannot be kept is said."""

from __future__ import annotations

import sys

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.robots import load_robot
from humanoid_control.robots.description.meshes import link_geometry
from humanoid_control.robots.description.mjcf import SPEED, is_mjcf, read_description, read_mjcf
from humanoid_control.robots.description.robot_file import RobotFile
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.robots.robot import Robot

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed")

TETRAHEDRON = "v 0 0 0\nv 0.3 0 0\nv 0 0.2 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
ROBOT = """
<mujoco model="odd">
  <compiler angle="degree" autolimits="true" meshdir="meshes" eulerseq="zyx"/>
  <default>
    <joint damping="1" armature="0.3"/>
    <default class="arm">
      <joint axis="0 1 0" range="-90 45"/><geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.3"/>
    </default>
  </default>
  <asset><mesh name="wedge" file="wedge.obj" scale="1 -2 1"/></asset>
  <worldbody>
    <geom type="plane" size="5 5 0.1"/>
    <body name="box" pos="3 0 0"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
    <body name="pelvis" pos="0 0 1" euler="30 0 0">
      <freejoint name="root"/>
      <geom name="hull" type="mesh" mesh="wedge" pos="0.1 0 0" euler="0 40 10"/>
      <geom type="ellipsoid" size="0.1 0.2 0.15" contype="0" conaffinity="0"/>
      <body name="upper" pos="0 0.2 0.4" euler="0 0 20">
        <joint name="shoulder_x" class="arm" axis="1 0 0" pos="0 0.05 0.02" ref="15"/>
        <joint name="shoulder_y" class="arm" pos="-0.03 0 0"/>
        <joint name="shoulder_z" class="arm" axis="0.1 0.2 1" range="-50 50"/>
        <geom class="arm"/>
        <body name="plate" pos="0.1 0 0"><geom type="cylinder" size="0.04 0.1"/></body>
        <body name="fore" pos="0 0 -0.3">
          <inertial pos="0.01 0.02 -0.1" mass="1.3" fullinertia="0.02 0.03 0.025 0.001 0.002 -0.003"/>
          <joint name="elbow" class="arm" ref="-20"/>
          <body name="finger" pos="0 0 -0.25">
            <joint name="slide" type="slide" axis="0 0 1" range="-0.05 0.1" ref="0.02"/>
            <geom type="sphere" size="0.03"/>
          </body>
          <body name="thumb" pos="0.05 0 -0.25">
            <joint name="follow" axis="1 0 0" range="-100 100" ref="5"/><geom type="sphere" size="0.02"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <equality><joint joint1="follow" joint2="elbow" polycoef="0.1 0.5 0 0 0"/></equality>
  <actuator>
    <motor joint="elbow" gear="20" ctrlrange="-2 2"/><position joint="shoulder_x" kp="50" forcerange="-30 25"/>
  </actuator>
  <contact><pair geom1="hull" geom2="floor_of_a_scene"/></contact>
</mujoco>
"""
JOINTS = ("shoulder_x", "shoulder_y", "shoulder_z", "elbow", "slide", "follow")


def written(folder, text=ROBOT, name="odd.xml"):
    (folder / "meshes").mkdir(exist_ok=True)
    (folder / "meshes" / "wedge.obj").write_text(TETRAHEDRON)
    (folder / name).write_text(text)
    return folder / name


def robot_of(path):
    return Robot(read_mjcf(path), RobotFile(), "floating")


def compiled(path):
    """MuJoCo's own model, without what names a scene that is not there."""
    text = path.read_text().replace('<contact><pair geom1="hull" geom2="floor_of_a_scene"/></contact>', "")
    other = path.with_name("plain.xml")
    other.write_text(text)
    model = mujoco.MjModel.from_xml_path(str(other))
    return model, mujoco.MjData(model)


def set_posture(model, data, robot, joints):
    """Put all joints of the robot, and its base, to where the robot has them; the pose of its base."""
    data.qpos[:] = model.qpos0
    for name, value in zip(robot.joint_names, joints, strict=True):
        data.qpos[model.jnt_qposadr[model.joint(name).id]] = value
    mujoco.mj_forward(model, data)
    return {model.body(b).name: pin.SE3(data.xmat[b].reshape(3, 3), data.xpos[b]) for b in range(1, model.nbody)}


def test_bodies_are_where_mujoco_has_them(tmp_path):
    path = written(tmp_path)
    robot, (model, data) = robot_of(path), compiled(path)
    assert set(robot.joint_names) == set(JOINTS)
    rng = np.random.default_rng(0)
    for _ in range(50):
        joints = rng.uniform(-1.5, 1.5, robot.n)
        theirs = set_posture(model, data, robot, joints)
        ours = robot.link_poses(robot.q(joints, theirs["pelvis"]))
        assert set(ours) >= {"pelvis", "upper", "plate", "fore", "finger", "thumb"} and "box" not in ours
        for name in ("pelvis", "upper", "plate", "fore", "finger", "thumb"):
            assert np.abs(ours[name].homogeneous - theirs[name].homogeneous).max() < 1e-9, name


def test_mass_matrix_is_mujocos_without_armature(tmp_path):
    path = written(tmp_path)
    robot, (model, data) = robot_of(path), compiled(path)
    rng = np.random.default_rng(1)
    dofs = [int(model.jnt_dofadr[model.joint(name).id]) for name in robot.joint_names]
    for _ in range(10):
        joints = rng.uniform(-1.0, 1.0, robot.n)
        theirs = set_posture(model, data, robot, joints)
        M = np.zeros((model.nv, model.nv))
        try:
            mujoco.mj_fullM(model, data, M)
        except TypeError:  # the order of arguments of releases before 4
            mujoco.mj_fullM(model, M, data.qM)
        M -= np.diag(model.dof_armature)
        H = pin.crba(robot.model, robot.data, robot.q(joints, theirs["pelvis"]))
        H = np.triu(H) + np.triu(H, 1).T
        assert np.abs(H[6:, 6:] - M[np.ix_(dofs, dofs)]).max() < 1e-9
    pelvis = model.body("pelvis").id
    assert robot.mass == pytest.approx(float(model.body_subtreemass[pelvis]), abs=1e-9)


def test_limits_efforts_and_couplings(tmp_path):
    robot = robot_of(written(tmp_path))
    k = robot.index
    assert np.degrees(robot.lower[k["shoulder_z"]]) == pytest.approx(-50)
    assert np.degrees(robot.upper[k["shoulder_y"]]) == pytest.approx(45)
    assert robot.upper[k["slide"]] == pytest.approx(0.1)
    assert np.all(robot.velocity == SPEED)
    assert robot.effort[k["elbow"]] == pytest.approx(40) and robot.effort[k["shoulder_x"]] == pytest.approx(30)
    assert robot.effort_known[[k["elbow"], k["shoulder_x"]]].all() and not robot.effort_known[k["slide"]]
    ((follower, leader, multiplier, offset),) = robot.mimic
    assert (robot.joint_names[follower], robot.joint_names[leader]) == ("follow", "elbow")
    # MuJoCo: y - y0 = 0.1 + 0.5 (x - x0)
    x = 0.3
    assert multiplier * x + offset == pytest.approx(np.radians(5) + 0.1 + 0.5 * (x - np.radians(-20)))


def test_the_coupling_is_the_one_that_mujoco_keeps(tmp_path):
    path = written(tmp_path)
    robot, (model, data) = robot_of(path), compiled(path)
    joints = robot.follow(np.full(robot.n, 0.2))
    set_posture(model, data, robot, joints)
    assert np.abs(data.efc_pos[data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)]).max() < 1e-9


def test_geoms_become_shapes_and_surfaces_where_mujoco_has_them(tmp_path):
    path = written(tmp_path)
    tree, (model, _) = read_mjcf(path), compiled(path)
    surfaces = link_geometry(tree, tmp_path, "collision")
    shapes = {s.link: s.shape for s in Robot(tree, RobotFile(), "floating").shapes}
    assert {link: s.kind for link, s in shapes.items()} == {
        "upper": "capsule",
        "plate": "cylinder",
        "finger": "sphere",
        "thumb": "sphere",
    }
    assert np.allclose(sorted([shapes["upper"].p0, shapes["upper"].p1]), [(0, 0, -0.3), (0, 0, 0)], atol=1e-12)
    # The mesh: MuJoCo's vertices, moved by the pose of its geom, are the file's, scaled, at the same place of the body.
    g = model.geom("hull").id
    mesh = int(model.geom_dataid[g])
    first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, model.geom_quat[g])
    theirs = model.mesh_vert[first : first + count] @ R.reshape(3, 3).T + model.geom_pos[g]
    ours = surfaces["pelvis"].vertices
    assert len(ours) == len(theirs) == 4
    assert np.abs(ours[:, None] - theirs[None]).max(axis=2).min(axis=1).max() < 1e-6
    around = next(e for e in tree.document.find("link[@name='pelvis']").findall("visual"))
    capsule = around.find("geometry/capsule")
    assert float(capsule.get("radius")) == pytest.approx(0.15)
    assert float(capsule.get("length")) == pytest.approx(2 * (0.2 - 0.15))


def test_published_urdf_has_no_capsules_and_the_same_surface(tmp_path):
    robot = robot_of(written(tmp_path))
    published = parse_urdf(robot.urdf, "odd")
    assert next(published.document.iter("capsule"), None) is None
    own = link_geometry(read_mjcf(tmp_path / "odd.xml"), tmp_path, "collision")["upper"].vertices
    parts = link_geometry(published, tmp_path, "collision")["upper"].vertices
    assert np.abs(own.min(axis=0) - parts.min(axis=0)).max() < 1e-9
    assert np.abs(own.max(axis=0) - parts.max(axis=0)).max() < 1e-9


def test_robot_is_loaded_by_its_path_with_its_file(tmp_path):
    path = written(tmp_path)
    path.with_suffix(".yaml").write_text("schema: humanoid_robot/1\ntitle: Odd one\nbase: floating\n")
    robot = load_robot(path)
    assert robot.title == "Odd one" and robot.name == "odd" and robot.base == "floating"


def test_ball_joint_becomes_three_hinges_and_is_said(tmp_path):
    text = '<mujoco><compiler angle="radian"/><worldbody><body name="a"><freejoint/><geom size="0.1"/>'
    text += '<body name="b" pos="0 0 1">'
    text += '<joint name="neck" type="ball" range="0 0.7"/><geom size="0.1"/></body></body></worldbody></mujoco>'
    robot = robot_of(written(tmp_path, text))
    assert robot.joint_names == ("neck_x", "neck_y", "neck_z")
    assert np.allclose(robot.upper, 0.7) and np.allclose(robot.lower, -0.7)
    assert any("ball joint 'neck'" in note for note in robot.notes)
    R = robot.link_poses(robot.q(np.array([0.2, -0.3, 0.4])))["b"].rotation
    expected = pin.exp3(np.array([0.2, 0, 0])) @ pin.exp3(np.array([0, -0.3, 0])) @ pin.exp3(np.array([0, 0, 0.4]))
    assert np.allclose(R, expected)


def test_bent_coupling_is_laid_straight_and_said(tmp_path):
    robot = robot_of(written(tmp_path, ROBOT.replace('polycoef="0.1 0.5 0 0 0"', 'polycoef="0.1 0.5 0.2 0 0"')))
    ((_, _, multiplier, _),) = robot.mimic
    assert multiplier != pytest.approx(0.5, abs=1e-3)
    assert any("nonlinearly" in note for note in robot.notes)


def test_robot_on_a_stand_turns_against_the_world(tmp_path):
    text = '<mujoco><worldbody><body name="a" pos="0 0 1"><joint name="turn" range="-1 1"/><geom size="0.1"/>'
    text += '<body name="b" pos="0.5 0 0"><joint name="other" range="-1 1"/><geom size="0.1"/></body></body>'
    robot = Robot(read_mjcf(written(tmp_path, text + "</worldbody></mujoco>")), RobotFile(), "fixed")
    assert robot.joint_names == ("turn", "other")
    assert np.allclose(robot.link_poses(robot.q(np.zeros(2)))["a"].translation, [0, 0, 1])


def test_missing_mesh_is_said_and_the_rest_is_read(tmp_path):
    path = written(tmp_path)
    (tmp_path / "meshes" / "wedge.obj").unlink()
    robot = robot_of(path)
    assert set(robot.joint_names) == set(JOINTS)
    (note,) = [n for n in robot.notes if "not found" in n]
    assert "wedge" in note


def test_impossible_inertia_is_balanced_and_said(tmp_path):
    robot = robot_of(written(tmp_path, ROBOT.replace("0.02 0.03 0.025 0.001 0.002 -0.003", "0.02 0.3 0.02 0 0 0")))
    assert any("physically impossible inertias" in note for note in robot.notes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<mujoco><worldbody><body><joint/></worldbody></mujoco>", "not an MJCF file, XML error: mismatched tag"),
        ('<mujoco><worldbody><body name="a"><geom size="1"/></body></worldbody></mujoco>', "no body with joints"),
        ("<mujoco><worldbody/></mujoco>", "no body with joints"),
        ("<mujoco><option gravity='x y z'/></mujoco>", "MuJoCo cannot read it"),
    ],
)
def test_bad_files_are_refused_in_a_line(tmp_path, text, said):
    path = written(tmp_path, text)
    with pytest.raises(RobotError) as error:
        load_robot(path)
    assert said in str(error.value) and str(path) in str(error.value) and "\n" not in str(error.value)


def test_absent_mujoco_is_said_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(RobotError, match=r"pip install 'humanoid_control\[mujoco\]'"):
        load_robot(written(tmp_path))


def test_mjcf_is_told_by_its_outermost_element(tmp_path):
    assert is_mjcf('<?xml version="1.0"?>\n<!-- <robot> -->\n<mujoco model="a"/>')
    assert is_mjcf("<mujoco>") and not is_mjcf("<mujocoinclude/>") and not is_mjcf("<robot name='mujoco'/>")
    assert not is_mjcf("") and not is_mjcf("<!-- never closed")
    urdf = tmp_path / "a.xml"
    urdf.write_text('<robot name="plain"><link name="a"/></robot>')
    assert read_description(urdf).name == "plain"


SMALL = """<mujoco model="small"><asset><mesh name="wedge" file="wedge.obj"/></asset><worldbody><body name="base">
<geom type="mesh" mesh="wedge"/>
<body name="a" pos="0 0 0.3"><joint name="j1" axis="0 1 0" range="-1 1"/><geom size="0.1"/>
<body name="b" pos="0 0 0.2"><joint name="j2" axis="0 1 0" range="-2 2"/><geom size="0.1"/></body></body>
</body></worldbody></mujoco>"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_an_mjcf_file_in_the_encoding_that_it_states_is_read_with_its_meshes(tmp_path, encoding):
    (tmp_path / "wedge.obj").write_text(TETRAHEDRON)
    text = f'<?xml version="1.0" encoding="{encoding}"?><!-- 5 \u00b0 -->' + SMALL
    (tmp_path / "small.xml").write_bytes(text.encode(encoding))
    robot = load_robot(str(tmp_path / "small.xml"), "fixed")
    assert robot.joint_names == ("j1", "j2") and not any("not found" in n for n in robot.notes)
    note = next(n for n in robot.notes if "turn by less than 6 degrees" in n)
    assert "2 of 2 joints" in note and "j1: -0.0175 .. 0.0175 rad" in note and "radians read as degrees" in note


def test_errors_of_xml_are_named_by_their_line(tmp_path):
    path = tmp_path / "cut.xml"
    path.write_text(SMALL[:200])
    with pytest.raises(RobotError, match=r"cut.xml: not an MJCF file, XML error: .*: line \d, column \d+"):
        read_mjcf(path)


def test_a_place_that_is_no_number_is_refused_without_words_of_mujoco(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    text = SMALL.replace('<asset><mesh name="wedge" file="wedge.obj"/></asset>', "")
    text = text.replace('<geom type="mesh" mesh="wedge"/>', '<geom size="0.1"/>')
    (tmp_path / "odd.xml").write_text(text.replace('pos="0 0 0.3"', 'pos="nan 0 0.3"'))
    with pytest.raises(RobotError, match="must be three numbers, got 'nan"):
        read_mjcf(tmp_path / "odd.xml")
    assert capfd.readouterr() == ("", "") and not (tmp_path / "MUJOCO_LOG.TXT").exists()
