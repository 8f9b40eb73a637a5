"""A robot with its drives on the ground as one first-order model dz/dt = f(t, z, u), for any integrator (eq. (2.2))."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from humanoid_control.errors import ConfigError, RobotError, UnknownNameError
from humanoid_control.multibody import Model, free
from humanoid_control.multibody.arrays import Arrays
from humanoid_control.multibody.from_pinocchio import bodies_of
from humanoid_control.multibody.motion import forward1
from humanoid_control.robots import Robot
from humanoid_control.simulation.contact.forces import contact_settle
from humanoid_control.simulation.contact.robot_contact import (
    contact_points,
    contact_table,
    engine_links,
    place_carriers,
)
from humanoid_control.simulation.drives.drive_train import ELASTIC, RIGID, build_drive_train
from humanoid_control.simulation.drives.shafts import no_shafts, shaft_table
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.state_space.euler_base import euler_state, euler_turn, quaternion_state
from humanoid_control.simulation.state_space.rates import full_rates, reduced_rates
from humanoid_control.simulation.state_space.state_layout import StateLayout

REDUCED = "reduced"
TYPES = {REDUCED: 1, RIGID: 2, ELASTIC: 3}
"""Depths of the model, and their numbers in Table 2.3."""


@dataclass(frozen=True)
class Order:
    """How many states a model has: mechanical degrees of freedom, contact layers, currents; first-order equations."""

    mechanical: int
    contact: int
    electrical: int

    @property
    def first_order(self) -> int:
        """2 n_mech + n_contact + n_elec (Table 2.3)."""
        return 2 * self.mechanical + self.contact + self.electrical


class StateSpace:
    """dz/dt = f(t, z, u) of a robot with a floating base.

    z = [velocities, configuration, deflections of the contact layers, motor currents]; with a quaternion it has one
    number more than there are equations, with Euler angles just as many.

    The input u holds the motors' voltages (m,) [V], in the order of `train.shafts`; of the reduced model, whose joints
    move as prescribed, their angles, velocities and accelerations (3 n,).

    Attributes:
        order: counts of states. n: length of z. model: the multibody model. train: the drives; None where reduced.
        layout: of z, for `integrators.integrate`.
    """

    def __init__(
        self, robot: Robot, depth: str = RIGID, settings: WorldSettings | None = None, euler: bool = False
    ) -> None:
        """Build the model.

        Args:
            robot: base floating; with a file of drives unless reduced.
            depth: 'reduced', 'rigid' or 'elastic': Types 1, 2, 3 of Table 2.3.
            settings: ground, contact, gravity; its step does not matter here.
            euler: the base by Euler angles Z-X-Z instead of a quaternion.

        Raises:
            UnknownNameError: no such depth. RobotError: a fixed base, no file of drives.
        """
        if depth not in TYPES:
            raise UnknownNameError("depth of the model", depth, TYPES)
        if robot.base != "floating":
            raise RobotError(f"{robot.name}: the state-space model needs a floating base")
        self.robot, self.depth, self.euler = robot, depth, euler
        self.settings = settings or WorldSettings()
        self.train = None if depth == REDUCED else build_drive_train(robot, depth)
        pinocchio = robot.model if self.train is None else self.train.pinocchio
        tree = bodies_of(pinocchio)
        self.model = Model(tree.bodies) if self.train is None else self.train.model
        self.joints = robot.joint_names if self.train is None else self.train.joints
        if euler:
            self.model = _with_euler_base(self.model)
        self.points = contact_points(robot, engine_links(pinocchio, tree), self.settings.touching)
        self.arrays = Arrays(self.model, (0.0, 0.0, -self.settings.gravity))
        self._contact = contact_table(self.points, len(self.model.bodies), self.settings.ground, self.settings.contact)
        self._shafts = no_shafts() if self.train is None else shaft_table(self.train)
        m, p = len(self._shafts.body), 0 if self.points is None else len(self.points)
        self._nb = 6 if euler else 7
        if depth == REDUCED:
            self.order, self._nv, self._nq = Order(6, 3 * p, 0), 6, self._nb
        else:
            self.order, self._nv, self._nq = Order(self.model.nv, 3 * p, m), self.model.nv, self.model.nq
        self.n = self._nv + self._nq + 3 * p + m
        self.inputs = 3 * robot.n if depth == REDUCED else m
        self.layout = self._layout(p, m)
        self._tau, self._zero = np.zeros(self.model.nv), np.zeros(self.model.nv)
        self._qdd, self._rate = np.zeros(self.model.nv), np.zeros(self.model.nq)
        self._q, self._v = self.model.neutral(), np.zeros(self.model.nv)
        self._force, self._sdot = np.zeros((p, 3)), np.zeros((p, 3))

    def _layout(self, p: int, m: int) -> StateLayout:
        nv, nq = self._nv, self._nq
        names = [f"d/dt {c}" for c in self.model.coordinates[:nv]] + [f"q[{k}]" for k in range(nq)]
        names += [f"layer {x} {a}" for x in (self.points.names if self.points else ()) for a in "n12"]
        names += [f"current {s.body}" for s in (self.train.shafts if self.train else ())]
        # Light links hang on stiff gears and stand on stiff layers: only the base is slow.
        fast = [*range(6, nv), *range(nv + self._nb, self.n)]
        return StateLayout(self.n, range(nv), fast, [] if self.euler else [nv + 3], names)

    def rates(self, t: float, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        """dz/dt (n,); see the class for z and u."""
        out = np.empty(self.n)
        if np.shape(u) != (self.inputs,) or np.shape(z) != (self.n,):
            raise ConfigError(
                f"{self.depth} model: z has {self.n} and u {self.inputs} numbers, got {np.shape(z)} and {np.shape(u)}"
            )
        a = self.arrays
        if self.depth == REDUCED:
            reduced_rates(
                a.tables, a.work, self._contact, z, np.asarray(u, float), out, self._nb, self._q, self._v, self._qdd,
                self._zero, self._rate, self._force, self._sdot,
            )  # fmt: skip
        else:
            full_rates(
                a.tables, a.work, self._contact, self._shafts, z, np.asarray(u, float), out, self._nq, self._tau,
                self._zero, self._qdd, self._rate, self._force, self._sdot,
            )  # fmt: skip
        return out

    def initial(self, posture: str | np.ndarray = "neutral") -> np.ndarray:
        """z (n,) of the robot at rest in a posture, gears relaxed, layers settled on the ground, no current."""
        q = self.robot.q(posture)
        v, joints = np.zeros(6), self.robot.joints(q)
        z = np.zeros(self.n)
        base, z[:6] = q[:7], v
        if self.euler:
            base, z[:6] = euler_state(q[:7], v)
        z[self._nv : self._nv + self._nb] = base
        self._q[: self._nb] = base
        moving = np.array([joints[self.robot.index[j]] for j in self.joints])
        self._q[self._nb : self._nb + len(moving)] = moving
        if self.train is not None:
            z[self._nv + self._nb : self._nv + self._nb + len(moving)] = moving
            for s in self.train.shafts:
                if s.elastic:
                    k = self.model.qpos[self.model.coordinates.index(s.body)]
                    self._q[k] = z[self._nv + k] = s.drive.ratio * joints[self.robot.index[s.joints[0]]]
        if self.points is not None:
            forward1(self.arrays.tables, self._q, np.zeros(self.model.nv), self.arrays.work)
            c, layers = self._contact, np.zeros((len(self.points), 3))
            place_carriers(self.arrays.work.W, c)
            contact_settle(c, layers)
            at = self._nv + self._nq
            z[at : at + layers.size] = layers.ravel()
        return z

    def base(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pose (7,) x y z, quaternion x y z w, and velocity (6,) linear, angular in its own axes, of the root link."""
        q, v = z[self._nv : self._nv + self._nb], z[:6]
        return quaternion_state(q, v) if self.euler else (q.copy(), v.copy())


def _with_euler_base(model: Model) -> Model:
    root = model.bodies[0]
    base = replace(root, joint=free(root.name, euler=True), A=euler_turn())
    names = [*base.joint.coordinates, *model.coordinates[6:]]
    return Model([base, *model.bodies[1:]], names)
