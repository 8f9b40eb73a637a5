"""The same markers on robots: pinocchio's places, markers that a robot itself made, and a real walk on three robots."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.human import fit
from humanoid_control.human.models import analyse_subject, find_subject, fit_robot, own_person, robot_rows
from humanoid_control.human.models.robot_motion import BASE, _alike, place_markers, robot_as_person
from humanoid_control.mocap import load_clip
from humanoid_control.robots import load_robot

ROBOTS = ("lola", "hrp2", "armar3", "wabian2")


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request):
    return load_robot(request.param, "floating")


def postures(robot, person, count=5, seed=2):
    """Postures of the robot as a person, and pinocchio's q for the same."""
    rng, pairs = np.random.default_rng(seed), []
    for _ in range(count):
        joints = robot.follow(rng.uniform(np.maximum(robot.lower, -2), np.minimum(robot.upper, 2)))
        angles, p = rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3)
        R = np.eye(3)
        for axis, angle in zip("zyx", angles, strict=True):
            R = R @ pin.utils.rotate(axis, angle)
        values = dict(zip(robot.joint_names, joints, strict=True))
        values |= {f"{BASE}_r{a}": v for a, v in zip("zyx", angles, strict=True)}
        values |= {f"{BASE}_t{a}": v for a, v in zip("xyz", p, strict=True)}
        q = np.concatenate([p, pin.Quaternion(R).coeffs(), joints])
        pairs.append((np.array([values[n] for n in person.names]), q))
    return pairs


def test_bodies_are_where_pinocchio_puts_them(robot):
    person = robot_as_person(robot)
    assert person.mass == pytest.approx(robot.mass)
    for mine, q in postures(robot, person):
        pin.forwardKinematics(robot.model, robot.data, q)
        R, p = person.body_poses(mine)
        for k, name in enumerate(person.body_names):
            X = robot.data.oMi[1 if name == BASE else robot.model.getJointId(name)]
            np.testing.assert_allclose(p[0, k], X.translation, atol=1e-12)
            np.testing.assert_allclose(R[0, k], X.rotation, atol=1e-12)
        com = pin.centerOfMass(robot.model, robot.data, q)
        masses = np.array([b.mass for b in person.bodies])
        at = p[0] + np.einsum("bij,bj->bi", R[0], np.array([b.com for b in person.bodies]))
        np.testing.assert_allclose(masses @ at / masses.sum(), com, atol=1e-9)


def test_legs_without_names_are_found_by_their_bones():
    """Knees of robots that name theirs, found without the names, and which way they bend."""
    for name in ("lola", "hrp2", "wabian2", "suralp"):
        robot = load_robot(name, "floating")
        named = {side: robot.joint_for(f"{side}_knee_flexion") for side in "rl"}
        robot.joint_for = lambda meaning, own=robot.joint_for: None if "knee" in meaning else own(meaning)
        alike = _alike(robot)
        assert {side: alike[f"knee_angle_{side}"] for side in "rl"} == {s: (n, 1.0) for s, n in named.items()}, name


def test_a_robot_that_is_held_still_is_refused():
    with pytest.raises(ClipError, match="floating base"):
        robot_as_person(load_robot("lola", "fixed"))


def test_markers_sit_on_the_joints_of_the_robot(robot):
    """Markers of joint centres: on the robot's own shoulders, elbows, wrists, and hips and knees where it has legs."""
    subject = own_person(1.75, markers="dance16").person
    markers, lost = place_markers(robot, subject)
    at = {m.name: m for m in markers}
    q = robot.q("zero")
    pin.framesForwardKinematics(robot.model, robot.data, q)

    def world(label):
        joint = 1 if at[label].body == BASE else robot.model.getJointId(at[label].body)
        return robot.data.oMi[joint].act(np.asarray(at[label].place))

    for label, point in (("GH", "gh"), ("Elbow", "elbow"), ("Wrist", "wrist")):
        for side in "LR":
            there = robot.data.oMf[robot.points[f"{side.lower()}_{point}"]].translation
            np.testing.assert_allclose(world(f"{label}_{side}"), there, atol=1e-9, err_msg=label)
    if robot.name == "armar3":
        assert {"Knee_L", "Ankle_R"} <= set(lost)
        return
    for side in "LR":
        knee = robot.data.oMi[robot.model.getJointId(robot.joint_for(f"{side.lower()}_knee_flexion"))].translation
        np.testing.assert_allclose(world(f"Knee_{side}"), knee, atol=1e-9)
        assert world(f"Foot_{side}")[0] > world(f"Ankle_{side}")[0], "toes point forward"
    assert world("Hip_L")[1] > 0 > world("Hip_R")[1] and world("Forehead")[2] > world("Sternum")[2]


def test_joints_that_made_the_markers_are_found_again(robot):
    """HM-10, H1: markers of the robot's own motion, without noise."""
    subject = own_person(1.75, markers="cmu41").person
    person = robot_as_person(robot).with_markers(place_markers(robot, subject)[0])
    t = np.linspace(0, 2, 60)[:, None]
    rng = np.random.default_rng(4)
    middle = np.array([np.clip(c.default, c.lower, c.upper) for c in person.coordinates])
    room = np.array([min(0.25, 0.4 * (c.upper - c.lower)) if np.isfinite(c.upper) else 0.1 for c in person.coordinates])
    q = middle + room * np.sin(2 * np.pi * rng.uniform(0.3, 0.8, person.n) * t + rng.uniform(0, 6, person.n))
    q = np.clip(q, [c.lower for c in person.coordinates], [c.upper for c in person.coordinates])
    found = fit(person, person.marker_positions(q), [m.name for m in person.markers])
    assert found.rms.max() < 1e-6
    seen = ~found.unseen.any(axis=0)
    assert seen.sum() > 20
    # Near gimbal lock (Wabian's neck, once) two angles can hardly be told from each other.
    error = np.abs(found.q[:, seen] - q[:, seen])
    assert np.quantile(error, 0.99) < 1e-5 and error.max() < 0.02


def test_a_real_walk_on_robots_of_other_structure(model_file):
    """Simonidis et al. 2011, section 4: the same markers on models of different structure."""
    clip = load_clip(model_file("mocap/vicon_c3d/PiG_Motion-FlatFoot-One.c3d"))
    a = analyse_subject(find_subject(clip), clip)
    motions = [fit_robot(a, load_robot(name, "floating")) for name in ("lola", "hrp2", "wabian2")]
    for m in motions:
        assert m.rms < 0.008, m.name
        for side in "rl":
            mine, theirs = a.fit.q[:, a.person.index(f"knee_angle_{side}")], m.angle(f"knee_angle_{side}")
            assert np.corrcoef(mine, theirs)[0, 1] > 0.95, (m.name, side)
        names, values = m.joints
        robot = load_robot(m.name, "floating")
        order = [names.index(n) for n in robot.joint_names]
        inside = (values[:, order] >= robot.lower - 1e-9) & (values[:, order] <= robot.upper + 1e-9)
        assert inside.all()
    rows = robot_rows(a, motions)
    assert [r["name"] for r in rows] == ["person", "lola", "hrp2", "wabian2"] and rows[1]["correlation"] > 0.99
    assert rows[0]["coordinates"] == 47 and rows[1]["coordinates"] == 31
