"""The guessed robot file of an unknown URDF, tried on robots whose points are known."""

import re
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
import yaml

from humanoid_control.collision.shapes import Box, Capsule, LinkShape, Sphere
from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.evaluation.mesh_contact import mesh_contacts
from humanoid_control.robots import CATALOGUE, MODELS, catalogue, load_robot, load_robots
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.robots.guess.limbs import _twins
from humanoid_control.robots.guess.robot_file import _above_floor, guess_mapping, guess_robot_file
from test.robots_under_test import by_kind, nightly

POINTS = ["mid_hip", "sternum", "l_gh", "r_gh", "l_elbow", "r_elbow", "l_wrist", "r_wrist"]
# What the structure does not tell, and how far the guess may be off [m]: robots without legs have no hip joints,
# Lola's arms have no wrist joint.
WEAK = {(name, "mid_hip"): 0.05 for name in ("armar3", "we4rii", "recommended")}
WEAK |= {("lola", f"{s}_wrist"): 0.05 for s in "lr"}
ALL = CATALOGUE + MODELS


def guessed_points(mapping, robot):
    """The guess in the world of the robot's zero posture, {point: (3,)}."""
    poses = robot.link_poses(robot.q("zero"))
    return {name: poses[p.link].act(p.xyz) for name, p in mapping.points.items()}


@pytest.mark.parametrize("name", ALL)
def test_the_guess_agrees_with_the_known_points(name):
    robot = load_robot(name, "fixed")
    mapping = guess_mapping(parse_urdf(robot.urdf, name))
    guess = guessed_points(mapping, robot)
    for point in POINTS:
        known = robot.point_positions(robot.q("zero"), [point])[0]
        assert np.linalg.norm(guess[point] - known) < WEAK.get((name, point), 1e-3), point
        assert mapping.points[point].weak == ((name, point) in WEAK), "a weak guess is marked, a good one is not"
    assert mapping.has_legs == (robot.joint_for("l_knee_flexion") is not None)
    assert mapping.yaw == pytest.approx(0)


@pytest.mark.parametrize("name", by_kind(ALL))
def test_guessed_points_move_as_the_known_ones(name):
    """Each is on a link that moves with the right one: at random postures the distance does not change."""
    robot = load_robot(name, "fixed")
    mapping = guess_mapping(parse_urdf(robot.urdf, name))
    rng = np.random.default_rng(3)
    offsets = []
    for _ in range(20):
        q = robot.q(rng.uniform(robot.lower, robot.upper))
        poses = robot.link_poses(q)
        guess = np.array([poses[p.link].act(p.xyz) for p in (mapping.points[name] for name in POINTS)])
        offsets.append(np.linalg.norm(guess - robot.point_positions(q, POINTS), axis=1))
    assert np.ptp(offsets, axis=0) == pytest.approx(np.zeros(len(POINTS)), abs=1e-3)


@pytest.mark.parametrize("name", ALL)
def test_guessed_joints_are_the_ones_that_imitation_moves(name):
    robot = load_robot(name, "fixed")
    mapping = guess_mapping(parse_urdf(robot.urdf, name))
    expected = {robot.joint_names[k] for k in robot.imitation_joints}
    if name == "wabian2":
        expected.add("pelvis_rotation")  # between hips and chest too, but not in the published table
    assert set(mapping.imitation_joints) == expected
    for meaning, joint in mapping.meanings.items():
        assert joint == meaning or (name == "lola" and joint.startswith("pelvis_")), "Lola's waist is its pelvis"


def anonymous(urdf: str) -> str:
    """The URDF with names that say nothing."""
    document = ET.fromstring(urdf)
    for kind, elements in (("b", document.findall("link")), ("j", document.findall("joint"))):
        names = {e.get("name"): f"{kind}{n}" for n, e in enumerate(elements)}
        for e in elements:
            e.set("name", names[e.get("name")])
        roles = ("parent", "child") if kind == "b" else ("mimic",)
        for joint in document.findall("joint"):
            for role in joint.iter():
                if role.tag in roles:
                    key = "link" if kind == "b" else "joint"
                    role.set(key, names[role.get(key)])
    return ET.tostring(document, encoding="unicode")


