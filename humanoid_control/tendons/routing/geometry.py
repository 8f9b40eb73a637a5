"""Tendon lengths and moment arms by the routing of the tendons: exact, and made for being asked very often."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.tendons.routing.compiling import compiled
from humanoid_control.tendons.routing.entries import bend_at, measure_at
from humanoid_control.tendons.routing.packing import packed, packed_memory, placed_in, unpacked
from humanoid_control.tendons.routing.path_points import path_points
from humanoid_control.tendons.routing.tree import JointTree, crossed_joints
from humanoid_control.tendons.tendon import TendonSet

PROBES = 16  # postures that tell one routing from another


class TendonGeometry:
    """M tendons over D joints of a mechanism.

    Lengths are zeroed where all joints are zero, l(theta) = raw(theta) - raw(0), so that a tendon which got shorter
    since then has a negative length; the moment arms are G = dl / dtheta. One instance is for one thread. Arrays `out`
    given to be filled are contiguous.

    Attributes:
        tendon_names: (M,). joint_names: (D,), the order of theta. limits: (D, 2) of the joints [rad, m].
        zero: (M,) raw lengths where all joints are zero [m].
        routing: the arrays behind it. arrays: the first three arguments of the kernels in `entries`, for compiled code
            elsewhere.
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
        self.arrays = (*packed(self.routing), packed_memory(self.routing))
        self._q = np.array([model.joints[model.getJointId(n)].idx_q for n in names], dtype=int)
        lower, upper = model.lowerPositionLimit[self._q], model.upperPositionLimit[self._q]
        self.limits = np.column_stack([lower, upper])
        self._l, self._shape = np.zeros((1, len(tendons))), (len(tendons), len(names))
        self._no_arms = np.zeros((0, *self._shape))
        self.zero = np.zeros(len(tendons))
        measure_at(*self.arrays, np.zeros((1, len(names))), self.zero[None], self._no_arms)

    # -- one posture ------------------------------------------------------------------------------------------

    def lengths(self, theta: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Lengths (M,) since zero [m]."""
        out = np.empty(len(self.zero)) if out is None else out
        measure_at(*self.arrays, _row(theta)[None], out[None], self._no_arms)
        out -= self.zero
        return out

    def jacobian(self, theta: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Moment arms G (M, D) = d length / d theta [m/rad, m/m]."""
        out = np.empty(self._shape) if out is None else out
        measure_at(*self.arrays, _row(theta)[None], self._l, out[None])
        return out

    def jacobian_directional(self, theta: np.ndarray, v: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """d(G(theta) v) / d theta (M, D), which is also the derivative of G by time at the velocity v (D,)."""
        out = np.empty(self._shape) if out is None else out
        bend_at(*self.arrays, _row(theta), _row(v), out)
        return out

    def raw_into(self, theta: np.ndarray, lengths: np.ndarray, jacobian: np.ndarray) -> None:
        """Lengths (M,) of the whole paths, not zeroed, and moment arms (M, D), written into the arrays given."""
        measure_at(*self.arrays, _row(theta)[None], lengths[None], jacobian[None])

    # -- many postures ----------------------------------------------------------------------------------------

    def raw(self, thetas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lengths (N, M) of the whole paths, not zeroed, and moment arms (N, M, D) in postures (N, D)."""
        thetas = self._postures(thetas)
        lengths, G = np.empty((len(thetas), len(self.zero))), np.empty((len(thetas), *self._shape))
        measure_at(*self.arrays, thetas, lengths, G)
        return lengths, G

    def lengths_of(self, thetas: np.ndarray) -> np.ndarray:
        """Lengths (N, M) since zero [m] in postures (N, D)."""
        thetas = self._postures(thetas)
        out = np.empty((len(thetas), len(self.zero)))
        measure_at(*self.arrays, thetas, out, self._no_arms)
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
        out = np.zeros(self._shape, dtype=bool)
        r = self.routing
        for m in range(len(self.zero)):
            which = r.lever_joint[r.lever_first[3 * r.first[m]] : r.lever_first[3 * r.first[m + 1]]]
            out[m, r.coordinate[which]] = True
        return out

    @property
    def model_hash(self) -> str:
        """Names these tendons on this mechanism (SHA-256): joints, tendons, and lengths in some postures to 10 nm.

        So it is the same wherever the base stands, and whether it floats.
        """
        D = len(self.joint_names)
        thetas = np.sin(1.0 + np.arange(PROBES * D, dtype=float) ** 2).reshape(PROBES, D)
        lengths = np.rint(self.raw(thetas)[0] * 1e8).astype(np.int64)
        names = "\n".join((*self.joint_names, "", *self.tendon_names))
        return hashlib.sha256(names.encode() + lengths.tobytes()).hexdigest()

    def theta(self, q: np.ndarray) -> np.ndarray:
        """The values (D,) of the joints in a configuration (nq,) of the model."""
        return np.asarray(q, dtype=float)[self._q]

    def paths(self, theta: np.ndarray) -> list[np.ndarray]:
        """The way of every tendon, to be drawn: points (K, 3) in the world of the model, K differing, curved ways in
        steps. The branches of a tendon with pulleys follow each other, with a row of NaN between them."""
        ints, reals, memory = self.arrays
        theta = _row(theta)
        return path_points(unpacked(ints, reals), theta, placed_in(ints, memory))


def _row(theta: np.ndarray) -> np.ndarray:
    """As compiled code wants it; an array of another layout would be compiled for anew."""
    return np.ascontiguousarray(theta, dtype=float)


def _configuration(model: pin.Model, held: np.ndarray | Mapping[str, float] | None) -> np.ndarray | None:
    if held is None or isinstance(held, np.ndarray):
        return held
    q = pin.neutral(model)
    for name, value in held.items():
        JointTree(model, [name])  # refuses a name that cannot be held at one value
        q[model.joints[model.getJointId(name)].idx_q] = value
    return q
