"""Shapes around first contacts: they tell contact from freedom where shapes around whole bodies cannot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from scipy.ndimage import binary_dilation, label

from humanoid_control.collision import Box, LinkShape
from humanoid_control.collision.capsule_distance import capsule_capsule
from humanoid_control.collision.coal_backend import CoalPairs, build_geometry, watched_pairs
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.evaluation.mesh_contact import mesh_contacts
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.robots.guess.bodies import Bodies
from humanoid_control.robots.guess.capsule_fit import COUNT, CapsuleFit, closest_on_segments
from humanoid_control.robots.guess.contact_shapes import CLEAR, EARLY_MOST, ContactFit, LinkPair, fit_contacts
from humanoid_control.robots.guess.overlaps import (
    GAP,
    ROOM,
    TURN,
    crowded_links,
    links_overlapping_at_rest,
    parted_posture,
    spread_posture,
)
from humanoid_control.robots.guess.robot_file import contact_text
from humanoid_control.robots.robot import CONTACT_MARGIN
from test.robots_under_test import nightly

trimesh = pytest.importorskip("trimesh")
INERTIA = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


def joint(name: str, parent: str, child: str, xyz: str, axis: str) -> str:
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/><origin xyz="{xyz}"/>'
        f'<axis xyz="{axis}"/><limit lower="-2" upper="2" velocity="1" effort="1"/></joint>'
    )


def shoulder(tmp_path: Path, waist: float = -0.02, extra: str = "") -> Robot:
    """A chest with a shoulder, under which it is as wide as the arm's axis is far out; an arm with two joints."""
    wide = trimesh.creation.box(bounds=[[-0.1, -0.15, -0.3], [0.1, 0.15, waist]])
    narrow = trimesh.creation.box(bounds=[[-0.1, -0.15, -0.3], [0.1, 0.02, 0.1]])
    trimesh.util.concatenate([wide, narrow]).export(tmp_path / "chest.stl")
    trimesh.creation.box(bounds=[[-0.03, -0.03, -0.4], [0.03, 0.03, 0.03]]).export(tmp_path / "arm.stl")
    links = "".join(
        f"<link name='{n}'>{INERTIA}"
        + (f'<collision><geometry><mesh filename="{n}.stl"/></geometry></collision>' if n != "mid" else "")
        + "</link>"
        for n in ("chest", "mid", "arm")
    )
    joints = joint("roll", "chest", "mid", "0 0.2 0.05", "1 0 0") + joint("pitch", "mid", "arm", "0 0 0", "0 1 0")
    (tmp_path / "r.urdf").write_text(f"<robot name='r'>{links}{joints}</robot>")
    (tmp_path / "r.yaml").write_text(f"schema: humanoid_robot/1\nimitation_joints: [roll, pitch]\n{extra}")
    return load_robot(str(tmp_path / "r.urdf"), "fixed")


def with_shapes(robot: Robot, shapes: tuple[LinkShape, ...], postures: np.ndarray) -> np.ndarray:
    """Signed least distance of the shapes in some postures, by coal."""
    pairs = watched_pairs(robot.model, shapes, set())
    assert {frozenset((shapes[i].link, shapes[j].link)) for i, j in pairs} == {frozenset(("chest", "arm"))}
    measured = CoalPairs(robot.model, build_geometry(robot.model, shapes, pairs))
    out = []
    for x in postures:
        pin.forwardKinematics(robot.model, robot.data, robot.q(np.asarray(x)))
        out.append(measured.all_distances(robot.data).min())
    return np.array(out)


GRID = np.stack(np.meshgrid(np.linspace(-2, 2, 41), np.linspace(-2, 2, 21), indexing="ij"), axis=-1).reshape(-1, 2)