@pytest.mark.parametrize("name", by_kind(ALL))
def test_names_are_not_needed(name):
    robot = load_robot(name, "fixed")
    tree = parse_urdf(anonymous(robot.urdf), name)
    named, nameless = guess_mapping(parse_urdf(robot.urdf, name)), guess_mapping(tree)
    links = dict(zip([e.get("name") for e in ET.fromstring(robot.urdf).findall("link")], tree.links, strict=True))
    for point in POINTS:
        assert nameless.points[point].link == links[named.points[point].link]
        assert nameless.points[point].xyz == pytest.approx(named.points[point].xyz, abs=1e-12)
    assert nameless.has_legs == named.has_legs


def turned(urdf: str, yaw: float) -> str:
    """The same robot on a root link that looks elsewhere."""
    document = ET.fromstring(urdf)
    ET.SubElement(document, "link", name="turned_root")
    joint = ET.SubElement(document, "joint", name="turned_joint", type="fixed")
    ET.SubElement(joint, "parent", link="turned_root")
    ET.SubElement(joint, "child", link="base_link")
    ET.SubElement(joint, "origin", rpy=f"0 0 {-yaw}", xyz="0 0 0")
    return ET.tostring(document, encoding="unicode")


@pytest.mark.parametrize("yaw", [nightly(np.pi), -np.pi / 2])
def test_a_robot_that_looks_elsewhere_is_turned_round(yaw, tmp_path):
    original = load_robot("hrp2", "fixed")
    path = tmp_path / "turned.urdf"
    path.write_text(turned(original.urdf, yaw))
    _, mapping = guess_robot_file(path)
    assert np.exp(1j * mapping.yaw) == pytest.approx(np.exp(1j * yaw))
    robot = load_robot(path, "fixed")
    a, b = (r.point_positions(r.q("zero"), POINTS) for r in (original, robot))
    assert a - a[0] == pytest.approx(b - b[0], abs=1e-3), "left is left and forward is forward again"


@pytest.mark.parametrize("name", by_kind(["armar3", "hrp2", "lola"]))
def test_the_file_is_written_once_and_can_be_used(name, tmp_path):
    original = load_robot(name, "fixed")
    path = tmp_path / "unknown.urdf"
    path.write_text(original.urdf)
    written, _ = guess_robot_file(path)
    assert written == tmp_path / "unknown.yaml"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["unknown.urdf", "unknown.yaml"]
    robot = load_robot(path, "fixed")
    tolerance = 0.05 if name in {n for n, _ in WEAK} else 1e-3
    assert robot.segment_lengths() == pytest.approx(original.segment_lengths(), abs=tolerance)
    before = written.read_text()
    with pytest.raises(RobotError, match="exists already") as e:
        guess_robot_file(path)
    assert "\n" not in str(e.value) and written.read_text() == before
    text = "\n".join(line for line in before.splitlines() if not line.startswith("  -"))
    # The root's height where there is no sole, and every weak point, says so.
    assert text.count("GUESS") == 1 + (not robot.feet) + sum(1 for n, _ in WEAK if n == name)


@pytest.mark.parametrize("name", ["lola", nightly("wabian2")])
def test_soles_are_found_where_they_are(name, tmp_path):
    """Those of the catalogue, toes too, from the URDF alone; then the robot can stand on them."""
    original = load_robot(name, "floating")
    path = tmp_path / "unknown.urdf"
    path.write_text(original.urdf)
    guess_robot_file(path)
    robot = load_robot(path, "floating")
    assert [(f.name, f.link) for f in robot.feet] == sorted((f.name, f.link) for f in original.feet)
    for found, true in zip(robot.feet, sorted(original.feet, key=lambda f: f.name), strict=True):
        assert found.corners() == pytest.approx(true.corners(), abs=0.002), found.name
    poses = robot.link_poses(robot.q("zero"))
    assert min(poses[f.link].act(c)[2] for f in robot.feet for c in f.corners()) == pytest.approx(0.0, abs=1e-3)


