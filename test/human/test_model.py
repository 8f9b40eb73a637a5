"""The person's kinematics against OpenSim's, against finite differences, and under scaling."""

import json

import numpy as np
import pytest

from humanoid_control.errors import RobotError, SizeError, UnknownNameError
from humanoid_control.human import AnatomicalJoint, Coordinate, Coupling, Function, Marker, PersonBody

LINE = Function((0.0, 1.0))
TRUNK, SHANK = (PersonBody(name, 1.0, np.zeros(3), np.eye(3)) for name in ("trunk", "shank"))


def test_bodies_are_where_opensim_has_them(walker, human_motion):
    states = json.loads(human_motion("rajagopal_walk/computed_opensim46/random_states.json").read_text())
    q, qd = (np.array([[s[key][n] for n in walker.names] for s in states]) for key in ("coordinates", "speeds"))
    R, p = walker.body_poses(q)
    _, v = walker.body_twists(q, qd)
    assert len(walker.bodies) == 22 and walker.n == 37
    for t, state in enumerate(states):
        assert set(state["bodies"]) == set(walker.body_names)
        for name, body in state["bodies"].items():
            b = walker.body_index(name)
            assert np.allclose(p[t, b], body["origin"], rtol=0, atol=1e-12)
            assert np.allclose(v[t, b], body["velocity_of_origin"], rtol=0, atol=1e-7)
            assert np.allclose(p[t, b] + R[t, b] @ walker.bodies[b].com, body["centre_of_mass"], rtol=0, atol=1e-12)


def test_velocities_are_the_change_of_the_poses(small_person):
    person, rng, h = small_person(), np.random.default_rng(1), 1e-6
    assert person.names == tuple("abcxyzk")
    for k in (-1.2, 0.3, 1.5):  # also outside of the spline's points
        q, qd = rng.uniform(-1, 1, (2, 1, person.n))
        q[0, 6] = k
        omega, v = person.body_twists(q, qd)
        (R, _), (Ra, pa), (Rb, pb) = (person.body_poses(q + s * h * qd) for s in (0, -1, 1))
        assert np.allclose((pb - pa) / (2 * h), v, atol=1e-8)
        S = ((Rb - Ra) / (2 * h) @ R.swapaxes(2, 3))[0]
        assert np.allclose(np.stack([S[:, 2, 1], S[:, 0, 2], S[:, 1, 0]], 1), omega[0], atol=1e-8)


def test_a_dependent_coordinate_follows(small_person):
    person = small_person()
    q = np.zeros((2, 7))
    q[1, 6] = 0.5
    values = person.with_dependent(q)
    assert list(values) == list("abcxyzkl")
    assert np.allclose(values["l"], [0.1, 0.1 - 0.35 + 0.05])


def test_all_bodies_of_another_size_put_all_markers_in_proportion(walker):
    big = walker.scaled(dict.fromkeys(walker.body_names, 1.1))
    q = np.random.default_rng(2).uniform(-0.5, 0.5, (3, walker.n))
    lengths = ~walker.rotational
    q_big = np.where(lengths, 1.1 * q, q)
    assert np.allclose(big.marker_positions(q_big), 1.1 * walker.marker_positions(q), atol=1e-12)
    assert big.mass == pytest.approx(walker.mass)
    assert walker.with_mass(70.0).mass == pytest.approx(70.0)
    assert np.allclose(walker.with_mass(70.0).bodies[3].inertia * walker.mass, 70.0 * walker.bodies[3].inertia)


def test_what_does_not_belong_together_is_refused(small_person):
    person = small_person()
    root, knee = person.joints
    loop = AnatomicalJoint("root", "shank", "trunk")
    bad = {
        "'trunk' occurs more than once": {"bodies": (TRUNK, TRUNK)},
        "form a loop": {"joints": (loop, knee)},
        "has no joint": {"joints": (root,)},
        "moves with 'k', which does not exist": {"all_coordinates": tuple(Coordinate(c) for c in "abcxyzl")},
        "names the body 'arm'": {"joints": (root, AnatomicalJoint("knee", "arm", "shank"))},
        "on 'arm', which does not exist": {"markers": (Marker("m", "arm", np.zeros(3)),)},
        "no finite position": {"markers": (Marker("m", "shank", np.full(3, np.nan)),)},
        "swap them": {
            "all_coordinates": (*person.all_coordinates[:-1], Coordinate("l", True, 0.0, 1.0, -1.0, True)),
        },
        "names the coordinate 'o'": {"couplings": (Coupling("l", "o", LINE),)},
        "which follows another": {"couplings": (Coupling("l", "k", LINE), Coupling("k", "a", LINE))},
        "mass of -1": {"bodies": (PersonBody("trunk", -1.0, np.zeros(3), np.eye(3)), SHANK)},
        "contains no bodies": {"bodies": (), "joints": ()},
    }
    for told, change in bad.items():
        with pytest.raises(RobotError, match=told):
            small_person(**change)
    with pytest.raises(SizeError, match="7 coordinates"):
        person.body_poses(np.zeros((2, 8)))
    with pytest.raises(UnknownNameError, match="shank"):
        person.scaled({"shan": 1.1})
    with pytest.raises(RobotError, match="positive factor"):
        person.scaled({"shank": 0.0})
    with pytest.raises(RobotError, match="positive one"):
        person.with_mass(-3.0)
    with pytest.raises(UnknownNameError):
        person.index("knee_angle")