def test_shapes_around_first_contacts_tell_contact_from_freedom(tmp_path):
    """Over a grid of both joints: shapes meet where meshes first touch, and seldom where they are free."""
    robot = shoulder(tmp_path)
    tree = parse_urdf((tmp_path / "r.urdf").read_text(), "r")
    (fit,) = fit_contacts(robot, Bodies(tree, tmp_path), [("chest", "arm")])
    assert 0.05 < fit.touched < 0.9 and fit.early <= min(EARLY_MOST, fit.touched) and fit.missed < 0.15
    assert {(s.link, s.against) for s in fit.shapes} == {("chest", ("arm",)), ("arm", ("chest",))}
    distance, touching = with_shapes(robot, fit.shapes, GRID), mesh_contacts(robot, GRID).touching[:, 0]
    assert 100 < touching.sum() < len(GRID) - 100
    # Where motions from the neutral posture, in the middle of the grid, first meet a contact: not what lies behind.
    grid = touching.reshape(41, 21)
    parts = label(~grid)[0]
    border = (grid & binary_dilation(parts == parts[20, 10])).ravel()
    assert border.sum() > 20 and np.mean(distance[border] > 0.005) < 0.15 and distance[border].max() < 0.05
    assert np.mean(distance[(parts == parts[20, 10]).ravel()] < 0) < 0.1
    whole = (
        LinkShape("c", "chest", Box((0.0, 0.0, -0.1), (0.2, 0.3, 0.4), (0.0, 0.0, 0.0))),
        LinkShape("a", "arm", Box((0.0, 0.0, -0.185), (0.06, 0.06, 0.43), (0.0, 0.0, 0.0))),
    )
    assert np.mean(with_shapes(robot, whole, GRID)[~touching] < 0) > 0.2, "boxes around the bodies do not"


@pytest.mark.nightly
def test_shapes_that_are_near_at_rest_leave_the_joints_free(tmp_path):
    """A plate a little above a table, as at a waist: what is free by the meshes near the neutral posture stays so."""
    robot = shoulder(tmp_path)
    trimesh.creation.box(bounds=[[-0.1, 0.05, -0.3], [0.1, 0.35, 0.0]]).export(tmp_path / "chest.stl")
    trimesh.creation.box(bounds=[[-0.1, -0.1, -0.03], [0.1, 0.1, 0.03]]).export(tmp_path / "arm.stl")
    tree = parse_urdf((tmp_path / "r.urdf").read_text(), "r")
    (fit,) = fit_contacts(robot, Bodies(tree, tmp_path), [("chest", "arm")])
    small = GRID * 0.15
    free = ~mesh_contacts(robot, small).touching.any(axis=1)
    assert 0.1 < free.mean() < 0.5
    at_rest = with_shapes(robot, fit.shapes, np.zeros((1, 2)))[0]
    assert at_rest > 0.01
    forbidden = with_shapes(robot, fit.shapes, small) < min(CONTACT_MARGIN, at_rest)
    corners = np.stack(np.meshgrid([-0.1, 0.1], [-0.1, 0.1], [-0.03]), axis=-1).reshape(-1, 3)
    R = [trimesh.transformations.euler_matrix(a, b, 0.0, "rxyz")[:3, :3] for a, b in small]
    height = np.array([0.05 + (corners @ X.T)[:, 2].min() for X in R])  # of the plate above the table
    assert (height[free] > -1e-9).all(), "by the meshes as by the corners"
    assert forbidden[height > CLEAR].mean() < 0.05 and forbidden[~free].mean() > 0.9