def test_feet_that_hang_on_rods_are_not_looked_for_at_the_knees(tmp_path):
    """The robot stands on a part that is no end of a leg: a sole above it is refused with the part."""
    robot = load_robot("lola", "floating")
    poses = robot.link_poses(robot.q("zero"))
    root = poses[robot.root_link].inverse()
    ground = min(poses[f.link].act(c)[2] for f in robot.feet for c in f.corners())
    x, y, z = root.act(np.array([0.0, 0.1, ground - 0.2]))
    box = f'<collision><origin xyz="{x} {y} {z}"/><geometry><box size="0.2 0.1 0.02"/></geometry></collision>'
    joint = f'<joint name="rod" type="fixed"><parent link="{robot.root_link}"/><child link="rod_foot"/></joint>'
    path = tmp_path / "unknown.urdf"
    path.write_text(robot.urdf.replace("</robot>", f'<link name="rod_foot">{box}</link>{joint}</robot>'))
    with pytest.raises(RobotError, match=r"is 0\.2\d m below the soles found on .*do rods close loops in the legs"):
        guess_robot_file(path)
    assert [p.name for p in tmp_path.iterdir()] == ["unknown.urdf"]


def test_meshes_get_capsules_that_stand_in_for_them(tmp_path):
    original = load_robot("we4rii", "fixed")
    path = tmp_path / "mesh.urdf"
    path.write_text(
        re.sub(r"<(box|cylinder|sphere) [^>]*/>", '<mesh filename="package://nowhere/x.stl"/>', original.urdf)
    )
    guess_robot_file(path)
    robot = load_robot(path, "fixed")
    arms = {f"{s}_{k}_arm_guess" for s in "lr" for k in ("upper", "lower")}
    assert {s.name for s in robot.shapes} == {"torso_guess", *arms}
    assert len(robot.pairs) >= 6, "both arms are kept from each other and from the trunk"
    assert robot.shape_clearance(robot.q("neutral")).min() > 0.005
    for item in robot.shapes:
        a, b = {"torso_guess": ("sternum", "mid_hip")}.get(item.name) or (
            item.name[:2] + p for p in (("gh", "elbow") if "upper" in item.name else ("elbow", "wrist"))
        )
        link = robot.link_poses(robot.q("zero"))[item.link]
        ends = robot.point_positions(robot.q("zero"), [a, b])
        length = np.linalg.norm(ends[1] - ends[0])
        axis = link.act(np.array(item.shape.p1)) - link.act(np.array(item.shape.p0))
        assert np.linalg.norm(axis) + 2 * item.shape.radius == pytest.approx(length, abs=1e-3)
        assert pin.Quaternion.FromTwoVectors(axis, ends[1] - ends[0]).angularDistance(pin.Quaternion.Identity()) < 0.01


def test_hands_that_reach_into_the_thighs_hang_outside_in_the_neutral_posture(tmp_path, monkeypatch):
    """As TALOS's: with both hands inside at zero, no shape of theirs would be kept away from the thighs there."""
    trimesh = pytest.importorskip("trimesh")
    monkeypatch.setattr("humanoid_control.robots.guess.contact_shapes.DRAWS", 40)
    robot, document = load_robot("hrp2", "fixed"), ET.fromstring(load_robot("hrp2", "fixed").urdf)
    tip = robot.point_positions(robot.q("zero"), ["l_wrist"])[0] - [0, 0.05, 0.1]
    hands = {s + "_hand" for s in "lr"}
    for link in document.findall("link"):
        if link.get("name") not in ("l_thigh", "r_thigh"):
            for e in [*link.findall("collision"), *link.findall("visual")]:
                link.remove(e)
        if link.get("name") in hands:
            place = robot.link_poses(robot.q("zero"))[link.get("name")]
            at = place.actInv(tip * ([1, 1, 1] if link.get("name") == "l_hand" else [1, -1, 1]))
            trimesh.creation.box(extents=[0.06, 0.14, 0.2]).export(tmp_path / "hand.stl")
            collision = ET.SubElement(link, "collision")
            ET.SubElement(collision, "origin", xyz=" ".join(f"{v:.6f}" for v in at), rpy="0 0 0")
            ET.SubElement(ET.SubElement(collision, "geometry"), "mesh", filename="hand.stl")
    path = tmp_path / "inside.urdf"
    path.write_text(ET.tostring(document, encoding="unicode"))
    _, mapping = guess_robot_file(path)
    robot = load_robot(path, "fixed")
    assert len(mapping.neutral) == 2 and mapping.to_json()["neutral"] == mapping.neutral
    for joint, angle in mapping.neutral.items():
        assert robot.postures["neutral"][robot.joint_index(joint)] == angle
    assert mesh_contacts(robot, robot.postures["neutral"][None]).share == 0.0


