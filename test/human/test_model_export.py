"""A person as .osim and as URDF: read again by our reader, by OpenSim where it is installed, and by pinocchio."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.human import AnatomicalJoint, Coordinate, CoordinateAxis, Function, OffsetFrame, read_osim
from humanoid_control.human.models import osim_text, own_person, urdf_of
from humanoid_control.human.models.osim_export import rotation_angles
from humanoid_control.human.models.urdf_export import mean_hinge
from humanoid_control.human.osim import rotation_xyz

LINE = Function((0.0, 1.0))


def postures(person, count=4, seed=1):
    rng = np.random.default_rng(seed)
    lower = [c.lower if np.isfinite(c.lower) else -1.0 for c in person.coordinates]
    upper = [c.upper if np.isfinite(c.upper) else 1.0 for c in person.coordinates]
    return rng.uniform(lower, upper, (count, person.n))


def written(person, path):
    path.write_text(osim_text(person))
    return path


@pytest.fixture(scope="module")
def person():
    return own_person(1.8, 80.0, "women", "cmu41").person


def same(a, b):
    """The same places, masses and ranges for the same values of the coordinates."""
    assert set(a.names) == set(b.names)
    q = postures(a)
    order = [a.index(n) for n in b.names]
    (Ra, pa), (Rb, pb) = a.body_poses(q), b.body_poses(q[:, order])
    bodies = [b.body_index(n) for n in a.body_names]
    np.testing.assert_allclose(pb[:, bodies], pa, atol=1e-13)
    np.testing.assert_allclose(Rb[:, bodies], Ra, atol=1e-13)
    markers = {m.name: (m.body, tuple(m.place), m.anatomical) for m in a.markers}
    assert {m.name: (m.body, tuple(m.place), m.anatomical) for m in b.markers} == markers
    for one in a.bodies:
        other = b.bodies[b.body_index(one.name)]
        assert (
            one.mass == other.mass and np.array_equal(one.com, other.com) and np.array_equal(one.inertia, other.inertia)
        )
    for one in a.coordinates:
        other = b.coordinates[b.index(one.name)]
        assert (one.lower, one.upper, one.default, one.clamped) == (
            other.lower,
            other.upper,
            other.default,
            other.clamped,
        )
    np.testing.assert_array_equal(a.gravity, b.gravity)


def test_our_person_is_read_again_as_it_was(person, tmp_path):
    same(person, read_osim(written(person, tmp_path / "own.osim")))


def test_splines_polynomials_skew_axes_and_couplings_are_read_again(small_person, tmp_path):
    person = small_person()
    same(person, read_osim(written(person, tmp_path / "small.osim")))


def test_a_model_of_opensim_is_read_again_as_it_was(walker, tmp_path):
    same(walker, read_osim(written(walker, tmp_path / "walker.osim")))


def test_opensim_itself_puts_all_markers_where_we_do(person, tmp_path):
    opensim = pytest.importorskip("opensim")
    opensim.Logger.removeFileSink()
    opensim.Logger.setLevelString("Off")
    model = opensim.Model(str(written(person, tmp_path / "own.osim")))
    state = model.initSystem()
    assert model.getTotalMass(state) == pytest.approx(person.mass)
    for q in postures(person, 2):
        for name, value in zip(person.names, q, strict=True):
            coordinate = model.updCoordinateSet().get(name)
            coordinate.setClamped(state, False)
            coordinate.setValue(state, float(value), False)
        model.assemble(state)
        model.realizePosition(state)
        for m, x in zip(person.markers, person.marker_positions(q)[0], strict=True):
            theirs = model.getMarkerSet().get(m.name).getLocationInGround(state)
            np.testing.assert_allclose([theirs.get(i) for i in range(3)], x, atol=1e-6)


def test_angles_of_a_frame_at_gimbal_too():
    for angles in ((0.3, -0.7, 1.1), (0.4, np.pi / 2, 0.0), (0.0, -np.pi / 2, 0.9), (3.0, 0.1, -2.0)):
        R = rotation_xyz(np.array(angles))
        np.testing.assert_allclose(rotation_xyz(rotation_angles(R)), R, atol=1e-12)


# -------- URDF


def test_pinocchio_moves_the_urdf_as_we_move_the_person(person):
    """Exactly above the knees, which become hinges: below these to what is told."""
    out = urdf_of(person)
    slid = max(float(note.split("up to ")[1].split(" mm")[0]) for note in out.notes if "hinge" in note)
    assert sum("hinge at its mean axis" in note for note in out.notes) == 2 and slid < 5.0
    model = pin.buildModelFromXML(out.text, pin.JointModelFreeFlyer())
    data = model.createData()
    assert pin.computeTotalMass(model) == pytest.approx(person.mass)
    mimic = {
        j.get("name"): (
            j.find("mimic").get("joint"),
            *(float(j.find("mimic").get(k)) for k in ("multiplier", "offset")),
        )
        for j in ET.fromstring(out.text).iter("joint")
        if j.find("mimic") is not None
    }
    assert {leader for leader, _, _ in mimic.values()} == {
        f"{part}_{turn}" for part in ("lumbar", "thorax", "neck") for turn in ("extension", "bending", "rotation")
    }
    worst = 0.0
    for q in postures(person):
        values = dict(zip(person.names, q, strict=True))
        for side in "rl":
            values[f"knee_angle_{side}"] = q[person.index(f"knee_angle_{side}")] = 0.9
        R, p = person.body_poses(q)
        full = pin.neutral(model)
        for j in range(2, model.njoints):
            name = model.names[j]
            leader, factor, shift = mimic.get(name, (name, 1.0, 0.0))
            full[model.joints[j].idx_q] = factor * values[leader] + shift
        pin.framesForwardKinematics(model, data, full)
        root = data.oMf[model.getFrameId("pelvis")]
        k0 = person.body_index("pelvis")
        for k, name in enumerate(person.body_names):
            X = root.actInv(data.oMf[model.getFrameId(name)])
            there = R[0, k0].T @ (p[0, k] - p[0, k0])
            np.testing.assert_allclose(X.rotation, R[0, k0].T @ R[0, k], atol=1e-9, err_msg=name)
            if name.split("_")[0] in ("tibia", "talus", "calcn", "toes"):
                worst = max(worst, 1e3 * np.linalg.norm(X.translation - there))
            else:
                np.testing.assert_allclose(X.translation, there, atol=1e-9, err_msg=name)
    assert 0.1 < worst < slid + 0.01


def test_joints_that_turn_or_slide_against_their_axis(small_person):
    """Slopes of -1, shares and offsets: a hinge and a slide of one coordinate each, and one that follows."""
    base = small_person()
    turn = CoordinateAxis(np.array([0.0, 0.6, 0.8]), Function((0.3, -1.0)), "k")
    slide = CoordinateAxis(np.eye(3)[0], Function((0.02, -1.0)), "s")
    more = CoordinateAxis(np.eye(3)[2], Function((0.0, 0.5)), "k")
    joint = replace(base.joints[1], rotations=(turn, more), translations=(slide,))
    names = tuple(Coordinate(c, c not in "xyzs", 0.0, -1.0, 1.0) for c in "abcxyzks")
    person = small_person(joints=(base.joints[0], joint), all_coordinates=names, couplings=())
    model = pin.buildModelFromXML(urdf_of(person).text, pin.JointModelFreeFlyer())
    data, q = model.createData(), person.rest.copy()
    q[person.index("k")], q[person.index("s")] = 0.7, 0.05
    full = pin.neutral(model)
    for name, value in (("k", 0.7), ("s", 0.05), ("k_of_shank", 0.35)):
        full[model.joints[model.getJointId(name)].idx_q] = value
    pin.framesForwardKinematics(model, data, full)
    X = data.oMf[model.getFrameId("trunk")].actInv(data.oMf[model.getFrameId("shank")])
    R, p = person.body_poses(q)
    np.testing.assert_allclose(X.rotation, R[0, 0].T @ R[0, 1], atol=1e-9)
    np.testing.assert_allclose(X.translation, R[0, 0].T @ (p[0, 1] - p[0, 0]), atol=1e-9)


def test_a_hinge_that_slides_only_for_its_place_is_found_exactly():
    """A joint whose way is that of a hinge elsewhere: that hinge is found, and nothing is left."""
    q = np.linspace(-0.4, 1.6, 60)
    a, b = np.array([0.03, -0.02, 0.0]), np.array([0.01, 0.04, 0.0])
    R = np.array([[[np.cos(u), np.sin(u), 0], [-np.sin(u), np.cos(u), 0], [0, 0, 1]] for u in q])
    way = a - R @ b
    axes = tuple(CoordinateAxis(np.eye(3)[k], Function((), tuple(q), tuple(way[:, k])), "knee") for k in range(2))
    joint = AnatomicalJoint(
        "knee", "femur", "tibia", OffsetFrame(), OffsetFrame(), (CoordinateAxis(-np.eye(3)[2], LINE, "knee"),), axes
    )
    hinge, (turned, slid) = mean_hinge(joint, {"knee": Coordinate("knee", True, 0.0, -0.4, 1.6, True)})
    assert turned < 1e-9 and slid < 1e-6
    np.testing.assert_allclose(np.abs(hinge.rotations[0].vector), [0, 0, 1], atol=1e-9)
    np.testing.assert_allclose(hinge.P.p[:2], a[:2], atol=1e-6)


def test_what_no_urdf_can_say_is_refused_by_its_name(small_person):
    with pytest.raises(RobotError, match="joint 'knee' moves with 2 coordinates"):
        urdf_of(small_person())