@pytest.mark.nightly
def test_both_arms_get_mirrored_shapes(tmp_path):
    """An arm on either side of a chest: the contacts of both are held on both, by mirrored shapes."""
    shoulder(tmp_path)
    chest = trimesh.load(tmp_path / "chest.stl")
    other = chest.copy()
    other.apply_transform(np.diag([1.0, -1, 1, 1]))
    trimesh.util.concatenate([chest, other]).export(tmp_path / "chest.stl")
    text = (tmp_path / "r.urdf").read_text().replace("</robot>", "")
    for name in ("mid", "arm"):
        text += f"<link name='{name}2'>{INERTIA}" + text.split(f"<link name='{name}'>{INERTIA}")[1].split("</link>")[0]
        text += "</link>"
    text += joint("roll2", "chest", "mid2", "0 -0.2 0.05", "1 0 0") + joint("pitch2", "mid2", "arm2", "0 0 0", "0 1 0")
    (tmp_path / "two.urdf").write_text(text + "</robot>")
    robot, tree = load_robot(str(tmp_path / "two.urdf"), "fixed"), parse_urdf(text + "</robot>", "two")
    bodies = Bodies(tree, tmp_path, np.array([0.0, 1, 0]))
    fits = fit_contacts(robot, bodies, [("arm", "chest"), ("arm2", "chest")])
    assert [fit.links for fit in fits] == [("arm", "chest"), ("arm2", "chest")]
    for ours, theirs in zip(*(fit.shapes for fit in fits), strict=True):
        assert theirs.against == (("chest",) if ours.link == "arm" else ("arm2",))
        assert bodies.image_shape(ours.link, ours.shape) == theirs.shape
    assert len(fits[0].shapes) >= 2 and all(f.missed < 0.15 and f.early < min(EARLY_MOST, f.touched) for f in fits)


@pytest.mark.nightly
def test_links_whose_meshes_never_touch_get_no_shapes(tmp_path):
    robot = shoulder(tmp_path, waist=-0.25)
    (tmp_path / "arm.stl").unlink()
    trimesh.creation.icosphere(radius=0.1).export(tmp_path / "arm.stl")
    tree = parse_urdf((tmp_path / "r.urdf").read_text(), "r")
    assert fit_contacts(robot, Bodies(tree, tmp_path), [("chest", "arm")]) == [ContactFit(("chest", "arm"))]
    assert "never touched" in contact_text(ContactFit(("chest", "arm")))
    assert "GUESS" in contact_text(ContactFit(("chest", "arm"), touched=0.3))


def test_the_text_of_a_fit_ends_with_the_shares_of_wrong_postures():
    box = LinkShape("a", "arm", Box((0.0, 0.0, 0.0), (0.1, 0.1, 0.4), (0.0, 0.0, 0.0)), ("chest",))
    fit = ContactFit(("chest", "arm"), (box,), touched=0.3, shrunk=0.004, missed=0.05, early=0.12)
    shares = "they miss 5 % of the contacts and forbid 12 % of the free postures"
    assert contact_text(fit) == f"around the parts that touch first, 4 mm inside it; {shares}"


ROWS = """collision:
  - {name: chest, link: chest, shape: capsule, p0: [0, 0, -0.2], p1: [0, 0, 0], radius: 0.3}
  - {name: arm, link: arm, shape: capsule, p0: [0, 0, -0.3], p1: [0, 0, 0], radius: 0.03}
  - {name: chest_to_arm, link: chest, shape: sphere, center: [0, 0.1, -0.1], radius: 0.03, against: [arm]}
  - {name: arm_to_chest, link: arm, shape: sphere, center: [0, 0, -0.3], radius: 0.03, against: [chest]}
"""


