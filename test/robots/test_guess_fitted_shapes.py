"""Shapes laid around meshes: they hold every point, stand out as little as said, and keep the meshes apart."""

from __future__ import annotations

import numpy as np
import pytest

from humanoid_control.collision import Box, Capsule
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.evaluation.mesh_contact import mesh_contacts
from humanoid_control.robots import load_robot
from humanoid_control.robots.description.urdf import parse_urdf
from humanoid_control.robots.guess.bodies import Bodies
from humanoid_control.robots.guess.fitted_shapes import BodyFit, fit_bodies, fitted_links
from humanoid_control.robots.guess.robot_file import overlapping_links
from test.reference.volume_excess import signed_distances

trimesh = pytest.importorskip("trimesh")
INERTIA = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
LIMIT = '<limit lower="-2" upper="2" velocity="1" effort="1"/>'


def mesh_element(file: str, tag: str = "collision", origin: str = "") -> str:
    return f'<{tag}>{origin}<geometry><mesh filename="{file}"/></geometry></{tag}>'


def urdf(links: dict[str, str], joints: str) -> str:
    return (
        f"<robot name='r'>{''.join(f'<link name={n!r}>{INERTIA}{x}</link>' for n, x in links.items())}{joints}</robot>"
    )


def joint(name: str, parent: str, child: str, xyz: str, kind: str = "revolute") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="{xyz}"/>'
        f'<axis xyz="0 1 0"/>{LIMIT}</joint>'
    )


def fit_mesh(tmp_path, mesh) -> BodyFit:
    mesh.export(tmp_path / "part.stl")
    tree = parse_urdf(urdf({"base": mesh_element("part.stl")}, ""), "r")
    (fit,) = fit_bodies(Bodies(tree, tmp_path))
    held = np.min([signed_distances(s.shape, np.asarray(mesh.vertices)) for s in fit.shapes], axis=0)
    assert held.max() < 2e-5 and fit.inside_max < 1e-6, "every point of the mesh is held"
    return fit


TURN = trimesh.transformations.rotation_matrix(0.7, [1, 2, 3])


def test_a_capsule_is_found_around_a_capsule(tmp_path):
    mesh = trimesh.creation.capsule(height=0.3, radius=0.05, count=[48, 48])
    mesh.apply_transform(TURN)
    fit = fit_mesh(tmp_path, mesh)
    assert [type(s.shape) for s in fit.shapes] == [Capsule] and fit.link == "base"
    assert fit.shapes[0].shape.radius == pytest.approx(0.05, abs=1e-3)
    assert fit.outside_max < 0.006 and fit.outside_mean < 0.003


def test_a_box_is_found_around_a_box(tmp_path):
    mesh = trimesh.creation.box((0.3, 0.2, 0.25))
    mesh.apply_transform(TURN)
    fit = fit_mesh(tmp_path, mesh)
    assert [type(s.shape) for s in fit.shapes] == [Box]
    assert sorted(fit.shapes[0].shape.size) == pytest.approx([0.2, 0.25, 0.3], abs=2e-3)
    assert fit.outside_max < 0.008, "as far as the points of the mesh are apart"


def test_an_angle_is_cut_into_its_legs(tmp_path):
    mesh = trimesh.util.concatenate(
        [
            trimesh.creation.box(bounds=[[0, 0, 0], [0.06, 0.06, 0.4]]),
            trimesh.creation.box(bounds=[[0, 0, 0], [0.4, 0.06, 0.06]]),
        ]
    )
    fit = fit_mesh(tmp_path, mesh)
    assert len(fit.shapes) >= 2
    corner = np.array([[0.3, 0.03, 0.3]])  # between the legs
    assert min(signed_distances(s.shape, corner)[0] for s in fit.shapes) > 0.05
    # What is said about standing out, against the exact distances of the shapes' own points.
    assert fit.outside_max < 0.04 and 0 < fit.outside_mean < fit.outside_max


