"""Trees without loops, and rotors, against pinocchio."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.multibody import Body, ForwardDynamics, Inertia, Model, rotor
from humanoid_control.multibody.model import axis_to_z, from_pinocchio
from humanoid_control.robots import CATALOGUE, load_robot
from test.robots_under_test import by_kind


def a_state(model, rng):
    q = pin.randomConfiguration(model, -2 * np.ones(model.nq), 2 * np.ones(model.nq))
    return q, rng.normal(size=model.nv), 10 * rng.normal(size=model.nv)


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_every_robot_accelerates_as_with_pinocchios_articulated_bodies(name, base):
    robot, rng = load_robot(name, base), np.random.default_rng(1)
    model, data = Model(from_pinocchio(robot.model).bodies), robot.model.createData()
    assert (model.nq, model.nv) == (robot.model.nq, robot.model.nv) and not model.loops
    solvers = [ForwardDynamics(model, s) for s in ("articulated_body", "sparse", "dense")]
    for _ in range(3):
        q, v, tau = a_state(robot.model, rng)
        expected = pin.aba(robot.model, data, q, v, tau)
        for solve in solvers:
            assert np.abs(solve(q, v, tau) - expected).max() < 1e-9 * np.abs(expected).max()


def test_joints_about_any_axis_and_slides_are_read_from_pinocchio():
    rng, tree = np.random.default_rng(2), pin.Model()
    kinds = [pin.JointModelRX, pin.JointModelRY, pin.JointModelPX, pin.JointModelPZ]
    at = tree.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Random(), "base")
    for k in range(10):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        made = kinds[k]() if k < 4 else (pin.JointModelRevoluteUnaligned, pin.JointModelPrismaticUnaligned)[k % 2](axis)
        tree.appendBodyToJoint(at, pin.Inertia.Random(), pin.SE3.Identity())
        at = tree.addJoint(at, made, pin.SE3.Random(), f"j{k}")
    tree.appendBodyToJoint(at, pin.Inertia.Random(), pin.SE3.Identity())
    q, v, tau = a_state(tree, rng)
    expected = pin.aba(tree, tree.createData(), q, v, tau)
    found = ForwardDynamics(Model(from_pinocchio(tree).bodies))(q, v, tau)
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()
    tree.addJoint(at, pin.JointModelSpherical(), pin.SE3.Identity(), "ball")
    with pytest.raises(RobotError, match="'ball': Spherical joints cannot be simulated"):
        from_pinocchio(tree)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_geared_rotors_act_as_pinocchios_mimic_joints(base):
    """A rotor per joint of a robot's arm and leg, off its axis, against inverse dynamics with mimicking joints."""
    robot, rng = load_robot("hrp2", base), np.random.default_rng(3)
    tree = robot.model.copy()
    geared = [j for j in range(1, tree.njoints) if tree.joints[j].nq == 1][::3]
    shafts = []
    for j in geared:
        axis, place = rng.normal(size=3), rng.normal(size=3) * 0.1
        axis /= np.linalg.norm(axis)
        inertia = 1e-4 * np.eye(3) + 0.8e-4 * np.outer(axis, axis)
        shafts.append((j, axis, place, inertia, rng.uniform(-80, 80)))
    ours = from_pinocchio(tree)
    bodies = list(ours.bodies)
    turns = {"universe": np.eye(3), **ours.turn}
    for j, axis, place, _, ratio in shafts:
        parent = tree.names[tree.parents[j]]
        local = Inertia(0.0, np.zeros(3), np.diag([1e-4, 1e-4, 1.8e-4]))
        name = bodies[j - 1].joint.coordinates[0]
        carrier = "" if parent == "universe" else parent
        turned = axis_to_z(axis).T @ turns[parent]
        bodies.append(Body(f"shaft{j}", carrier, rotor(name, ratio), local, turned, turns[parent].T @ place))
    model = Model(bodies)
    assert len(model.loops) == len(shafts) > 8
    full = with_mimics(tree, shafts)
    data = full.createData()
    q, v, tau = a_state(tree, rng)
    for solver in ("articulated_body", "sparse", "dense"):
        qdd = ForwardDynamics(model, solver)(q, v, tau)
        back = pin.rnea(full, data, q, v, qdd)
        assert np.abs(back - tau).max() < 1e-9 * np.abs(tau).max() + 1e-8


def with_mimics(tree, shafts):
    """The tree with a mimicking joint beside each geared one."""
    out, inside = pin.Model(), {0: 0}
    out.gravity = tree.gravity
    for j in range(1, tree.njoints):
        at = inside[tree.parents[j]]
        inside[j] = out.addJoint(at, tree.joints[j], tree.jointPlacements[j], tree.names[j])
        out.appendBodyToJoint(inside[j], tree.inertias[j], pin.SE3.Identity())
    for j, axis, place, inertia, _ in shafts:
        joint = pin.JointModelRevoluteUnaligned(axis)
        k = out.addJoint(inside[tree.parents[j]], joint, pin.SE3(np.eye(3), place), f"shaft{j}")
        out.appendBodyToJoint(k, pin.Inertia(0.0, np.zeros(3), inertia), pin.SE3.Identity())
    for j, _, _, _, ratio in shafts:
        pairs = out.getJointId(tree.names[j]), out.getJointId(f"shaft{j}")
        out = pin.transformJointIntoMimic(out, *pairs, ratio, 0.0)
    return out