def test_a_shape_against_a_link_is_kept_apart_from_that_only(tmp_path):
    robot = shoulder(tmp_path, extra=ROWS)
    assert robot.pairs.tolist() == [[2, 3]], "the whole bodies overlap at rest"
    assert links_overlapping_at_rest(robot) == [("arm", "chest")]
    robot = shoulder(tmp_path, extra=ROWS.replace("radius: 0.3}", "radius: 0.1}"))
    assert robot.pairs.tolist() == [[0, 1], [2, 3]] and links_overlapping_at_rest(robot) == []
    unwatched = ROWS.replace("radius: 0.3}", "radius: 0.1}") + "unwatched_links: [[arm, chest]]\n"
    assert shoulder(tmp_path, extra=unwatched).pairs.tolist() == [[2, 3]]
    one_sided = ROWS.replace("radius: 0.3}", "radius: 0.1}").replace(", against: [chest]", "")
    assert shoulder(tmp_path, extra=one_sided).pairs.tolist() == [[0, 1], [0, 3], [1, 2], [2, 3]]
    with pytest.raises(UnknownNameError, match=r"chesst.*arm_to_chest"):
        shoulder(tmp_path, extra=ROWS.replace("against: [chest]", "against: [chesst]"))
    with pytest.raises(RobotError, match="must be a list of links"):
        shoulder(tmp_path, extra=ROWS.replace("against: [chest]", "against: chest"))


def hanging_arm(tmp_path: Path, half_width: float) -> str:
    """A hip of some width and beside it a hand, its inner edge at 0.08 m, 0.5 m below its shoulder; the robot file."""
    box = [[-0.1, -half_width, -0.8], [0.1, half_width, -0.5]]
    trimesh.creation.box(bounds=box).export(tmp_path / "hip.stl")
    trimesh.creation.box(bounds=[[-0.03, -0.03, -0.32], [0.03, 0.03, -0.2]]).export(tmp_path / "hand.stl")
    mesh = '<collision><geometry><mesh filename="{}.stl"/></geometry></collision>'
    links = "".join(
        f"<link name='{n}'>{INERTIA}{mesh.format(n) if n in ('hip', 'hand') else ''}</link>"
        for n in ("hip", "a", "b", "c", "hand")
    )
    joints = [("pitch", "hip", "a", "0 0.11 0", "0 1 0"), ("roll", "a", "b", "0 0 0", "1 0 0")]
    joints += [("yaw", "b", "c", "0 0 -0.1", "0 0 1"), ("elbow", "c", "hand", "0 0 -0.2", "0 1 0")]
    (tmp_path / "r.urdf").write_text(f"<robot name='r'>{links}{''.join(joint(*j) for j in joints)}</robot>")
    size = f"[0.2, {2 * half_width:g}, 0.3]"
    rows = [
        f'{{"name": "hip", "link": "hip", "shape": "box", "center": [0, 0, -0.65], "size": {size}}}',
        '{"name": "hand", "link": "hand", "shape": "box", "center": [0, 0, -0.26], "size": [0.06, 0.06, 0.12]}',
    ]
    file = "schema: humanoid_robot/1\nimitation_joints: [pitch, roll, yaw, elbow]\ncollision:\n"
    file += "".join(f"  - {row}\n" for row in rows)
    (tmp_path / "r.yaml").write_text(file)
    return file


def test_arms_that_touch_at_zero_are_turned_out_by_the_least_angle(tmp_path):
    """A hand that hangs 20 mm inside a hip: its roll joint, 0.5 m above, parts them; what touches nothing stays."""
    file = hanging_arm(tmp_path, 0.1)
    robot = load_robot(str(tmp_path / "r.urdf"), "fixed")
    assert links_overlapping_at_rest(robot, far=True) == [("hand", "hip")] and not len(robot.pairs)
    assert links_overlapping_at_rest(robot) == [], "shapes around first contacts are for few joints"
    bodies = Bodies(parse_urdf(robot.urdf, "r"), tmp_path)
    found = parted_posture(robot, bodies, [["pitch", "roll", "yaw"]])
    angle = found.pop("roll")
    gaps = [0.01 - 0.03 * np.cos(a) + 0.5 * np.sin(a) for a in (angle - TURN, angle)]  # of its upper inner edge
    assert not found and gaps[0] < GAP < gaps[1]
    (tmp_path / "r.yaml").write_text(f"{file}postures: {{neutral: {{roll: {angle}}}}}\n")
    robot = load_robot(str(tmp_path / "r.urdf"), "fixed")
    assert len(robot.pairs) == 1 and parted_posture(robot, bodies, [["pitch", "roll", "yaw"]]) == {}


