"""Arms for tests: random chains beside their pinocchio models, and one joint that is a double integrator."""

import numpy as np
import pinocchio as pin

from humanoid_control.reaching import Arm
from humanoid_control.reaching.optimal.spatial_motion import ArmModel


def random_arm(n, seed=0):
    """A chain of n joints with any axes and bodies: its ArmModel and its pinocchio model."""
    rng, model, joint = np.random.default_rng(seed), pin.Model(), 0
    pin.seed(seed)
    rows = []
    for k in range(n):
        X, body, axis = pin.SE3.Random(), pin.Inertia.Random(), rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        if k == 0:
            X.translation = np.zeros(3)
        joint = model.addJoint(joint, pin.JointModelRevoluteUnaligned(axis), X, f"joint{k}")
        model.appendBodyToJoint(joint, body, pin.SE3.Identity())
        rows.append((X.rotation, X.translation, axis, body.mass, body.lever, body.inertia))
    parts = [np.array(part) for part in zip(*rows, strict=True)]
    return ArmModel(*parts, np.array([0.1, 0.2, 0.3]), np.array(model.gravity.linear)), model


def integrator():
    """One joint of inertia 1 without weight: the torque is the acceleration."""
    model = ArmModel(
        np.eye(3)[None],
        np.zeros((1, 3)),
        np.array([[0.0, 0.0, 1.0]]),
        np.zeros(1),
        np.zeros((1, 3)),
        np.eye(3)[None],
        np.array([1.0, 0.0, 0.0]),
        np.zeros(3),
    )
    endless = np.full(1, np.inf)
    return Arm("integrator", ("joint",), model, -endless, endless, endless, endless, np.zeros(3))
