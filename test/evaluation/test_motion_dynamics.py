"""Dynamics of motions: hulls by brute force, forces by another solver, torques by energy and by finite differences."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import lsq_linear
from scipy.spatial import ConvexHull, Delaunay

from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.evaluation import measure_dynamics
from humanoid_control.evaluation.ground_contact import corner_paths
from humanoid_control.evaluation.motion_dynamics import CONE, FRICTION, distance_outside
from humanoid_control.performing.clip_dynamics import EVEN, contact_forces
from humanoid_control.robots import load_robot

RATE = 1000.0
ALL = np.array([True, True, True, True])


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "floating")


def standing(robot, frames=5, turn=0.0):
    """Neutral postures (T, nq) on the floor, turned about the vertical and away from the origin."""
    X = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, turn), np.array([3.0, -2.0, 0.0])) * robot.X_world_root
    return np.tile(robot.q("neutral", X), (frames, 1))


def swaying(robot, frames=41, size=0.05):
    """A smooth motion (T, nq) of the root and all joints, and its velocities and accelerations in the tangent."""
    rng = np.random.default_rng(2)
    phase, w = rng.uniform(0, 6, robot.nv), rng.uniform(2, 7, robot.nv)
    t = np.arange(frames) / RATE
    return np.array([pin.integrate(robot.model, robot.q("neutral"), size * np.sin(w * s + phase)) for s in t])


# -------- Support


def test_distances_from_hulls_are_those_of_brute_force():
    """The nearest point of a hull lies on a line between two of its points; inside is told by triangulation."""
    rng, outside = np.random.default_rng(0), 0
    for _ in range(300):
        points = rng.normal(size=(rng.integers(3, 9), 2))
        p = 0.8 * rng.normal(size=2)
        inside = Delaunay(points[ConvexHull(points).vertices]).find_simplex(p) >= 0
        pairs = [(a, b) for a in points for b in points if not np.array_equal(a, b)]
        far = min(
            np.linalg.norm(p - a - np.clip((p - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1) * (b - a)) for a, b in pairs
        )
        outside += not inside
        assert distance_outside(points, p) == pytest.approx(0.0 if inside else far, abs=1e-12)
    assert 60 < outside < 240


def test_an_edge_alone_has_no_inside():
    edge = np.array([[0.0, 0.0], [1.0, 0.0]])
    for p, far in (([0.5, 0.2], 0.2), ([0.5, -0.2], 0.2), ([0.5, 0.0], 0.0), ([1.3, 0.0], 0.3), ([-0.3, 0.4], 0.5)):
        assert distance_outside(edge, np.array(p)) == pytest.approx(far, abs=1e-12)
        assert distance_outside(edge[::-1], np.array(p)) == pytest.approx(far, abs=1e-12)


def test_on_one_foot_the_centre_of_mass_is_beside_it(robot):
    """Standing straight on both, then on the left alone: as far outside as the sole's inner edge is to the left."""
    q = standing(robot, 7)
    contacts = np.tile(ALL, (7, 1))
    contacts[3:, 2:], contacts[6] = False, False
    d = measure_dynamics(robot, q, contacts, RATE)
    com = pin.centerOfMass(robot.model, robot.data, q[0])
    inner = corner_paths(robot, q[:1])[0, :2, :, 1].min() - com[1]
    assert inner > 0.01 and list(d.frames) == [1, 2, 3, 4, 5]
    assert d.outside == pytest.approx([0, 0, inner, inner, inner], abs=1e-4)  # as round as the robot's numbers are
    assert d.balanced == pytest.approx(2 / 5)
    flying = measure_dynamics(robot, q, np.zeros((7, 4), dtype=bool), RATE)
    assert np.isnan(flying.outside).all() and np.isnan(flying.balanced)


# -------- Forces


def test_forces_are_the_least_squares_of_another_solver():
    rng = np.random.default_rng(1)
    for k in range(30):
        arms = np.column_stack([rng.uniform(-0.2, 0.2, (8, 2)), np.full(8, -0.7)])[: 2 + 2 * (k % 4)]
        needed = np.concatenate([rng.normal(0, 120, 2), rng.uniform(-100, 900, 1), rng.normal(0, 60, 3)])
        forces, missing = contact_forces(arms, needed, CONE)
        columns = [np.concatenate([side, np.cross(arm, side)]) for arm in arms for side in CONE.T]
        A = np.vstack([np.array(columns).T, EVEN * np.eye(len(columns))])
        b = np.concatenate([needed, np.zeros(len(columns))])
        best = lsq_linear(A, b, bounds=(0, np.inf), method="bvls", tol=1e-14)
        given = np.concatenate([forces.sum(axis=0), np.cross(arms, forces).sum(axis=0)])
        assert given + missing == pytest.approx(needed, abs=1e-8)
        assert given == pytest.approx(A[:6] @ best.x, abs=1e-3)
        assert (forces[:, 2] >= 0).all()
        assert (np.abs(forces[:, :2]).sum(axis=1) <= FRICTION * forces[:, 2] + 1e-9).all()


def test_floors_do_not_pull_and_soles_slip():
    feet = np.array([[0.1, 0.1, -0.7], [0.1, -0.1, -0.7], [-0.1, 0.1, -0.7], [-0.1, -0.1, -0.7]])
    forces, missing = contact_forces(feet, np.array([0.0, 0.0, -50.0, 0.0, 0.0, 0.0]), CONE)
    assert np.abs(forces).max() < 1e-9 and missing[2] == pytest.approx(-50.0)
    down = np.array([0.0, 0.0, 400.0, 0.0, 0.0, 0.0])
    forces, missing = contact_forces(feet, down, CONE)
    assert forces == pytest.approx(np.tile([0, 0, 100.0], (4, 1)), abs=0.01) and np.abs(missing).max() < 0.01
    nothing, missing = contact_forces(np.zeros((0, 3)), down, CONE)
    assert nothing.shape == (0, 3) and np.array_equal(missing, down)