def test_an_arm_that_hangs_close_gets_room_and_one_that_has_room_stays(tmp_path):
    hanging_arm(tmp_path, 0.07)
    robot = load_robot(str(tmp_path / "r.urdf"), "fixed")
    assert robot.pair_distances(robot.q())[0] == pytest.approx(0.01)
    found = spread_posture(robot, [["pitch", "roll", "yaw"]])
    assert set(found) == {"roll"} and found["roll"] > 0.0, "outward"
    posture = robot.postures["neutral"].copy()
    posture[robot.joint_index("roll")] = found["roll"]
    assert ROOM - 0.02 * TURN < robot.pair_distances(robot.q(posture))[0] < ROOM + 0.5 * TURN + 1e-3
    hanging_arm(tmp_path, 0.04)
    assert spread_posture(load_robot(str(tmp_path / "r.urdf"), "fixed"), [["pitch", "roll", "yaw"]]) == {}


def two_legs(tmp_path: Path, radius: float) -> tuple[Robot, Bodies]:
    """Straight legs 0.14 m apart that roll, with capsules around them, and a foot with its heel inside its shank."""
    trimesh.creation.box(bounds=[[-0.03, -0.03, -0.8], [0.03, 0.03, -0.1]]).export(tmp_path / "leg.stl")
    trimesh.creation.box(bounds=[[-0.1, -0.03, -0.1], [0.1, 0.03, 0.2]]).export(tmp_path / "foot.stl")
    mesh = '<collision><geometry><mesh filename="{}.stl"/></geometry></collision>'
    links = f"<link name='hip'>{INERTIA}</link><link name='ankle'>{INERTIA}</link>" + "".join(
        f"<link name='{n}'>{INERTIA}{mesh.format(kind)}</link>"
        for n, kind in (("left", "leg"), ("right", "leg"), ("foot", "foot"))
    )
    joints = joint("l", "hip", "left", "0 0.1 0", "1 0 0") + joint("r", "hip", "right", "0 -0.1 0", "1 0 0")
    joints += joint("a", "left", "ankle", "0 0 -0.9", "1 0 0") + joint("b", "ankle", "foot", "0 0 0", "0 1 0")
    (tmp_path / "legs.urdf").write_text(f"<robot name='legs'>{links}{joints}</robot>")
    rows = "".join(
        f"  - {{name: {n}, link: {n}, shape: capsule, p0: [0, 0, -0.6], p1: [0, 0, -0.1], radius: {radius}}}\n"
        for n in ("left", "right")
    )
    rows += "  - {name: foot, link: foot, shape: sphere, center: [0.1, 0, 0], radius: 0.03}\n"
    text = f"schema: humanoid_robot/1\nimitation_joints: [l, r]\ncollision:\n{rows}"
    (tmp_path / "legs.yaml").write_text(text)
    robot = load_robot(str(tmp_path / "legs.urdf"), "fixed")
    return robot, Bodies(parse_urdf(robot.urdf, "legs"), tmp_path)


def test_links_are_crowded_whose_shapes_are_near_where_their_meshes_are_not(tmp_path):
    robot, bodies = two_legs(tmp_path, 0.09)
    all_joints = list(range(robot.n))
    heel = ("foot", "left")
    assert crowded_links(robot, bodies, all_joints) == [heel, ("left", "right")], "shapes 20 mm apart at rest"
    assert crowded_links(robot, bodies, [robot.joint_index("b")]) == [heel], "these legs are not moved"
    robot, bodies = two_legs(tmp_path, 0.03)
    assert crowded_links(robot, bodies, all_joints) == [heel], "shapes as thin as the meshes"
    trimesh.creation.box(bounds=[[-0.1, -0.03, -0.1], [0.1, 0.03, 0.05]]).export(tmp_path / "foot.stl")
    assert crowded_links(robot, Bodies(parse_urdf(robot.urdf, "legs"), tmp_path), all_joints) == []


