"""What joints transmit, against pinocchio's inverse dynamics and against the generalised forces."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.multibody import ForwardDynamics, Model
from humanoid_control.multibody import layout as at
from humanoid_control.multibody.energy import joint_wrenches
from humanoid_control.multibody.model import from_pinocchio
from humanoid_control.robots import load_robot
from test.multibody.random_trees import BASES, random_bodies, random_state, random_wrenches


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_joints_of_a_robot_transmit_what_pinocchio_says(base):
    robot = load_robot("hrp2", base)
    tree, data, rng = from_pinocchio(robot.model), robot.model.createData(), np.random.default_rng(0)
    dynamics = ForwardDynamics(Model(tree.bodies))
    q = pin.randomConfiguration(robot.model, -np.ones(robot.nq), np.ones(robot.nq))
    v, tau = rng.normal(size=robot.nv), rng.normal(size=robot.nv) * 5
    qdd = dynamics(q, v, tau)
    assert np.allclose(pin.rnea(robot.model, data, q, v, qdd), tau, atol=1e-8)
    for body, ours in zip(tree.bodies, joint_wrenches(dynamics, qdd), strict=True):
        f, turn = data.f[robot.model.getJointId(body.name)], tree.turn[body.name]
        assert np.allclose(turn @ ours[:3], f.angular, atol=1e-8) and np.allclose(turn @ ours[3:], f.linear, atol=1e-8)


@pytest.mark.parametrize("base", BASES)
def test_wrenches_along_shared_axes_add_up_to_the_generalised_force(base):
    rng = np.random.default_rng(7)
    for _ in range(8):
        model = Model(random_bodies(rng, 12, base))
        q, v = random_state(model, rng)
        tau, wrench = rng.normal(size=model.nv), random_wrenches(model, rng)
        dynamics = ForwardDynamics(model)
        qdd = dynamics(q, v, tau, wrench)
        sums, J = np.zeros(model.nv), dynamics.arrays.work.J
        for i, lam in enumerate(joint_wrenches(dynamics, qdd, wrench)):
            own, motion = list(model.coords[i]), model.bodies[i].joint.motion
            if motion >= at.FREE:
                j = dynamics.arrays.ints[i, at.GROUP_JACOBIAN]
                sums[own] += J[j : j + 36].reshape(6, 6) @ lam
            else:
                o = (i + 1) * at.NW + at.GRAD
                sums[own] += dynamics.arrays.work.W[o : o + len(own)] * lam[2 if motion == at.REVOLUTE else 5]
        assert np.allclose(sums, tau, atol=1e-8)