@pytest.mark.nightly
def test_a_body_holds_what_is_fixed_to_it_and_primitives_stay(tmp_path):
    trimesh.creation.icosphere(radius=0.05).export(tmp_path / "ball.stl")
    ball, primitive = mesh_element("ball.stl"), '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
    tree = parse_urdf(
        urdf(
            {
                "base": primitive + mesh_element("ball.stl", "visual"),
                "arm": ball,
                "hand": mesh_element("ball.stl", "visual"),
            },
            joint("shoulder", "base", "arm", "0 0 0.3") + joint("grip", "arm", "hand", "0 0 0.2", "fixed"),
        ),
        "r",
    )
    (fit,) = fit_bodies(Bodies(tree, tmp_path))
    assert fit.link == "arm" and fitted_links(tree, [fit]) == {"arm", "hand"}
    hand = np.array([[0.0, 0.0, 0.2 + 0.049]])
    assert min(signed_distances(s.shape, hand)[0] for s in fit.shapes) <= 0


def bent_arms(tmp_path) -> Bodies:
    """A left arm, and its mirror image of other triangles in a frame that is turned; a base that is not symmetric."""
    bounds = [[[-0.03, 0, -0.3], [0.04, 0.06, 0.1]], [[-0.03, 0.03, -0.3], [0.3, 0.06, -0.22]]]
    left = trimesh.util.concatenate([trimesh.creation.box(bounds=b) for b in bounds])
    left.export(tmp_path / "left.stl")
    right = left.subdivide()
    right.apply_transform(np.diag([1.0, -1, 1, 1]))
    right.apply_transform(trimesh.transformations.euler_matrix(0.3, -0.2, 1.0).T)
    right.export(tmp_path / "right.stl")
    trimesh.creation.box(bounds=[[-0.1, -0.1, 0], [0.1, 0.08, 0.4]]).export(tmp_path / "base.stl")
    joints = joint("l", "base", "left", "0 0.2 0.3") + joint("r", "base", "right", "0 -0.2 0.3")
    joints = joints.replace('xyz="0 -0.2 0.3"', 'xyz="0 -0.2 0.3" rpy="0.3 -0.2 1"')
    links = {n: mesh_element(f"{n}.stl") for n in ("base", "right", "left")}
    return Bodies(parse_urdf(urdf(links, joints), "r"), tmp_path, np.array([0.0, 1, 0]))


def test_a_left_body_and_its_right_one_get_mirrored_shapes(tmp_path):
    """Distances of random points from the left arm are those of their images from the right one."""
    bodies = bent_arms(tmp_path)
    assert bodies.twins == {"base": "base", "left": "right", "right": "left"}
    fits = {fit.link: fit for fit in fit_bodies(bodies)}
    assert list(fits) == ["base", "right", "left"] and len(fits["left"].shapes) >= 2
    R = trimesh.transformations.euler_matrix(0.3, -0.2, 1.0)[:3, :3]
    local = np.random.default_rng(1).uniform(-0.5, 0.5, (200, 3))  # in the left arm's frame, which is the world's
    image = (local * [1, -1, 1]) @ R
    for ours, theirs in zip(fits["left"].shapes, fits["right"].shapes, strict=True):
        assert theirs.link == "right" and theirs.name == ours.name.replace("left", "right")
        d = signed_distances(ours.shape, local), signed_distances(theirs.shape, image)
        np.testing.assert_allclose(*d, atol=3e-5)  # five decimals in files
    for side in ("left", "right"):
        points = np.asarray(trimesh.load(tmp_path / f"{side}.stl").vertices)
        held = np.min([signed_distances(s.shape, points) for s in fits[side].shapes], axis=0)
        assert held.max() < 3e-5, "every point of both is held"
    np.testing.assert_allclose(bodies.image("right", bodies.image("left", local)), local, atol=1e-12)
    assert bodies.images_of(("base", "left")) == ("base", "right") and bodies.images_of(("left", "right")) is None


def two_arms(tmp_path, reach: float) -> str:
    trimesh.creation.box((0.05, 0.05, 0.3)).export(tmp_path / "bar.stl")
    bar = mesh_element("bar.stl", origin='<origin xyz="0 0 0.15"/>')
    links = {"base": "", "left": "", "left_bar": bar, "right": "", "right_bar": bar}
    joints = joint("l1", "base", "left", f"{reach} 0 0") + joint("l2", "left", "left_bar", "0 0 0.01")
    joints += joint("r1", "base", "right", f"-{reach} 0 0") + joint("r2", "right", "right_bar", "0 0 0.01")
    path = tmp_path / "arms.urdf"
    path.write_text(urdf(links, joints))
    return str(path)