def test_only_what_has_no_shape_is_guessed(tmp_path):
    """Without shapes on the forearms the other shapes of the URDF stay as they are, and two capsules come in."""
    document = ET.fromstring(load_robot("we4rii", "fixed").urdf)
    for link in document.findall("link"):
        if link.get("name") in ("l_forearm", "r_forearm"):
            for e in link.findall("collision"):
                link.remove(e)
    path = tmp_path / "half.urdf"
    path.write_text(ET.tostring(document, encoding="unicode"))
    before = {s.name: s for s in load_robot(path, "fixed").shapes}
    guess_robot_file(path)
    after = {s.name: s for s in load_robot(path, "fixed").shapes}
    assert set(after) - set(before) == {"l_lower_arm_guess", "r_lower_arm_guess"}
    assert all(after[name] == shape for name, shape in before.items())


def test_a_hip_joint_that_both_legs_share_is_no_waist(tmp_path):
    """NAO: one motor turns both hips, so the right hip's joint mimics the left one's, and the legs look unequal."""
    robot = load_robot("hrp2", "fixed")
    urdf = re.sub(
        r'(<joint name="r_hip_rotation".*?)</joint>',
        r'\1<mimic joint="l_hip_rotation"/></joint>',
        robot.urdf,
        flags=re.DOTALL,
    )
    mapping, plain = (guess_mapping(parse_urdf(text, "hrp2")) for text in (urdf, robot.urdf))
    assert mapping.has_legs and mapping.imitation_joints == plain.imitation_joints
    for point in POINTS:
        assert mapping.points[point].link == plain.points[point].link
        assert mapping.points[point].xyz == pytest.approx(plain.points[point].xyz, abs=1e-9)


@pytest.mark.parametrize(
    "left, right, twins",
    [
        ("LShoulderPitch", "RShoulderPitch", True),
        ("arm_left_1_joint", "arm_right_1_joint", True),
        ("l_hand", "r_hand", True),
        ("LHipYawPitch", "RShoulderPitch", False),
        ("left_leg", "right_arm", False),
        ("lower", "rear", False),
    ],
)
def test_twins_differ_in_their_side_alone(left, right, twins):
    assert _twins(left, right) == _twins(right, left) == twins


# -- what cannot be guessed ------------------------------------------------------------------------------------------


def without_branches(urdf: str, first_joints: list[str]) -> str:
    """The URDF without the branches that begin with some joints."""
    document = ET.fromstring(urdf)
    gone = set()
    while True:
        more = [
            j for j in document.findall("joint")
            if j.get("name") in first_joints or j.find("parent").get("link") in gone
        ]  # fmt: skip
        if not more:
            return ET.tostring(document, encoding="unicode")
        for j in more:
            gone.add(j.find("child").get("link"))
            document.remove(j)
        for link in [e for e in document.findall("link") if e.get("name") in gone]:
            document.remove(link)


