"""Forces in a simulated world, recovered from its motion by other means than those that simulate it; for tests."""

import numpy as np
import pinocchio as pin

from humanoid_control.multibody import ForwardDynamics
from humanoid_control.multibody.model import from_pinocchio


def outside_forces(world, model, data, when):
    """Contact forces and pushes on the pinocchio joints of a model, in their frames, after `forwardKinematics`.

    Args:
        when: the time at which the step began [s].
    """
    forces = [pin.Force.Zero() for _ in range(model.njoints)]
    contact = getattr(world, "forces", np.zeros((0, 3)))  # MuJoCo has its own
    turn = from_pinocchio(model).turn if contact.any() else {}
    for k, f in enumerate(contact):
        if not f.any():
            continue
        j = int(world.points.body[k]) + 1
        at = turn[model.names[j]] @ world.points.points[k, :3]
        X = data.oMi[j]
        if world.points.points[k, 3] > 0:  # a ball touches below its centre; the ground is flat
            at = at - world.points.points[k, 3] * X.rotation.T[:, 2]
        local = X.rotation.T @ f
        forces[j] += pin.Force(local, np.cross(at, local))
    for p in world.pushes.active(when):
        frame = model.frames[model.getFrameId(p.link)]
        X = data.oMi[frame.parentJoint]
        lever = X.act(frame.placement.act(p.point))
        total = np.append(p.wrench[:3], p.wrench[3:] + np.cross(lever, p.wrench[:3]))  # about the world's origin
        forces[frame.parentJoint] += X.actInv(pin.Force(total))
    return forces


def joint_forces(world, q, v):
    """Generalised forces (nv,) of motors and stops in the last step of ideal drives: RNEA of the change of velocity.

    Args:
        q, v: where the step began.
    """
    model, data, h = world.model, world.data, world.settings.step
    pin.forwardKinematics(model, data, q, v)
    a = (world.v - v) / h
    rotors = np.concatenate([np.zeros(world.robot.iv), world.gains.rotor])
    return pin.rnea(model, data, q, v, a, outside_forces(world, model, data, world.time - h)) + rotors * a


class DrivenForces:
    """The same for a world of motors and gears, by the dense inertia matrix of all bodies."""

    def __init__(self, world):
        self.world, self.dynamics = world, ForwardDynamics(world.train.model, "dense")
        self.model = world.train.pinocchio.copy()
        self.data = self.model.createData()

    def __call__(self, q, v):
        """Generalised forces (nv,) beside gravity, contact and pushes; q, v: where the step began."""
        w, model = self.world, self.model
        pin.forwardKinematics(model, self.data, q[: model.nq], v[: model.nv])
        turn, wrench = w.train.tree.turn, np.zeros((len(w.train.model.bodies), 6))
        for j, f in enumerate(outside_forces(w, model, self.data, w.time - w.settings.step)):
            if j:
                R = turn[model.names[j]]
                wrench[j - 1] = np.concatenate([R.T @ f.angular, R.T @ f.linear])
        free = self.dynamics(q, v, None, wrench)
        nv = len(v)
        inverse = np.array([self.dynamics(q, v, e, wrench) - free for e in np.eye(nv)])
        return np.linalg.solve(inverse.T, (w.full_v - v) / w.settings.step - free)