def thighs(tmp_path: Path) -> tuple[Robot, Bodies]:
    """Elliptic thighs, 0.26 m deep and 0.13 m wide, 12 mm apart, that turn about themselves and swing sideways."""
    thigh = trimesh.creation.cylinder(radius=1.0, height=0.35, sections=48)
    thigh.apply_transform(np.diag([0.13, 0.065, 1.0, 1.0]))
    thigh.apply_translation([0, 0, -0.225])
    thigh.export(tmp_path / "thigh.stl")
    mesh = '<collision><geometry><mesh filename="thigh.stl"/></geometry></collision>'
    links = f"<link name='hip'>{INERTIA}</link>" + "".join(
        f"<link name='{side}_yaw'>{INERTIA}</link><link name='{side}'>{INERTIA}{mesh}</link>" for side in ("l", "r")
    )
    joints = "".join(
        joint(f"{side}_turn", "hip", f"{side}_yaw", f"0 {y} 0", "0 0 1")
        + joint(f"{side}_swing", f"{side}_yaw", side, "0 0 0", "1 0 0")
        for side, y in (("l", 0.071), ("r", -0.071))
    )
    path = tmp_path / "thighs.urdf"
    path.write_text(f"<robot name='thighs'>{links}{joints}</robot>".replace("-2", "-0.8").replace('"2"', '"0.8"'))
    moved = "[l_turn, l_swing, r_turn, r_swing]"
    (tmp_path / "thighs.yaml").write_text(f"schema: humanoid_robot/1\nimitation_joints: {moved}\n")
    robot = load_robot(str(path), "fixed")
    return robot, Bodies(parse_urdf(robot.urdf, "thighs"), tmp_path, np.array([0.0, 1, 0]))


def distances(robot: Robot, shapes: tuple[LinkShape, ...], postures: np.ndarray) -> np.ndarray:
    """Least distance of shapes in some postures, by coal."""
    pairs = watched_pairs(robot.model, shapes, set())
    measured = CoalPairs(robot.model, build_geometry(robot.model, shapes, pairs))
    out = []
    for x in postures:
        pin.forwardKinematics(robot.model, robot.data, robot.q(x))
        out.append(measured.all_distances(robot.data).min())
    return np.array(out)


@pytest.mark.nightly
def test_thick_limbs_that_turn_beside_each_other_get_capsules_by_distance(tmp_path):
    """Distances of the capsules are those of the meshes, in postures that were not used to fit them."""
    robot, bodies = thighs(tmp_path)
    (fit,) = fit_contacts(robot, bodies, [("l", "r")])
    assert fit.by_distance and {s.shape.kind for s in fit.shapes} == {"capsule"}
    assert {(s.link, s.against) for s in fit.shapes} == {("l", ("r",)), ("r", ("l",))}
    left, right = ([s.shape for s in fit.shapes if s.link == side] for side in "lr")
    assert [bodies.image_shape("l", shape) for shape in left] == right, "mirror images"
    assert "as far apart as the meshes" in contact_text(fit)
    postures = np.random.default_rng(7).uniform(-0.3, 0.3, (400, 4))
    pair = LinkPair(robot, bodies, ("l", "r"))
    by_mesh = np.array([pair.clearance(x) for x in postures])
    near = by_mesh < 0.03
    assert (near & (by_mesh > 0)).sum() > 60 and (by_mesh == 0).sum() > 60
    by_capsules = distances(robot, fit.shapes, postures)
    error = (by_capsules - by_mesh)[near & (by_mesh > 0)]
    assert np.abs(error).mean() < 0.004 and np.percentile(np.abs(error), 95) < 0.01
    assert np.mean(by_capsules[by_mesh == 0] > CONTACT_MARGIN) < 0.1, "contacts are not missed"
    box = Box((0.0, 0.0, -0.225), (0.26, 0.13, 0.35), (0.0, 0.0, 0.0))
    boxes = (LinkShape("a", "l", box), LinkShape("b", "r", box))
    assert np.abs((distances(robot, boxes, postures) - by_mesh)[near & (by_mesh > 0)]).mean() > 0.008