def test_own_meshes_are_counted_where_they_touch(tmp_path):
    robot = load_robot(two_arms(tmp_path, 0.1), "fixed")
    lean = np.array([[0.0, 0, 0, 0], [-0.2, 0, 0.2, 0], [-0.6, 0, 0.6, 0], [0.6, 0, -0.6, 0]])
    found = mesh_contacts(robot, lean)
    # Bars 5 cm thick at x = +-0.1 lean toward each other: their tops meet beyond asin(0.075 / 0.31).
    assert found.touching[:, 0].tolist() == [False, False, True, False]
    assert found.pairs == (("left_bar", "right_bar"),) and found.frames == 1 and found.share == 0.25


def test_a_mesh_that_is_not_there_is_named(tmp_path):
    robot = load_robot(two_arms(tmp_path, 0.1), "fixed")
    (tmp_path / "bar.stl").unlink()
    with pytest.raises(RobotError, match=r"mesh file bar\.stl is not found"):
        mesh_contacts(robot, np.zeros((1, 4)))


def test_a_mesh_that_is_cut_off_is_named(tmp_path):
    robot = load_robot(two_arms(tmp_path, 0.1), "fixed")
    (tmp_path / "bar.stl").write_bytes((tmp_path / "bar.stl").read_bytes()[:-70])
    with pytest.raises(RobotError, match=r"bar\.stl cannot be read"):
        mesh_contacts(robot, np.zeros((1, 4)))


def test_links_whose_shapes_overlap_often_but_little_are_not_watched(tmp_path):
    """Two balls that a turn of either joint brings 2 cm into each other: a collision only if they are that exact."""
    path = two_arms(tmp_path, 0.195)
    shapes = "".join(
        f"  - {{name: {n}, link: {n}, shape: capsule, p0: [0, -0.3, 0], p1: [0, 0.3, 0.02], radius: 0.2}}\n"
        for n in ("left_bar", "right_bar")
    )
    file = tmp_path / "arms.yaml"
    head = "schema: humanoid_robot/1\npostures: {neutral: {l1: 1.5, r1: -1.5}}\nimitation_joints: [l1, r1, l2, r2]\n"
    file.write_text(f"{head}collision:\n{shapes}")
    robot = load_robot(path, "fixed")
    pair = ("left_bar", "right_bar")
    assert len(robot.pairs) == 1
    assert overlapping_links(robot, {}) == [], "exact shapes tell a collision"
    assert overlapping_links(robot, dict.fromkeys(pair, 0.1)) == [], "four joints apart"
    fixed = path_with_fixed(tmp_path, path)
    robot = load_robot(fixed, "fixed")
    assert overlapping_links(robot, dict.fromkeys(pair, 0.1)) == [pair]
    assert overlapping_links(robot, dict.fromkeys(pair, 0.001)) == []
    beside = tmp_path / "fixed.yaml"
    beside.write_text(beside.read_text() + "unwatched_links: [[right_bar, left_bar]]\n")
    assert len(load_robot(fixed, "fixed").pairs) == 0
    beside.write_text(beside.read_text().replace("[[right_bar", "[[wright_bar"))
    with pytest.raises(UnknownNameError, match=r"wright_bar.*unwatched links"):
        load_robot(fixed, "fixed")


def path_with_fixed(tmp_path, path: str) -> str:
    """The two arms with one joint each, so that two joints lie between their bars."""
    text = (tmp_path / "arms.urdf").read_text()
    for name in ("l2", "r2"):
        text = text.replace(f'<joint name="{name}" type="revolute">', f'<joint name="{name}" type="fixed">')
    (tmp_path / "fixed.urdf").write_text(text)
    beside = (tmp_path / "arms.yaml").read_text().replace("[l1, r1, l2, r2]", "[l1, r1]")
    (tmp_path / "fixed.yaml").write_text(beside)
    return str(tmp_path / "fixed.urdf")