def test_standing_the_feet_carry_the_weight_and_nobody_helps(robot):
    q = standing(robot, 4, turn=0.6)
    d = measure_dynamics(robot, q, np.tile(ALL, (4, 1)), 100.0)
    assert d.weight == pytest.approx(9.81 * robot.mass) and np.abs(d.missing).max() < 0.05
    assert d.forces.sum(axis=1) == pytest.approx(np.tile([0, 0, d.weight], (2, 1)), abs=0.05)
    gravity = pin.computeGeneralizedGravity(robot.model, robot.data, q[0])
    pushed = np.zeros(robot.nv)  # by finite differences of the corners
    for i in range(robot.nv):
        ends = []
        for sign in (1e-6, -1e-6):
            moved = pin.integrate(robot.model, q[0], sign * np.eye(robot.nv)[i])
            ends.append(corner_paths(robot, moved[None])[0].reshape(8, 3))
        pushed[i] = np.sum((ends[0] - ends[1]) / 2e-6 * d.forces[0])
    assert d.torque[0] == pytest.approx((gravity - pushed)[6:], abs=1e-3)
    assert np.abs(gravity - pushed)[:6].max() < 0.1, "the root carries nothing"


def test_the_power_of_all_forces_is_the_change_of_energy(robot):
    """Of a motion of root and joints with feet dragged along: torques, forces of the corners, and the helping hand."""
    q = swaying(robot, size=0.3)
    contacts = np.tile([True, True, False, True], (len(q), 1))
    d = measure_dynamics(robot, q, contacts, RATE)
    energy = []
    for before, now, after in zip(q, q[1:], q[2:], strict=False):
        v = pin.difference(robot.model, before, after) * RATE / 2
        energy.append(
            pin.computeKineticEnergy(robot.model, robot.data, now, v)
            + pin.computePotentialEnergy(robot.model, robot.data, now)
        )
    power = (np.array(energy)[2:] - np.array(energy)[:-2]) * RATE / 2
    ends = corner_paths(robot, q).reshape(len(q), 8, 3)
    given = []
    for i, k in enumerate(d.frames[1:-1], start=1):
        v = pin.difference(robot.model, q[k - 1], q[k + 1]) * RATE / 2
        corner = (ends[k + 1] - ends[k - 1]) * RATE / 2
        com = pin.centerOfMass(robot.model, robot.data, q[k], v)
        w = robot.data.oMi[1].rotation @ v[3:6]
        # The helping hand holds the root: its force moves with the point of the root that is at the centre of mass.
        arm = com - robot.data.oMi[1].translation
        v_hand = robot.data.oMi[1].rotation @ v[:3] + np.cross(w, arm)
        by_hand = d.missing[i, :3] @ v_hand + d.missing[i, 3:] @ w
        given.append(d.torque[i] @ v[6:] + np.sum(corner * d.forces[i]) + by_hand)
    assert np.ptp(power) > 200
    assert given == pytest.approx(power, abs=3e-5 * np.abs(power).max())  # of which speeds a frame late are ten times


# -------- What is known


def test_unknown_limits_followers_and_massless_links_are_left_out(robot, monkeypatch):
    q = swaying(robot, 8)
    contacts = np.tile(ALL, (8, 1))
    plain = measure_dynamics(robot, q, contacts, RATE)
    assert np.isfinite(plain.effort).all()
    assert plain.effort_share == pytest.approx(np.abs(plain.torque) / robot.effort)
    knee, ankle = robot.joint_index("l_knee_flexion"), robot.joint_index("l_ankle_flexion")
    known = robot.effort_known.copy()
    known[knee] = False
    monkeypatch.setattr(robot, "effort_known", known)
    monkeypatch.setattr(robot, "mimic", [(ankle, knee, -2.0, 0.0)])
    other = measure_dynamics(robot, q, contacts, RATE)
    assert np.isnan(other.effort[[knee, ankle]]).all() and np.isfinite(other.effort).sum() == robot.n - 2
    assert other.torque[:, knee] == pytest.approx(plain.torque[:, knee] - 2 * plain.torque[:, ankle])
    assert (other.torque[:, ankle] == 0).all()


def test_a_robot_without_masses_has_no_dynamics(robot, monkeypatch):
    q, contacts = standing(robot), np.tile(ALL, (5, 1))
    assert measure_dynamics(robot, q[:2], contacts[:2], RATE) is None, "no accelerations of two frames"
    monkeypatch.setattr(type(robot), "mass", property(lambda self: 0.0))
    assert measure_dynamics(robot, q, contacts, RATE) is None


def test_every_nth_frame_is_the_same_frame(robot):
    q, contacts = swaying(robot, 20), np.tile(ALL, (20, 1))
    whole, some = measure_dynamics(robot, q, contacts, RATE), measure_dynamics(robot, q, contacts, RATE, 5)
    assert list(some.frames) == [1, 6, 11, 16]
    at = some.frames - 1
    for name in ("outside", "forces", "missing", "torque"):
        assert np.array_equal(getattr(some, name), getattr(whole, name)[at])


def test_what_does_not_fit_is_refused(robot):
    with pytest.raises(ConfigError, match="expected q"):
        measure_dynamics(robot, np.zeros((3, 5)), np.zeros((3, 4), dtype=bool), RATE)
    fixed = load_robot("hrp2", "fixed")
    with pytest.raises(RobotError, match="floating base"):
        measure_dynamics(fixed, np.zeros((3, fixed.nq)), np.zeros((3, 4), dtype=bool), RATE)
