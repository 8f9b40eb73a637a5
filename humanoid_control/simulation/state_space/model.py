"""First-order model of a robot with drives on the ground (Schwienbacher 2014, eq. 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.array_types import F1, F2
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.errors import ConfigError, RobotError, SimulationError, UnknownNameError
from humanoid_control.multibody.acceleration_pass import acceleration_pass, base_acceleration
from humanoid_control.multibody.arrays import Arrays
from humanoid_control.multibody.force_elements import ForceElements
from humanoid_control.multibody.inertia_pass import inertia_pass
from humanoid_control.multibody.kinematics_pass import add_wrenches, configuration_rate, kinematics_pass
from humanoid_control.multibody.layout import NW, RATE
from humanoid_control.multibody.model import Model, free, from_pinocchio
from humanoid_control.numerics.rotation import (
    euler_zxz_angles,
    euler_zxz_matrix,
    omega_of_zxz_rates,
    zxz_rates_of_omega,
)
from humanoid_control.robots.robot import Robot
from humanoid_control.simulation.contact.forces import (
    contact_forces,
    contact_points,
    contact_settle,
    contact_table,
    engine_links,
    place_carriers,
)
from humanoid_control.simulation.drives.drive_train import ELASTIC, RIGID, build_drive_train
from humanoid_control.simulation.drives.motors_gears import (
    TORQUE_CONSTANT,
    ShaftTable,
    current_rate,
    no_shafts,
    shaft_forces,
    shaft_table,
)
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.worlds.step import WorldArrays

Rates = Callable[[float, np.ndarray, Any], np.ndarray]  # (t, z, u) -> dz/dt, all of one length


class StateLayout:
    """Indices into a state z (n,).

    Attributes:
        names: (n,) for messages.
        velocities: advanced first by semi-implicit Euler.
        fast: rotors, currents, contact layers.
        quaternions: first entries, normalised after every step.
    """

    def __init__(
        self,
        n: int,
        velocities: Sequence[int] | np.ndarray = (),
        fast: Sequence[int] | np.ndarray = (),
        quaternions: Sequence[int] = (),
        names: Sequence[str] = (),
    ) -> None:
        """Store the indices.

        Raises:
            ConfigError: if indices or names do not fit n.
        """
        self.n = n
        self.velocities = _indices("velocities", velocities, n)
        self.fast = _indices("fast", fast, n)
        self.quaternions = _indices("quaternions", quaternions, n - 3)
        if names and len(names) != n:
            raise ConfigError(f"state layout: {n} states need {n} names, got {len(names)}")
        self.names = tuple(names) or tuple(f"z[{k}]" for k in range(n))

    def normalise(self, z: np.ndarray) -> np.ndarray:
        for k in self.quaternions:
            size = np.sqrt(z[k : k + 4] @ z[k : k + 4])
            if size > 0:
                z[k : k + 4] /= size
        return z

    def check(self, t: float, z: np.ndarray, limit: float, what: str = "state") -> None:
        """Check that a state or rate is finite and bounded.

        Raises:
            SimulationError: names the worst entry.
        """
        if np.abs(z).max(initial=0.0) <= limit:  # false for NaN as well
            return
        size = np.where(np.isnan(z), np.inf, np.abs(z))
        k = int(np.argmax(size))
        raise SimulationError(
            f"simulation diverged at t = {t:.6g} s: {what} '{self.names[k]}' is {z[k]:.3g}; "
            "take a smaller step or an implicit or adaptive method"
        )


def _indices(what: str, values: Sequence[int] | np.ndarray, n: int) -> np.ndarray:
    out = np.array(values, dtype=int).ravel()
    if out.size and (out.min() < 0 or out.max() >= n):
        raise ConfigError(f"state layout: {what} must be indices from 0 to {n - 1}, got {out.min()} to {out.max()}")
    if len(np.unique(out)) != len(out):
        raise ConfigError(f"state layout: {what} names an index twice")
    return out


REDUCED = "reduced"
TYPES = {REDUCED: 1, RIGID: 2, ELASTIC: 3}  # depth -> type in Schwienbacher 2014, Table 2.3


@dataclass(frozen=True)
class StateCounts:
    """Numbers of mechanical degrees of freedom, contact layers and currents."""

    mechanical: int
    contact: int
    electrical: int

    @property
    def first_order(self) -> int:
        """2 n_mech + n_contact + n_elec (Schwienbacher 2014, Table 2.3)."""
        return 2 * self.mechanical + self.contact + self.electrical


class StateSpaceModel:
    """Model dz/dt = f(t, z, u) of a robot with a floating base.

    z = [velocities, configuration, deflections of the contact layers, motor currents]. u: motor voltages (m,) [V] in
    the order of `train.shafts`; if reduced, prescribed joint angles, velocities and accelerations (3 n,).

    Attributes:
        order: counts of states.
        train: the drives; None if reduced.
        layout: layout of z.
    """

    def __init__(
        self, robot: Robot, depth: str = RIGID, settings: WorldSettings | None = None, euler: bool = False
    ) -> None:
        """Build the model.

        Args:
            robot: floating base, drives file unless reduced.
            depth: 'reduced', 'rigid' or 'elastic': Types 1, 2, 3 of Table 2.3.
            settings: ground, contact, gravity.
            euler: base by Euler angles Z-X-Z.

        Raises:
            UnknownNameError: if the depth is unknown.
            RobotError: if the base is fixed, or drives are missing.
        """
        if depth not in TYPES:
            raise UnknownNameError("depth of the model", depth, TYPES)
        if robot.base != "floating":
            raise RobotError(f"{robot.name}: the state-space model needs a floating base")
        self.robot, self.depth, self.euler = robot, depth, euler
        self.settings = settings or WorldSettings()
        self.train = None if depth == REDUCED else build_drive_train(robot, depth)
        pinocchio = robot.model if self.train is None else self.train.pinocchio
        tree = from_pinocchio(pinocchio)
        self.model = Model(tree.bodies) if self.train is None else self.train.model
        self.joints = robot.joint_names if self.train is None else self.train.joints
        if euler:
            self.model = _with_euler_base(self.model)
        self.points = contact_points(robot, engine_links(pinocchio, tree), self.settings.touching)
        self.arrays = Arrays(self.model, (0.0, 0.0, -self.settings.gravity))
        contact = contact_table(self.points, len(self.model.bodies), self.settings.ground, self.settings.contact)
        none = ForceElements(self.model, []).table
        self._world = WorldArrays(self.arrays.tables, self.arrays.work, contact, none)
        self._shafts = no_shafts() if self.train is None else shaft_table(self.train)
        m, p = len(self._shafts.body), 0 if self.points is None else len(self.points)
        self._nb = 6 if euler else 7
        if depth == REDUCED:
            self.order, self._nv, self._nq = StateCounts(6, 3 * p, 0), 6, self._nb
        else:
            self.order, self._nv, self._nq = StateCounts(self.model.nv, 3 * p, m), self.model.nv, self.model.nq
        self.n = self._nv + self._nq + 3 * p + m
        self.inputs = 3 * robot.n if depth == REDUCED else m
        self.layout = self._layout(p, m)
        v, qdd, tau, armature = np.zeros((4, self.model.nv))
        q, force, layer_rate = self.model.neutral(), np.zeros((p, 3)), np.zeros((p, 3))
        self._memory = RateMemory(q, v, qdd, tau, armature, np.zeros(self.model.nq), force, layer_rate)

    def _layout(self, p: int, m: int) -> StateLayout:
        nv, nq = self._nv, self._nq
        names = [f"d/dt {c}" for c in self.model.coordinates[:nv]] + [f"q[{k}]" for k in range(nq)]
        names += [f"layer {x} {a}" for x in (self.points.names if self.points else ()) for a in "n12"]
        names += [f"current {s.body}" for s in (self.train.shafts if self.train else ())]
        # Light links on stiff gears and layers are fast: only the base is slow.
        fast = [*range(6, nv), *range(nv + self._nb, self.n)]
        return StateLayout(self.n, range(nv), fast, [] if self.euler else [nv + 3], names)

    def rates(self, t: float, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Return dz/dt (n,)."""
        out = np.empty(self.n)
        if np.shape(u) != (self.inputs,) or np.shape(z) != (self.n,):
            raise ConfigError(
                f"{self.depth} model: z has {self.n} and u {self.inputs} numbers, got {np.shape(z)} and {np.shape(u)}"
            )
        given = np.asarray(u, float)
        if self.depth == REDUCED:
            reduced_rates(self._world, z, given, out, self._memory)
        else:
            full_rates(self._world, self._shafts, z, given, out, self._memory)
        return out

    def initial(self, posture: str | np.ndarray = "neutral") -> np.ndarray:
        """Return z (n,) at rest in a posture: relaxed gears, settled contact layers, no current."""
        q = self.robot.q(posture)
        v, joints = np.zeros(6), self.robot.joints(q)
        z = np.zeros(self.n)
        base, z[:6] = q[:7], v
        if self.euler:
            base, z[:6] = euler_state(q[:7], v)
        z[self._nv : self._nv + self._nb] = base
        q_model = self._memory.q
        q_model[: self._nb] = base
        moving = np.array([joints[self.robot.index[j]] for j in self.joints])
        q_model[self._nb : self._nb + len(moving)] = moving
        if self.train is not None:
            z[self._nv + self._nb : self._nv + self._nb + len(moving)] = moving
            for s in self.train.shafts:
                if s.elastic:
                    k = self.model.qpos[self.model.coordinates.index(s.body)]
                    # Relaxed gear: the rotor angle is ratio times the joint angle.
                    q_model[k] = z[self._nv + k] = s.drive.ratio * joints[self.robot.index[s.joints[0]]]
        if self.points is not None:
            w, layers = self._world, np.zeros((len(self.points), 3))
            # Settling of the layers needs the link poses at this configuration.
            kinematics_pass(w.tables, q_model, np.zeros(self.model.nv), w.work)
            place_carriers(w.work.W, w.contact)
            contact_settle(w.contact, layers)
            at = self._nv + self._nq
            z[at : at + layers.size] = layers.ravel()
        return z

    def base(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return root link pose (7,) (x y z, quaternion x y z w) and velocity (6,) in its own axes."""
        q, v = z[self._nv : self._nv + self._nb], z[:6]
        return quaternion_state(q, v) if self.euler else (q.copy(), v.copy())


def _with_euler_base(model: Model) -> Model:
    root = model.bodies[0]
    base = replace(root, joint=free(root.name, euler=True), A=euler_turn())
    names = [*base.joint.coordinates, *model.coordinates[6:]]
    return Model([base, *model.bodies[1:]], names)


# -------- Rates, compiled


class RateMemory(NamedTuple):
    """Memory: q (nq,), v, qdd, tau, armature (nv,), dq/dt (nq,), contact (np, 3)."""

    q: np.ndarray
    v: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    armature: np.ndarray
    q_rate: np.ndarray
    force: np.ndarray
    layer_rate: np.ndarray


@kernel(allocates=True)
def full_rates(world: WorldArrays, s: ShaftTable, z: F1, u: F1, dz: F1, x: RateMemory) -> None:
    """Compute the rates dz of z = [v, q, layers, currents] under voltages u."""
    t, w = world.tables, world.work
    nv, nq, p, m = x.qdd.shape[0], x.q.shape[0], x.force.shape[0], u.shape[0]
    v, q = z[:nv], z[nv : nv + nq]
    currents = z[nv + nq + 3 * p :]
    x.tau[:] = 0.0
    kinematics_pass(t, q, v, w)
    _contact(world, z[nv + nq : nv + nq + 3 * p].reshape((p, 3)), x)
    for k in range(m):
        # Motor torque k_m i: the current is a state, so that the torque is known before the dynamics.
        s.torque[k] = s.motor[k, TORQUE_CONSTANT] * currents[k]
    # h = 0: forces at this instant, no implicit friction, which leaves the armature at zero.
    shaft_forces(t, w.W, s, q, v, 0.0, x.tau, x.armature)
    inertia_pass(t, x.tau, x.armature, w)
    acceleration_pass(t, w, x.qdd)
    configuration_rate(t, q, v, x.q_rate)
    dz[:nv] = x.qdd
    dz[nv : nv + nq] = x.q_rate
    _layer_rates(x.layer_rate, dz, nv + nq)
    for k in range(m):
        # Back-EMF follows the rotor's speed relative to its carrier.
        speed = w.W[(s.body[k] + 1) * NW + RATE]
        dz[nv + nq + 3 * p + k] = current_rate(currents[k], u[k], speed, s.motor[k])


@kernel(allocates=True)
def reduced_rates(world: WorldArrays, z: F1, u: F1, dz: F1, x: RateMemory) -> None:
    """Compute the rates dz of z = [base v, base q, layers] for joints prescribed by u (3 n,)."""
    t, w = world.tables, world.work
    n, p = u.shape[0] // 3, x.force.shape[0]
    q, v, qdd, nb = x.q, x.v, x.qdd, x.q.shape[0] - n
    v[:6], q[:nb] = z[:6], z[6 : 6 + nb]
    # Prescribed joints: only the six equations of the base remain to be solved.
    q[nb:], v[6:], qdd[6:] = u[:n], u[n : 2 * n], u[2 * n :]
    kinematics_pass(t, q, v, w)
    _contact(world, z[6 + nb :].reshape((p, 3)), x)
    # Solves the base for the given joint accelerations qdd[6:].
    base_acceleration(t, x.tau, x.armature, w, qdd)
    configuration_rate(t, q, v, x.q_rate)
    dz[:6] = qdd[:6]
    dz[6 : 6 + nb] = x.q_rate[:nb]
    _layer_rates(x.layer_rate, dz, 6 + nb)


@inlined
def _contact(world: WorldArrays, layers: F2, x: RateMemory) -> None:
    if layers.shape[0] > 0:
        c = world.contact
        place_carriers(world.work.W, c)
        contact_forces(c, layers, x.force, x.layer_rate)
        add_wrenches(world.tables, c.wrench, world.work)


@inlined
def _layer_rates(rate: F2, dz: F1, at: int) -> None:
    for k in range(rate.shape[0]):
        for a in range(3):
            dz[at + 3 * k + a] = rate[k, a]


# -------- Floating base by Euler angles

UPRIGHT = (0.0, np.pi / 2, 0.0)  # phi, theta, psi [rad]


def euler_turn() -> np.ndarray:
    """Constant rotation (3, 3) before the angles: an upright body has theta = 90 degrees."""
    return euler_zxz_matrix(*UPRIGHT)


def euler_state(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Convert a floating base to Euler angles (Schwienbacher 2014, eq. 2.39, with c_2 for its last s_2, and 2.41).

    Returns:
        phi, theta, psi [rad] and position [m] in the rotated world (6,), and their rates (6,).
    """
    # Body axes in the rotated world: an upright body is far from the singularity theta = 0.
    A = euler_turn() @ pin.Quaternion(q[3:7]).toRotationMatrix()
    angles = euler_zxz_angles(A)
    rates = zxz_rates_of_omega(*angles[:2]) @ A @ v[3:6]
    return np.concatenate([angles, euler_turn() @ q[:3]]), np.concatenate([rates, A @ v[:3]])


def quaternion_state(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    A = euler_zxz_matrix(*q[:3])
    X = pin.SE3(euler_turn().T @ A, euler_turn().T @ q[3:6])
    return pin.SE3ToXYZQUAT(X), np.concatenate([A.T @ v[3:6], A.T @ omega_of_zxz_rates(*q[:2]) @ v[:3]])
