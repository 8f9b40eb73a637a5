"""Any URDF: what is wrong with it is said in one line; what is right with it works without a robot file."""

import os
import xml.etree.ElementTree as ET

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import HumanoidError, RobotError, UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.robots.accelerations import acceleration_limits
from humanoid_control.robots.description.meshes import (
    find_mesh,
    link_geometry,
    load_mesh,
    missing_meshes,
    missing_text,
)
from humanoid_control.robots.description.tree_changes import rooted_at
from humanoid_control.robots.description.urdf import parse_urdf

ARM = """<robot name="arm">
  <link name="base"><inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <collision><origin xyz="0 0 0.1"/><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
  <link name="upper"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <collision><origin xyz="0 0 0.3"/>
    <geometry><cylinder radius="0.05" length="0.4"/></geometry></collision></link>
  <link name="lower"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
    <collision><origin xyz="0 0 0.3"/><geometry><sphere radius="0.06"/></geometry></collision></link>
  <joint name="turn" type="continuous"><parent link="base"/><child link="upper"/>
    <origin xyz="0 0 0.2"/><axis xyz="0 0 1"/></joint>
  <joint name="bend" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.1 0 0.55" rpy="0.1 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="0" effort="0"/></joint>
</robot>"""


def write(tmp_path, text, name="arm.urdf"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_plain_urdf_works_without_a_robot_file(tmp_path):
    robot = load_robot(write(tmp_path, ARM))
    assert robot.joint_names == ("turn", "bend")
    assert robot.n == robot.nq == 2, "a continuous joint is one angle"
    assert robot.velocity.min() > 0 and robot.effort.min() > 0, "0 in a URDF means unknown, not immovable"
    assert [s.name for s in robot.shapes] == ["base", "upper", "lower"]
    assert robot.pairs.tolist() == [[0, 2]], "neighbours are not watched"


BROKEN = {
    "not XML": ("hello", "XML error"),
    "not a robot": ("<sdf/>", "outermost element is <sdf>"),
    "no links": ("<robot name='x'/>", "no links"),
    "missing child": (ARM.replace('<child link="lower"/>', '<child link="lowr"/>'), "'lowr', which does not exist"),
    "two roots": (ARM.replace("</robot>", '<link name="alone"/></robot>'), "exactly one root"),
    "loop": (ARM.replace('<parent link="base"/>', '<parent link="lower"/>'), "is part of a loop"),
    "floating joint": (ARM.replace('type="revolute"', 'type="floating"'), "is 'floating'"),
    "no limit": (ARM.replace('<limit lower="-2" upper="2" velocity="0" effort="0"/>', ""), "has no <limit>"),
    "limits swapped": (ARM.replace('lower="-2" upper="2"', 'lower="2" upper="-2"'), "not below the upper"),
    "limit not a number": (ARM.replace('lower="-2"', 'lower="a"'), "not a number"),
    "comma in an angle": (
        ARM.replace('rpy="0.1 0 0"', 'rpy="0.1, 0 0"'),
        "joint 'bend': rpy of its <origin>.*'0.1, 0 0'",
    ),
    "two numbers": (ARM.replace('xyz="0 0 0.3"', 'xyz="0 0.3"'), "link 'upper': xyz of its <origin> must be three"),
    "negative mass": (ARM.replace('<mass value="2"/>', '<mass value="-2"/>'), "mass -2"),
    "xacro": (
        ARM.replace("<robot ", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ').replace(
            "</robot>", '<xacro:include filename="a"/></robot>'
        ),
        "a xacro file; turn it into a URDF first",
    ),
    "name of two lines": (
        ARM.replace('name="bend"', 'name="be&#10;nd"'),
        "the joint name 'be.*nd' contains a line break",
    ),
    "negative friction": (
        ARM.replace('<limit lower="-2"', '<dynamics damping="0" friction="-1"/><limit lower="-2"'),
        "friction of its <dynamics> must not be negative",
    ),
    "negative damping": (
        ARM.replace('<limit lower="-2"', '<dynamics damping="-1"/><limit lower="-2"'),
        "damping of its <dynamics> must not be negative",
    ),
    "double name": (ARM.replace('<link name="lower">', '<link name="upper">'), "used twice"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_wrong_is_said_in_one_line(case, tmp_path):
    text, message = BROKEN[case]
    with pytest.raises(RobotError, match=message) as e:
        load_robot(write(tmp_path, text))
    assert "\n" not in str(e.value)
    assert "arm.urdf" in str(e.value)


@pytest.mark.parametrize("size", ['sphere radius="0.00"', 'box size="0 0.1 0.1"', 'cylinder radius="0" length="1"'])
def test_a_shape_without_a_size_is_none(size, tmp_path):
    robot = load_robot(write(tmp_path, ARM.replace('sphere radius="0.06"', size)))
    assert [s.name for s in robot.shapes] == ["base", "upper"] and len(robot.pairs) == 0


def test_paths_that_are_not_urdfs(tmp_path):
    with pytest.raises(RobotError, match="folder"):
        load_robot(tmp_path)
    with pytest.raises(RobotError, match="URDF file not found"):
        load_robot(tmp_path / "missing.urdf")
    write(tmp_path, ARM)
    with pytest.raises(RobotError, match=r"arm\.urdf"):
        load_robot(tmp_path / "amr.urdf")
    os.mkfifo(tmp_path / "pipe.urdf")
    with pytest.raises(RobotError, match=r"pipe\.urdf is a device or a pipe: give a URDF file"):
        load_robot(tmp_path / "pipe.urdf")
    binary = tmp_path / "binary.urdf"
    binary.write_bytes(bytes(range(256)))
    with pytest.raises(RobotError):
        load_robot(binary)


def test_robot_file_beside_the_urdf(tmp_path):
    path = write(tmp_path, ARM)
    (tmp_path / "arm.yaml").write_text(
        "schema: humanoid_robot/1\ntitle: My arm\nanchor: base\npostures: {neutral: {bend: 0.5}}\n"
        "points: {tip: {link: lower, xyz: [0, 0, 0.3]}}\n"
    )
    robot = load_robot(path)
    assert robot.title == "My arm"
    assert robot.postures["neutral"].tolist() == [0.0, 0.5]
    tip = robot.point_positions(robot.q(), ["tip"])[0]
    assert 0.9 < tip[2] < 1.1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("anchor: bse", "did you mean base"),
        ("ancor: base", "did you mean anchor"),
        ("points: {tip: {link: lowr, xyz: [0, 0, 0]}}", "did you mean lower"),
        ("postures: {neutral: {bent: 1}}", "did you mean bend"),
        ("postures: {neutral: {bend: 3}}", "outside its limits"),
        ("base: flying", "base must be"),
        ("imitation_joints: [turm]", "did you mean turn"),
        ("feet: 3", "wrong value"),
        ("root_rpy: [0, 1]", "root_rpy must be roll, pitch, yaw"),
        ("disabled_pairs: [[base, uper]]", "did you mean upper"),
        ("collision: [{name: a, link: base, shape: sphre, radius: 1}]", "did you mean sphere"),
        ("collision: [{name: a, link: base, shape: sphere, center: [0, 0, 0], radius: -1}]", "must be positive"),
        ("collision: [{name: a, link: base, shape: sphere, radius: 1}]", "lacks a number"),
    ],
)
def test_mistakes_in_a_robot_file(line, message, tmp_path):
    path = write(tmp_path, ARM)
    (tmp_path / "arm.yaml").write_text(f"schema: humanoid_robot/1\n{line}\n")
    with pytest.raises(HumanoidError, match=message):
        load_robot(path)


def test_rooting_anew_keeps_relative_poses(tmp_path):
    """The pose of the tip in the base is the same wherever the tree is rooted, for random angles."""
    import pinocchio as pin

    tree = parse_urdf(ARM, "arm")
    models = {root: pin.buildModelFromXML(rooted_at(tree, root).text()) for root in ("base", "upper", "lower")}
    rng = np.random.default_rng(3)
    for _ in range(10):
        angles = {"turn": rng.uniform(-3, 3), "bend": rng.uniform(-2, 2)}
        poses = []
        for model in models.values():
            q, data = pin.neutral(model), model.createData()
            for joint, value in angles.items():
                q[model.joints[model.getJointId(joint)].idx_q] = value
            pin.framesForwardKinematics(model, data, q)
            a, b = (data.oMf[model.getFrameId(k)] for k in ("base", "lower"))
            poses.append((a.inverse() * b).homogeneous)
        assert np.allclose(poses[0], poses[1]) and np.allclose(poses[0], poses[2])
    with pytest.raises(RobotError, match="link 'nowhere' not found"):
        rooted_at(tree, "nowhere")


def test_a_floating_joint_under_a_massless_world_is_what_a_floating_base_says(tmp_path):
    world = (
        """<link name="world"/><joint name="free" type="floating"><parent link="world"/><child link="base"/></joint>"""
    )
    robot = load_robot(write(tmp_path, ARM.replace("</robot>", f"{world}</robot>")), "floating")
    assert robot.root_link == "base" and robot.joint_names == ("turn", "bend") and robot.nv == 8


def test_a_fixed_joint_that_mimics_another_is_just_fixed(tmp_path):
    tip = """<link name="tip"/><joint name="finger" type="fixed"><parent link="lower"/><child link="tip"/>
    <mimic joint="bend"/></joint>"""
    robot = load_robot(write(tmp_path, ARM.replace("</robot>", f"{tip}</robot>")))
    assert robot.mimic == [] and robot.joint_names == ("turn", "bend")
    text = ARM.replace("</robot>", f"{tip}</robot>").replace('<mimic joint="bend"/>', '<mimic joint="bent"/>')
    with pytest.raises(UnknownNameError, match="did you mean bend"):
        load_robot(write(tmp_path, text))


def test_pictures_that_a_parser_dislikes_are_nobodys_business(tmp_path, capfd):
    """A visual with a nameless material makes URDF parsers complain on the terminal; only the viewer looks at it."""
    picture = '<visual><geometry><sphere radius="1"/></geometry><material/></visual>'
    robot = load_robot(write(tmp_path, ARM.replace('<link name="base">', f'<link name="base">{picture}')))
    assert robot.n == 2 and robot.mass == pytest.approx(4)
    assert picture.replace("/>", " />") in robot.urdf, "the published description keeps it"
    assert capfd.readouterr() == ("", "")


def test_root_orientation_of_a_robot_that_looks_elsewhere(tmp_path):
    path = write(tmp_path, ARM)
    (tmp_path / "arm.yaml").write_text(
        "schema: humanoid_robot/1\nroot_height: {neutral: 0.5}\nroot_rpy: [0, 0, 1.5707963]\n"
        "points: {tip: {link: lower, xyz: [0, 0, 0.3]}}\n"
    )
    for base in ("fixed", "floating"):
        robot = load_robot(path, base)
        x, y, z = robot.point_positions(robot.q("zero"), ["tip"])[0]
        # Without the turn the tip is at x = 0.1, y = -0.3 sin 0.1, and z = 0.75 + 0.3 cos 0.1 above the root.
        assert (x, y, z) == pytest.approx((0.3 * np.sin(0.1), 0.1, 1.25 + 0.3 * np.cos(0.1)), abs=1e-6)


def test_a_public_tendon_robot_loads(model_file):
    robot = load_robot(model_file("muscles/cardsflow/VRpuppet/model.urdf"))
    assert robot.n >= 3


def test_unknown_robot_says_what_there_is():
    with pytest.raises(UnknownNameError, match="known: armar3"):
        load_robot("qqqq")


def test_a_link_and_a_joint_may_share_a_name(tmp_path):
    """Booster's robots do; pinocchio then has two frames of one name."""
    text = ARM.replace('name="turn"', 'name="upper"').replace('name="bend"', 'name="lower"')
    robot, plain = load_robot(write(tmp_path, text)), load_robot(write(tmp_path, ARM, "plain.urdf"))
    assert robot.joint_names == ("upper", "lower") and robot.pairs.tolist() == plain.pairs.tolist()
    q = robot.q(np.array([0.3, -0.8]))
    assert np.array_equal(robot.shape_clearance(q), plain.shape_clearance(q))
    for link, X in robot.link_poses(q).items():
        assert np.allclose(X.homogeneous, plain.link_poses(q)[link].homogeneous)
    with_file = text.replace('name="arm"', 'name="tool"')
    path = write(tmp_path, with_file, "tool.urdf")
    path.with_suffix(".yaml").write_text(
        "schema: humanoid_robot/1\nanchor: upper\npoints: {lower: {link: lower, xyz: [0, 0, 0.1]}}\n"
    )
    robot = load_robot(path, "fixed")
    assert robot.point_positions(q, ["lower"]).shape == (1, 3)


def test_a_comment_before_the_xml_declaration(tmp_path):
    for head in ("<!-- exported -->\n", "\n\n", "\ufeff", "<!-- one --> <!-- two\nlines -->\n"):
        text = head + '<?xml version="1.0" encoding="utf-8"?>\n' + ARM
        assert load_robot(write(tmp_path, text)).joint_names == ("turn", "bend")


def test_a_joint_without_range_is_fixed_where_it_must_be(tmp_path):
    text = ARM.replace('lower="-2" upper="2"', 'lower="0.5" upper="0.5"')
    locked, free = load_robot(write(tmp_path, text)), load_robot(write(tmp_path, ARM, "free.urdf"))
    assert locked.joint_names == ("turn",)
    here, there = locked.link_poses(np.array([0.2]))["lower"], free.link_poses(np.array([0.2, 0.5]))["lower"]
    assert np.allclose(here.homogeneous, there.homogeneous, atol=1e-12)


def test_a_robot_with_one_joint_moves(tmp_path):
    """pinocchio's bindings give a Jacobian of one column as a vector."""
    from humanoid_control.ik import FrameTask, PostureTask, WholeBodyIk

    robot = load_robot(write(tmp_path, ARM.replace('type="continuous"', 'type="fixed"')))
    assert robot.joint_names == ("bend",)
    solver, q = WholeBodyIk(robot), robot.q()
    rest = PostureTask(robot, np.array([0.4]))
    for _ in range(500):
        q = solver.step(q, [rest], dt=0.01).q
    assert q == pytest.approx([0.4], abs=1e-3)
    task = FrameTask(robot, "lower")
    task.set_target(pin.SE3.Identity())
    assert solver.step(q, [task], dt=0.01).q.shape == (1,)


# -- mesh files ------------------------------------------------------------------------------------------------------


def test_mesh_files_are_found_however_they_are_named(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    package = tmp_path / "some_folder"
    (package / "urdf").mkdir(parents=True)
    (package / "meshes").mkdir()
    box = trimesh.creation.box((0.2, 0.4, 0.6))
    box.export(package / "meshes" / "arm.STL")
    box.export(package / "meshes" / "arm.obj")
    here = package / "urdf"
    for name in (
        "../meshes/arm.STL",
        "package://arm_description/meshes/arm.STL",
        "package://some_folder/meshes/arm.STL",
        f"file://{package}/meshes/arm.STL",
        str(package / "meshes" / "arm.STL"),
    ):
        path = find_mesh(name, here)
        assert path is not None and path.samefile(package / "meshes" / "arm.STL"), name
    assert find_mesh("package://arm_description/meshes/leg.STL", here) is None
    for kind in ("STL", "obj"):
        mesh = load_mesh(package / "meshes" / f"arm.{kind}", np.array([1.0, 1.0, 2.0]))
        assert np.ptp(mesh.vertices, axis=0) == pytest.approx([0.2, 0.4, 1.2])
        corners = mesh.vertices[mesh.faces]
        volume = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6
        assert volume == pytest.approx(0.2 * 0.4 * 1.2)
    (package / "meshes" / "broken.stl").write_bytes(b"not a mesh")
    assert load_mesh(package / "meshes" / "broken.stl") is None


def test_a_robot_with_mesh_files_is_seen_in_pictures(tmp_path, monkeypatch):
    """Also by a relative path, and from another folder than the URDF's."""
    trimesh = pytest.importorskip("trimesh")
    from humanoid_control.viewer.meshes import link_meshes

    (tmp_path / "meshes").mkdir()
    trimesh.creation.icosphere(radius=0.1).export(tmp_path / "meshes" / "ball.stl")
    visual = '<visual><geometry><mesh filename="package://arm/meshes/ball.stl"/></geometry></visual>'
    write(tmp_path, ARM.replace('<link name="lower">', f'<link name="lower">{visual}'))
    monkeypatch.chdir(tmp_path)
    robot = load_robot("arm.urdf")
    monkeypatch.chdir("/")
    meshes = link_meshes(parse_urdf(robot.urdf, robot.name), robot.folder)
    (vertices, faces), _ = meshes["lower"][0]
    assert np.linalg.norm(vertices, axis=1) == pytest.approx(0.1, abs=1e-6) and len(faces) > 100
    geometry = link_geometry(parse_urdf(robot.urdf, robot.name), robot.folder, "visual")
    assert set(geometry) == {"lower"} and not missing_meshes(parse_urdf(robot.urdf, robot.name), robot.folder)


@pytest.mark.parametrize("kind", ["stl", "obj"])
def test_a_mesh_that_is_mirrored_by_its_scale_looks_outward(kind, tmp_path):
    """Else it is seen from inside: front faces are left out of pictures."""
    trimesh = pytest.importorskip("trimesh")
    trimesh.creation.box((0.1, 0.2, 0.3)).export(tmp_path / f"box.{kind}")
    for scale in ([1.0, 1, 1], [1.0, -1, 1], [2.0, -1, -1], [-1.0, -1, -1]):
        found = load_mesh(tmp_path / f"box.{kind}", np.array(scale))
        volume = trimesh.Trimesh(found.vertices, found.faces).volume
        assert volume == pytest.approx(0.006 * abs(np.prod(scale)), rel=1e-5)


def test_a_mesh_that_is_cut_off_is_missing(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    visuals = "".join(f'<visual><geometry><mesh filename="{n}.stl"/></geometry></visual>' for n in ("a", "b", "c"))
    write(tmp_path, ARM.replace('<link name="lower">', f'<link name="lower">{visuals}'))
    trimesh.creation.icosphere(radius=0.1).export(tmp_path / "a.stl")
    (tmp_path / "b.stl").write_bytes((tmp_path / "a.stl").read_bytes()[:-30])
    assert missing_meshes(parse_urdf((tmp_path / "arm.urdf").read_text(), "arm"), tmp_path) == ["b.stl", "c.stl"]
    assert "b.stl, c.stl" in missing_text(["b.stl", "c.stl"], "arm")


def test_a_mesh_with_a_vertex_that_no_robot_has_is_none(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    ball = trimesh.creation.icosphere(radius=0.1)
    ball.export(tmp_path / "good.stl")
    ball.vertices[3] = 1e30, 0, 0
    ball.export(tmp_path / "far.stl")
    assert load_mesh(tmp_path / "good.stl") is not None and load_mesh(tmp_path / "far.stl") is None


def arm_with(tmp_path, **limits):
    """The arm with other limits of its joint 'bend', and what is noted of it."""
    document = ET.fromstring(ARM)
    bend = next(j for j in document.findall("joint") if j.get("name") == "bend")
    for key, value in limits.items():
        bend.find("limit").set(key, value)
    path = tmp_path / "arm.urdf"
    path.write_text(ET.tostring(document, encoding="unicode"))
    robot = load_robot(str(path), "fixed")
    return robot, robot.index["bend"], " ".join(robot.notes)


def test_limits_that_are_missing_or_hardly_meant_are_noted(tmp_path):
    robot, k, notes = arm_with(tmp_path, velocity="0")
    assert robot.velocity[k] == 3.0 and "without a speed limit (bend): 3 rad/s is assumed" in notes
    robot, k, _ = arm_with(tmp_path, effort="inf")
    assert robot.effort[k] == 100.0 and not robot.effort_known[k]
    _, _, notes = arm_with(tmp_path, lower="-137.5", upper="137.5")
    assert "bend: -137.5 .. 137.5 rad" in notes and "are these degrees?" in notes
    _, _, notes = arm_with(tmp_path, lower="-3.1", upper="3.1", velocity="2")
    assert "degrees" not in notes and "speed limit (bend)" not in notes


@pytest.mark.parametrize(
    ("range_", "mimic", "at"),
    [
        (("0", "0"), 'multiplier="-1" offset="0.01"', -0.02),
        (("0", "0.04"), 'multiplier="-1"', -0.03),
        (("-0.05", "0.05"), 'multiplier="-1" offset="0.01"', -0.02),
    ],
)
def test_a_follower_goes_where_its_leader_takes_it_whatever_its_own_range_is(tmp_path, range_, mimic, at):
    fingers = "".join(
        f"""<link name="{name}"><inertial><mass value="0.1"/>
        <inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
        for name in ("left", "right")
    )
    text = f"""<robot name="gripper"><link name="palm"/>{fingers}
    <joint name="finger" type="prismatic"><parent link="palm"/><child link="left"/><axis xyz="0 1 0"/>
    <limit lower="0" upper="0.04" velocity="0.2" effort="10"/></joint>
    <joint name="other" type="prismatic"><parent link="palm"/><child link="right"/><axis xyz="0 1 0"/>
    <limit lower="{range_[0]}" upper="{range_[1]}" velocity="0.2" effort="10"/>
    <mimic joint="finger" {mimic}/></joint></robot>"""
    path = tmp_path / "gripper.urdf"
    path.write_text(text)
    robot = load_robot(str(path), "fixed")
    ((follower, leader, multiplier, offset),) = robot.mimic
    assert robot.joint_names[follower] == "other" and multiplier * 0.03 + offset == pytest.approx(at)
    assert robot.upper[leader] == pytest.approx(0.04) and robot.lower[follower] <= at <= robot.upper[follower]
    assert ("the ranges of the leaders apply" in " ".join(robot.notes)) == (range_[0] == "0")


def test_quaternions_and_accelerations_of_urdf_1_2_mean_what_they_say(tmp_path):
    """The same robot with angles, read by pinocchio; acceleration limits go to the solver as those of a robot file."""
    rng = np.random.default_rng(4)
    for _ in range(5):
        turn = pin.Quaternion(*rng.normal(size=4)).normalized()
        text = " ".join(f"{v:.17g}" for v in turn.coeffs())
        new = ARM.replace('rpy="0.1 0 0"', f'quat_xyzw="{text}"')
        new = new.replace('velocity="0"', 'acceleration="7" velocity="0"')
        angles = " ".join(f"{v:.17g}" for v in pin.rpy.matrixToRpy(turn.toRotationMatrix()))
        got = load_robot(write(tmp_path, new)).model
        by_angles = ARM.replace('"0.1 0 0"', f'"{angles}"').replace('type="continuous"', 'type="fixed"')
        wanted = pin.buildModelFromXML(by_angles)
        X = got.jointPlacements[got.getJointId("bend")]
        np.testing.assert_allclose(X.rotation, turn.toRotationMatrix(), atol=1e-12)
        np.testing.assert_allclose(X.rotation, wanted.jointPlacements[wanted.getJointId("bend")].rotation, atol=1e-12)
    robot = load_robot(write(tmp_path, new))
    assert robot.stated_accelerations == {"bend": 7.0}
    assert acceleration_limits(robot).acceleration[robot.joint_index("bend")] == 7.0
    slower = load_robot(write(tmp_path, new.replace('acceleration="7"', 'acceleration="7" deceleration="3"')))
    assert acceleration_limits(slower).acceleration[slower.joint_index("bend")] == 3.0


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ('quat_xyzw="0 0 0 0"', "quat_xyzw of its <origin> must have length 1, got '0 0 0 0'"),
        ('quat_xyzw="0 0 1"', "quat_xyzw of its <origin> must be four numbers"),
        ('quat_xyzw="0 0 0 1" rpy="0 0 0"', "has rpy and quat_xyzw: give one of them"),
    ],
)
def test_a_quaternion_that_is_none_is_named(origin, words, tmp_path):
    with pytest.raises(RobotError, match=f"joint 'bend'.*{words}"):
        load_robot(write(tmp_path, ARM.replace('rpy="0.1 0 0"', origin)))
