"""What one sees of a robot: complete, mirror-symmetric, made of primitives, and where the checked shapes are."""

from __future__ import annotations

import functools
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from humanoid_control.robots import REFERENCES, load_robot
from humanoid_control.robots.generate.source import read_source, source_dir, source_names
from humanoid_control.robots.generate.urdf import DEFAULT_COLORS, urdf_text, visuals_of
from test.robots.visual_solids import depth, mirrored, same_solid, shape_distance, shape_surface, surface
from test.robots_under_test import by_kind

# What a viewer draws without a graphics card; six robots of this size stay fluid.
MOST_PRIMITIVES = 260
# The collision shapes are rounded hulls with a few centimetres of air; a cover may stand out of them by this much.
STANDS_OUT = 0.03
# Between two shapes a joint lies bare, and its housing fills the gap: there is nothing to compare with near a joint.
JOINT_REACH, HOUSING_STANDS_OUT = 0.1, 0.07
# A cover slimmer than its shape is the safe side: the robot keeps more distance than it looks.
SLIMMER = 0.06

ROBOTS = tuple(n for n in source_names() if n not in REFERENCES)  # those show bare bones for their tendons


@functools.cache
def source(name):
    return read_source(source_dir() / f"{name}.yaml")


@functools.cache
def visuals(name):
    return visuals_of(source(name))


@functools.cache
def zero_poses(name):
    robot = load_robot(name)
    return robot.link_poses(robot.q("zero"))


@pytest.mark.parametrize("name", by_kind(ROBOTS))
class TestRobots:
    def test_every_heavy_link_is_seen(self, name):
        heavy = {link["name"] for link in source(name).links if link["mass"] > 0.3}
        assert len(heavy) > 10
        assert heavy <= {link for link, ps in visuals(name).items() if ps}

    def test_only_links_of_the_robot_carry_visuals(self, name):
        assert set(visuals(name)) <= {link["name"] for link in source(name).links}

    def test_urdf_draws_only_primitives_in_opaque_colours(self, name):
        root = ET.fromstring(urdf_text(source(name)))
        rgba = {
            m.get("name"): [float(v) for v in m.find("color").get("rgba").split()]
            for m in root.iter("material")
            if m.find("color") is not None
        }
        drawn = [v for link in root.iter("link") for v in link.iter("visual")]
        assert len(drawn) == sum(len(ps) for ps in visuals(name).values())
        for v in drawn:
            (solid,) = v.find("geometry")
            assert solid.tag in ("box", "cylinder", "sphere")
            sizes = [float(x) for value in solid.attrib.values() for x in value.split()]
            assert min(sizes) > 0.001
            assert v.find("material").get("name") in rgba
        for color in rgba.values():
            assert len(color) == 4 and min(color) >= 0 and max(color) <= 1 and color[3] == 1

    def test_colours_are_defined_and_used(self, name):
        used = {p.color for ps in visuals(name).values() for p in ps}
        assert used <= {*DEFAULT_COLORS, *source(name).colors}
        assert set(source(name).colors) <= used

    def test_number_of_primitives_is_bounded(self, name):
        assert 150 < sum(len(ps) for ps in visuals(name).values()) <= MOST_PRIMITIVES

    def test_left_and_right_are_mirror_images(self, name):
        for link, ps in visuals(name).items():
            twin = "r_" + link[2:] if link.startswith("l_") else "l_" + link[2:] if link.startswith("r_") else link
            others = list(visuals(name)[twin])
            assert len(others) == len(ps)
            for p in ps:
                match = [k for k, o in enumerate(others) if same_solid(mirrored(p), o)]
                assert match, f"{link}: {p} has no mirror image on {twin}"
                others.pop(match[0])

    def test_eyes_look_forward(self, name):
        eyes = [
            np.array(p.xyz) + (zero_poses(name)[link].translation - zero_poses(name)["head"].translation)
            for link, ps in visuals(name).items()
            for p in ps
            if p.color in ("lens", "eye")
        ]
        assert len(eyes) >= 2
        shape = next(s for s in source(name).collision if s.name == "head").shape
        for eye in eyes:
            assert eye[0] > shape.center[0] + 0.5 * shape.radius
            assert abs(eye[2] - shape.center[2]) < 0.5 * shape.radius

    def test_nothing_seen_far_outside_what_is_checked(self, name):
        poses = zero_poses(name)
        joints = np.array([poses[row["child"]].translation for row in source(name).joints])
        for link, ps in visuals(name).items():
            X = poses[link]
            points = np.concatenate([surface(p) for p in ps]) @ X.rotation.T + X.translation
            away = np.full(len(points), np.inf)
            for item in source(name).collision:
                Y = poses[item.link]
                away = np.minimum(away, shape_distance(item.shape, (points - Y.translation) @ Y.rotation))
            near_joint = np.linalg.norm(points[:, None] - joints[None], axis=2).min(axis=1) < JOINT_REACH
            worst = points[np.argmax(np.where(near_joint, 0, away))]
            assert np.all(away[~near_joint] < STANDS_OUT), f"{link} at {worst.round(3)}"
            assert np.all(away < HOUSING_STANDS_OUT), f"{link} at {points[np.argmax(away)].round(3)}"

    def test_nothing_checked_far_outside_what_is_seen(self, name):
        poses = zero_poses(name)
        for item in source(name).collision:
            X = poses[item.link]
            points = shape_surface(item.shape) @ X.rotation.T + X.translation
            away = np.full(len(points), np.inf)
            for link, ps in visuals(name).items():
                Y = poses[link]
                away = depth(ps, (points - Y.translation) @ Y.rotation, known=away)
            assert away.max() < SLIMMER, f"{item.name} at {points[np.argmax(away)].round(3)}: {away.max():.3f}"

    def test_bounding_box_of_the_body_agrees(self, name):
        poses = zero_poses(name)
        seen = np.concatenate(
            [surface(p) @ poses[k].rotation.T + poses[k].translation for k, ps in visuals(name).items() for p in ps]
        )
        checked = np.concatenate(
            [
                shape_surface(s.shape) @ poses[s.link].rotation.T + poses[s.link].translation
                for s in source(name).collision
            ]
        )
        np.testing.assert_allclose(seen.min(axis=0), checked.min(axis=0), atol=STANDS_OUT)
        np.testing.assert_allclose(seen.max(axis=0), checked.max(axis=0), atol=STANDS_OUT)

    @pytest.mark.nightly
    def test_no_gap_opens_at_a_joint(self, name):
        """In random postures over the full ranges every link still reaches into the one that carries it."""
        robot, rng = load_robot(name), np.random.default_rng(5)
        parent = {row["child"]: row["parent"] for row in source(name).joints}
        postures = [robot.q(rng.uniform(robot.lower, robot.upper)) for _ in range(6)]
        poses = [{link: X.copy() for link, X in robot.link_poses(q).items()} for q in postures]
        for link, ps in visuals(name).items():
            carrier = parent.get(link)
            while carrier is not None and carrier not in visuals(name):
                carrier = parent.get(carrier)
            if carrier is None:
                continue
            own = np.concatenate([surface(p) for p in ps])
            X = [at[carrier].inverse() * at[link] for at in poses]
            points = np.concatenate([own @ x.rotation.T + x.translation for x in X])
            deepest = depth(visuals(name)[carrier], points).reshape(len(X), -1).min(axis=1)
            assert (deepest < 0).all(), f"{link} has left {carrier}"
