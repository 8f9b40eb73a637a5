"""Screw drives as closed chains of pinocchio: the same mechanisms, with joints and closing points, no formulas."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.cli.bench_dynamics_parts import ChainParts


class ClosedChains(ChainParts):
    """A tree of pinocchio and loops beside it; pinocchio wants joints depth first, so they are sorted at the end.

    Attributes:
        model: of the whole. contacts: closing points, three equations each.
        tree_q, tree_v: where q and v of the tree lie in those of the whole. loop_v: the other velocities.
    """

    def prepare(self) -> None:
        """Build the model, its data and its contacts."""
        self.model = pin.Model()
        self.model.gravity = self.tree.gravity
        self._grow("universe", 0)
        armature = np.zeros(self.model.nv)
        for part in self.parts:
            j = self.model.joints[self.model.getJointId(part.name)]
            armature[j.idx_v : j.idx_v + j.nv] = part.armature
        self.model.armature = armature
        of_tree = [self.model.joints[self.model.getJointId(n)] for n in list(self.tree.names)[1:]]
        self.tree_q = np.concatenate([np.arange(j.idx_q, j.idx_q + j.nq) for j in of_tree])
        self.tree_v = np.concatenate([np.arange(j.idx_v, j.idx_v + j.nv) for j in of_tree])
        self.loop_q = np.setdiff1d(np.arange(self.model.nq), self.tree_q)
        self.loop_v = np.setdiff1d(np.arange(self.model.nv), self.tree_v)
        self.data = self.model.createData()
        self.contacts, self.contact_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for one, x, other, y in self.ends:
            a, b = (pin.SE3(np.eye(3), p) for p in (x, y))
            ends = (self.model.getJointId(one), a, self.model.getJointId(other), b)
            self.contacts.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, self.model, *ends, pin.LOCAL))
            self.contact_data.append(self.contacts[len(self.contacts) - 1].createData())
        self.proximal = pin.ProximalSettings(1e-14, 0.0, 1)
        try:
            pin.initConstraintDynamics(self.model, self.data, self.contacts, self.contact_data)
        except TypeError:  # before 4.0
            pin.initConstraintDynamics(self.model, self.data, self.contacts)

    def _grow(self, parent: str, at: int) -> None:
        for part in self.parts:
            if part.parent == parent:
                j = self.model.addJoint(at, part.joint, part.place, part.name)
                self.model.appendBodyToJoint(j, part.inertia, pin.SE3.Identity())
                self._grow(part.name, j)

    def gaps(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distances between closing points (3 loops,) [m], and their Jacobian."""
        pin.computeJointJacobians(self.model, self.data, q)
        e, J = [], []
        for one, x, other, y in self.ends:
            points, rows = [], []
            for joint, point in ((self.model.getJointId(one), x), (self.model.getJointId(other), y)):
                r = self.data.oMi[joint].rotation @ point
                jac = pin.getJointJacobian(self.model, self.data, joint, pin.LOCAL_WORLD_ALIGNED)
                points.append(self.data.oMi[joint].translation + r)
                rows.append(jac[:3] - pin.skew(r) @ jac[3:])
            e.append(points[0] - points[1])
            J.append(rows[0] - rows[1])
        return np.concatenate(e), np.vstack(J)

    def close(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Configuration and velocity of the whole for those of the tree, loops closed by Newton's method.

        Raises:
            ArithmeticError: they do not close.
        """
        x, u = np.zeros(self.model.nq), np.zeros(self.model.nv)
        x[self.tree_q], u[self.tree_v] = q, v
        for _ in range(50):
            e, J = self.gaps(x)
            if np.abs(e).max() < 1e-15:
                break
            x[self.loop_q] -= np.linalg.solve(J[:, self.loop_v], e)
        if not np.abs(e).max() < 1e-12:
            raise ArithmeticError(f"loops stay open by {np.abs(e).max():g} m")
        u[self.loop_v] = np.linalg.solve(J[:, self.loop_v], -J[:, self.tree_v] @ v)
        return x, u

    def loads(self, tau: np.ndarray) -> np.ndarray:
        """Generalised forces of the whole for those of the tree."""
        out = np.zeros(self.model.nv)
        out[self.tree_v] = tau
        return out

    def accelerate(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Accelerations of the whole (nv,): one call of pinocchio's constrained dynamics."""
        return pin.constraintDynamics(self.model, self.data, q, v, tau, self.contacts, self.contact_data, self.proximal)