@pytest.mark.parametrize("mirrored", [True, nightly(False)])
def test_derivatives_of_the_distances_by_finite_differences(tmp_path, mirrored):
    robot, bodies = thighs(tmp_path)
    pair = LinkPair(robot, bodies, ("l", "r"))
    pair.follow_motions(np.random.default_rng(0))
    measured = pair.mesh_distances(bodies)
    assert measured.mirror is not None and (measured.distance == 0).any() and (measured.distance > 0.01).any()
    fit = CapsuleFit(measured if mirrored else replace(measured, mirror=None))
    rng = np.random.default_rng(3)
    ends = rng.uniform([-0.1, -0.05, -0.4], [0.1, 0.05, 0.0], (2, fit.links * COUNT, 3))
    x = np.column_stack([*ends, rng.uniform(0.01, 0.03, fit.links * COUNT)]).ravel()
    J = fit.jacobian(x)
    along = rng.normal(size=len(x))
    difference = (fit.residuals(x + 1e-7 * along) - fit.residuals(x - 1e-7 * along)) / 2e-7
    apart = np.abs(fit.residuals(x)) > 1e-3  # where the weight does not change
    np.testing.assert_allclose((J @ along)[apart], difference[apart], rtol=2e-4, atol=2e-4 * np.abs(difference).max())


def test_nearest_points_of_segments_are_those_that_the_controller_finds():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200, 3))
    u, w = rng.normal(size=(2, 200, 3))
    w[::5] = 2 * u[::5]  # parallel
    u[1::7] = 0.0
    s, t, apart = closest_on_segments(a, u, b, w)
    assert ((s >= 0) & (s <= 1) & (t >= 0) & (t <= 1)).all()
    for k in range(200):
        (m, h), (n, g) = ((tuple(p[k] + v[k] / 2), tuple(v[k] / 2)) for p, v in ((a, u), (b, w)))
        least, *_ = capsule_capsule(m, h, 0.0, n, g, 0.0)
        assert np.linalg.norm(apart[k]) == pytest.approx(least, abs=1e-6)


@pytest.mark.nightly
def test_parts_that_lie_in_each_other_at_rest_do_not_hide_what_others_touch(tmp_path):
    """A hook on the chest lies in the arm at rest; chest and arm are apart, and meet elsewhere."""
    robot = shoulder(tmp_path)
    text = (tmp_path / "r.urdf").read_text()
    trimesh.creation.box(bounds=[[-0.05, 0.0, 0.0], [0.05, 0.4, 0.06]]).export(tmp_path / "hook.stl")
    hook = (
        f"<link name='hook'>{INERTIA}<collision><geometry><mesh filename=\"hook.stl\"/></geometry></collision></link>"
    )
    hook += "<joint name='h' type='fixed'><parent link='chest'/><child link='hook'/></joint>"
    (tmp_path / "r.urdf").write_text(text.replace("</robot>", f"{hook}</robot>"))
    robot = load_robot(str(tmp_path / "r.urdf"), "fixed")
    bodies = Bodies(parse_urdf(robot.urdf, "r"), tmp_path)
    assert len(bodies.parts["chest"]) == 2
    pair = LinkPair(robot, bodies, ("chest", "arm"))
    assert not len(pair.contacts(np.zeros(2))) and pair.clearance(np.zeros(2)) > 0.01, "the hook alone is in the arm"
    (fit,) = fit_contacts(robot, bodies, [("chest", "arm")])
    assert fit.touched > 0.05 and fit.shapes and fit.missed < 0.15