def test_a_robot_without_arms_is_refused(tmp_path):
    urdf = load_robot("hrp2").urdf
    path = tmp_path / "legs.urdf"
    path.write_text(without_branches(urdf, ["l_shoulder_flexion", "r_shoulder_flexion"]))
    with pytest.raises(RobotError, match=r"legs\.urdf: no arms found") as e:
        guess_robot_file(path)
    for seen in ("l_hip_rotation", "r_hip_rotation", "legs by their names", "docs/adding_a_robot.md"):
        assert seen in str(e.value), "what was seen, and what to do"
    assert "\n" not in str(e.value) and [p.name for p in tmp_path.iterdir()] == ["legs.urdf"]
    robot = load_robot(path)
    with pytest.raises(RobotError, match=f"lacks the points {', '.join(POINTS)}") as e:
        robot.segment_lengths()
    assert "\n" not in str(e.value)


def test_arms_without_an_elbow_are_refused(tmp_path):
    path = tmp_path / "stumps.urdf"
    stumps = without_branches(load_robot("hrp2").urdf, ["l_elbow_flexion", "r_elbow_flexion"])
    path.write_text(stumps.replace('xyz="0 0.25 0.181"', 'xyz="0 0.25 0.2"'))
    with pytest.raises(RobotError, match=r"no arms found.*l_shoulder_flexion / r_shoulder_flexion \(3 joints, "):
        guess_robot_file(path)


def test_only_some_points_missing_are_named(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(load_robot("hrp2").urdf)
    written, _ = guess_robot_file(path)
    content = yaml.safe_load(written.read_text())
    del content["points"]["l_wrist"], content["points"]["sternum"]
    written.write_text(yaml.safe_dump(content))
    with pytest.raises(RobotError, match="lacks the points sternum, l_wrist: imitation"):
        load_robot(path).segment_lengths()


def test_a_stranger_is_guessed_once_and_kept_away_from_its_urdf(tmp_path, monkeypatch):
    monkeypatch.setenv("HUMANOID_HOME", str(tmp_path / "home"))
    path = tmp_path / "model" / "stranger.urdf"
    path.parent.mkdir()
    path.write_text(load_robot("hrp2").urdf)
    robot = load_robots([path], "floating", imitate=True, guess=True)[0]
    assert robot.n == load_robot("hrp2").n and len(robot.feet) == 2
    assert [p.name for p in path.parent.iterdir()] == ["stranger.urdf"], "nothing is written next to the URDF"
    monkeypatch.setattr(catalogue, "_lay_shapes", lambda *_: pytest.fail("draft it again"))
    assert load_robot(path, "floating", guess=True).points.keys() == robot.points.keys()
    path.with_suffix(".yaml").write_text("schema: humanoid_robot/1\ntitle: Own\n")
    assert load_robot(path, guess=True).title == "Own", "a robot file next to the URDF goes first"


def test_a_folder_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    path = tmp_path / "robot.urdf"
    path.write_text(load_robot("hrp2").urdf)

    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    with pytest.raises(ConfigError, match="cannot be written: No space left"):
        guess_robot_file(path)
    assert not (tmp_path / "robot.yaml").exists()


@pytest.mark.parametrize(
    ("shape", "lowest"),
    [
        (Sphere((0.3, 0.0, -2.5), 0.05), -2.55),
        (Capsule((0.0, 0.0, -2.0), (0.3, 0.0, -2.5), 0.05), -2.55),
        (Capsule((0.0, 0.0, -2.5), (0.3, 0.0, -2.0), 0.05), -2.55),
        (Box((0.0, 0.0, -2.5), (0.1, 0.3, 0.2), (np.pi / 2, 0.0, 0.0)), -2.65),
    ],
    ids=["sphere", "capsule", "capsule the other way", "box that lies on its side"],
)
def test_without_soles_a_robot_stands_on_its_lowest_shape(shape, lowest):
    robot = load_robot("armar3", "fixed")
    tree = parse_urdf(robot.urdf, "armar3")
    fits = [SimpleNamespace(shapes=[LinkShape("lowest", tree.root, shape)])]
    assert _above_floor(SimpleNamespace(feet=(), fits=fits), robot, tree) == pytest.approx(-lowest, abs=1e-9)
