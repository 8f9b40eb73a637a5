"""A free box on the ground, for tests: rigid body by hand, contact by the compiled loops."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
from scipy.integrate import solve_ivp

from humanoid_control.simulation.contact.forces import contact_forces, contact_settle, contact_step, contact_table_of
from humanoid_control.simulation.contact.ground import Ground
from humanoid_control.simulation.contact.points import ContactSettings

G = 9.81


def soft(**changes: float) -> ContactSettings:
    """A law that forces taken from the start of a step keep stable for a small box at 1 ms."""
    return replace(ContactSettings(4.0e4, 250.0, 4.0e4, 250.0), **changes)


class Box:
    """A box of a mass and side lengths with its eight corners as contact points; body frame at its centre."""

    def __init__(self, ground=None, law=None, mass=5.0, size=(0.3, 0.2, 0.1)):
        self.ground, self.law = ground or Ground.plane(), law or soft()
        self.mass, self.size = mass, np.array(size)
        a, b, c = self.size
        self.inertia = mass / 12 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b])
        corners = [[x, y, z, 0.0] for x in (-a / 2, a / 2) for y in (-b / 2, b / 2) for z in (-c / 2, c / 2)]
        self.points, self.body = np.array(corners), np.zeros(8, dtype=np.int64)
        self.R, self.r, self.V = np.eye(3)[None], np.array([[0.0, 0.0, c / 2]]), np.zeros((1, 6))
        self.s, self.force, self.wrench = np.zeros((8, 3)), np.zeros((8, 3)), np.zeros((1, 6))
        self.pull = np.zeros(3)  # force at the centre, world axes

    def lay(self, slope=0.0):
        """Put it on the ground, turned with a slope along x, loaded by its weight where it is flat."""
        self.R[0] = pin.rpy.rpyToMatrix(0.0, -slope, 0.0)
        n = self.ground.normal(0, 0)
        sink = self.mass * G * np.cos(slope) / (4 * self.law.stiffness)
        self.r[0] = [0, 0, self.ground.height(0, 0)] + (self.size[2] / 2 - sink) * n
        contact_settle(self.table(), self.s)
        return self

    def table(self):
        """The box as the compiled loops read it."""
        table = contact_table_of(self.body, self.points, self.ground.array, self.law.array(), 1)
        return table._replace(R=self.R, r=self.r, V=self.V, wrench=self.wrench)

    def _accelerations(self):
        w = self.R[0].T @ self.V[0, :3]
        turn = np.linalg.solve(self.inertia, self.wrench[0, :3] - pin.skew(w) @ (self.inertia @ w))
        return self.R[0] @ turn, (self.R[0] @ self.wrench[0, 3:] + self.pull) / self.mass - [0, 0, G]

    def step(self, h=1e-3):
        """One semi-implicit Euler step."""
        contact_step(self.table(), self.s, h, self.force)
        turn, a = self._accelerations()
        self.V[0, :3] += h * turn
        self.V[0, 3:] += h * a
        self.r[0] += h * self.V[0, 3:]
        self.R[0] = pin.exp3(h * self.V[0, :3]) @ self.R[0]

    def energy(self):
        """Kinetic, potential and stored in the layers [J]."""
        w = self.R[0].T @ self.V[0, :3]
        law = self.law
        layers = law.stiffness * (self.s[:, 0] ** 2).sum() + law.shear_stiffness * (self.s[:, 1:] ** 2).sum()
        moving = self.mass * self.V[0, 3:] @ self.V[0, 3:] + w @ self.inertia @ w
        return 0.5 * (moving + layers) + self.mass * G * self.r[0, 2]

    def rates(self, t, z):
        """The same as a state-space model: z = rotation (9), centre (3), velocity (6), layers (24)."""
        R, r, V, s = z[:9].reshape(1, 3, 3), z[9:12].reshape(1, 3), z[12:18].reshape(1, 6), z[18:].reshape(8, 3)
        self.R, self.r, self.V, self.s, sdot = R.copy(), r, V, s, np.zeros((8, 3))
        contact_forces(self.table(), s, self.force, sdot)
        turn, a = self._accelerations()
        return np.concatenate([(pin.skew(V[0, :3]) @ R[0]).ravel(), V[0, 3:], turn, a, sdot.ravel()])

    def solve(self, duration, at=None, tolerance=1e-8):
        """Integrate `rates` adaptively; returns SciPy's solution."""
        z = np.concatenate([self.R.ravel(), self.r.ravel(), self.V.ravel(), self.s.ravel()])
        return solve_ivp(self.rates, (0, duration), z, "RK45", at, rtol=tolerance, atol=tolerance * 1e-2, max_step=0.01)
