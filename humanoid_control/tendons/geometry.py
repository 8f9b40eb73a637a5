"""Tendon lengths and moment arms by the routing of the tendons: exact, and made for being asked very often."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.tendons.bending import bend
from humanoid_control.tendons.compiling import compiled
from humanoid_control.tendons.measuring import measure, measure_many
from humanoid_control.tendons.path_points import path_points
from humanoid_control.tendons.routing import memory_for
from humanoid_control.tendons.tendon import TendonSet
from humanoid_control.tendons.tree import JointTree, crossed_joints


class TendonGeometry:
    """M tendons over D joints of a mechanism.

    Lengths are zeroed where all joints are zero, l(theta) = raw(theta) - raw(0), so that a tendon which got shorter
    since then has a negative length; the moment arms are G = dl / dtheta. One instance is for one thread.

    Attributes:
        tendon_names: (M,). joint_names: (D,), the order of theta. limits: (D, 2) of the joints [rad, m].
        zero: (M,) raw lengths where all joints are zero [m].
        routing: the arrays for `measuring.measure` and `bending.bend`, for kernels of other rooms. at: their memory.
        tendons, model: what it was made of.
    """

    def __init__(
        self,
        model: pin.Model,
        tendons: TendonSet,
        joints: Iterable[str] | None = None,
        held: np.ndarray | Mapping[str, float] | None = None,
    ) -> None:
        """Prepare.

        Args:
            model: pinocchio model that has the links of the tendons, with a fixed or a floating base.
            tendons: whose lengths are asked for.
            joints: names of the joints that move, in the order of theta; default: all that the tendons cross, in the
                order of the model.
            held: where all other joints are held: a configuration (nq,), or joint name to value [rad, m] with the
                rest at neutral; default: neutral.

        Raises:
            UnknownNameError: an unknown link or joint. RobotError: a joint of several degrees of freedom.
        """
        names = crossed_joints(model, tendons) if joints is None else tuple(joints)
        self.model, self.tendons = model, tendons
        self._tree = JointTree(model, names, _configuration(model, held))
        self.joint_names, self.tendon_names = self._tree.names, tendons.names
        self.routing = compiled(self._tree, tendons)
        self.at = memory_for(self.routing)
        self._q = np.array([model.joints[model.getJointId(n)].idx_q for n in names], dtype=int)
        lower, upper = model.lowerPositionLimit[self._q], model.upperPositionLimit[self._q]
        self.limits = np.column_stack([lower, upper])
        self._l, self._G = np.zeros(len(tendons)), np.zeros((len(tendons), len(names)))
        self.zero = np.zeros(len(tendons))
        measure(self.routing, np.zeros(len(names)), self.at, self.zero, self._G, False)

    # -- one posture ------------------------------------------------------------------------------------------

    def lengths(self, theta: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Lengths (M,) since zero [m]."""
        out = np.empty(len(self.zero)) if out is None else out
        measure(self.routing, theta, self.at, out, self._G, False)
        out -= self.zero
        return out

    def jacobian(self, theta: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Moment arms G (M, D) = d length / d theta [m/rad, m/m]."""
        out = np.empty(self._G.shape) if out is None else out
        measure(self.routing, theta, self.at, self._l, out, True)
        return out

    def jacobian_directional(self, theta: np.ndarray, v: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """d(G(theta) v) / d theta (M, D), which is also the derivative of G by time at the velocity v (D,)."""
        out = np.empty(self._G.shape) if out is None else out
        bend(self.routing, theta, v, self.at, out)
        return out

    def raw_into(self, theta: np.ndarray, lengths: np.ndarray, jacobian: np.ndarray) -> None:
        """Lengths (M,) of the whole paths, not zeroed, and moment arms (M, D), written into the arrays given."""
        measure(self.routing, theta, self.at, lengths, jacobian, True)

    # -- many postures ----------------------------------------------------------------------------------------

    def raw(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lengths (N, M) of the whole paths, not zeroed, and moment arms (N, M, D) in postures (N, D)."""
        thetas = self._postures(thetas)
        lengths, G = np.empty((len(thetas), len(self.zero))), np.empty((len(thetas), *self._G.shape))
        if len(thetas):
            measure_many(self.routing, thetas, self.at, lengths, G, True)
        return lengths, G

    def lengths_of(self, thetas: np.ndarray) -> np.ndarray:
        """Lengths (N, M) since zero [m] in postures (N, D)."""
        thetas = self._postures(thetas)
        out = np.empty((len(thetas), len(self.zero)))
        measure_many(self.routing, thetas, self.at, out, self._G[None], False)
        out -= self.zero
        return out

    def jacobians_of(self, thetas: np.ndarray) -> np.ndarray:
        """Moment arms (N, M, D) in postures (N, D)."""
        return self.raw(thetas)[1]

    def _postures(self, thetas: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(thetas, dtype=float)
        if rows.ndim != 2 or rows.shape[1] != len(self.joint_names):
            raise RobotError(f"postures must be (N, {len(self.joint_names)}), got {rows.shape}")
        return rows

    # -- around it ----------------------------------------------------------------------------------------------

    @property
    def crossed(self) -> np.ndarray:
        """(M, D) which joints each tendon crosses, by its path."""
        out = np.zeros(self._G.shape, dtype=bool)
        r = self.routing
        for m in range(len(self.zero)):
            which = r.lever_joint[r.lever_first[3 * r.first[m]] : r.lever_first[3 * r.first[m + 1]]]
            out[m, r.coordinate[which]] = True
        return out

    def theta(self, q: np.ndarray) -> np.ndarray:
        """The values (D,) of the joints in a configuration (nq,) of the model."""
        return np.asarray(q, dtype=float)[self._q]

    def paths(self, theta: np.ndarray) -> list[np.ndarray]:
        """The way of every tendon, to be drawn: points (K, 3) in the world of the model, K differing, curved ways in
        steps. The branches of a tendon with pulleys follow each other, with a row of NaN between them."""
        return path_points(self.routing, theta, self.at)


def _configuration(model: pin.Model, held: np.ndarray | Mapping[str, float] | None) -> np.ndarray | None:
    if held is None or isinstance(held, np.ndarray):
        return held
    q = pin.neutral(model)
    for name, value in held.items():
        JointTree(model, [name])  # refuses a name that cannot be held at one value
        q[model.joints[model.getJointId(name)].idx_q] = value
    return q
