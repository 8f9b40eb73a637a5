"""Joint-space inertia and Jacobian of all joints beside pinocchio's, of a floating and a fixed base."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.kinematics.forward_kinematics import JointPoses
from humanoid_control.kinematics.joint_inertia import (
    ModelInertia,
    composite_inertias,
    inertia_diagonal,
    joint_inertia,
    motion_columns,
)
from humanoid_control.robots import load_robot


def sliding_model():
    """A floating base with a slide between two turning joints."""
    model = pin.Model()
    base = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Random(), "base")
    first = model.addJoint(base, pin.JointModelRX(), pin.SE3.Random(), "first")
    slide = model.addJoint(first, pin.JointModelPY(), pin.SE3.Random(), "slide")
    last = model.addJoint(slide, pin.JointModelRZ(), pin.SE3.Random(), "last")
    for joint in (base, first, slide, last):
        model.appendBodyToJoint(joint, pin.Inertia.Random(), pin.SE3.Random())
    return model


@pytest.mark.parametrize("name", ["hrp2 floating", "lola fixed", "slide"])
def test_inertia_and_jacobian_are_those_of_pinocchio(name):
    pin.seed(3)
    model = sliding_model() if name == "slide" else load_robot(*name.split()).model.copy()
    model.armature = 0.01 * np.arange(model.nv)
    poses, body, data = JointPoses(model), ModelInertia.of(model), model.createData()
    for _ in range(5):
        q = pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq))
        poses.update(q)
        motion_columns(poses.tree, poses.world, body)
        composite_inertias(poses.tree, poses.world, body)
        joint_inertia(body)
        expected, diagonal = pin.crba(model, data, q), np.zeros(model.nv - 1)
        inertia_diagonal(body, 1, diagonal)
        assert np.allclose(body.M, np.triu(expected).T, rtol=1e-12, atol=1e-12)
        assert np.allclose(diagonal, np.diag(expected)[1:], rtol=1e-12)
        assert np.allclose(body.motion, pin.computeJointJacobians(model, data, q), atol=1e-12)
