"""The simulated world: one robot, its drives, the ground, gravity, and a fixed-step integrator."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.multibody import Model
from humanoid_control.multibody.arrays import Arrays
from humanoid_control.multibody.from_pinocchio import bodies_of
from humanoid_control.multibody.motion import forward1
from humanoid_control.robots import Robot
from humanoid_control.simulation.contact_forces import contact_settle
from humanoid_control.simulation.contact_points import ContactPoints, pinocchio_bodies
from humanoid_control.simulation.drives import DriveGains, default_gains
from humanoid_control.simulation.engine_base import EngineBase
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.step import ContactTable, DriveTable, PushTable, State, place_carriers, run_steps


class World(EngineBase):
    """One robot in the compiled multibody engine: semi-implicit Euler, drives implicit. See `engine.Engine`.

    Attributes:
        arrays: the robot's bodies, one for each of its joints, in the engine's form.
        points: where it can touch the ground. layers (np, 3): deflections there [m]; forces (np, 3): on the robot, in
            the world, of the last step [N].
    """

    def __init__(self, robot: Robot, settings: WorldSettings | None = None, gains: DriveGains | None = None) -> None:
        self.settings = settings or WorldSettings()
        self.settings.check()
        super().__init__(robot, gains or default_gains(robot), self.settings.gravity, self.settings.coast)
        tree = bodies_of(robot.model)
        self.arrays = Arrays(Model(tree.bodies), (0.0, 0.0, -self.settings.gravity))
        self._turn = [tree.turn[b.name] for b in tree.bodies]
        self._set_up_contact()
        self._scratch = np.zeros((4, robot.n))
        self._no_push = PushTable(np.zeros(0, np.int64), np.zeros(0), np.zeros((0, 3)), np.zeros((0, 6)))
        self.reset()

    def _set_up_contact(self) -> None:
        r, nb = self.robot, len(self._turn)
        self.points = None
        body, points = np.zeros(0, np.int64), np.zeros((0, 4))
        if r.base == "floating":
            placed = {
                link: (j - 1, pin.SE3(self._turn[j - 1].T @ X.rotation, self._turn[j - 1].T @ X.translation))
                for link, (j, X) in pinocchio_bodies(r).items()
                if j > 0
            }
            self.points = ContactPoints(r, placed, self.settings.touching)
            body, points = self.points.body, self.points.points
        self.layers, self.forces = np.zeros((len(body), 3)), np.zeros((len(body), 3))
        self._contact = ContactTable(
            np.zeros((nb, 3, 3)),
            np.zeros((nb, 3)),
            np.zeros((nb, 6)),
            np.unique(body),
            body,
            points,
            self.settings.ground.array,
            self.settings.contact.array(),
            np.zeros((nb, 6)),
            np.zeros((len(body), 3)),
            np.zeros((len(body), 6)),
        )

    def _place(self) -> None:
        self.forces[:] = 0.0
        if self.points is not None:
            forward1(self.arrays.tables, self.q, self.v, self.arrays.work)
            c = self._contact
            place_carriers(self.arrays.work.W, c)
            contact_settle(c.R, c.r, c.body, c.points, self.layers, c.ground)

    def step(self, steps: int = 1) -> None:
        """Advance by a number of integration steps; nothing happens while `diverged`."""
        if self.diverged:
            return
        d, g, r, h = self.drives, self.gains, self.robot, self.settings.step
        x = State(self.q.copy(), self.v.copy(), self.acceleration.copy(), self.torque.copy(), self.layers, self.forces)
        drives = DriveTable(
            d.mode, d.q_ref, d.v_ref, d.effort, d.driven, d.lead, g.kp, g.kd, g.rotor, g.effort, g.stop, r.lower,
            r.upper, self._scratch,
        )  # fmt: skip
        done, bad = run_steps(
            self.arrays.tables, self.arrays.work, x, drives, self._contact, self._pushing(), self.time, d.since,
            d.coast, h, steps,
        )  # fmt: skip
        self.q, self.v, self.acceleration, self.torque = x.q, x.v, x.acceleration, x.torque
        self.time += done * h
        if bad >= 0:
            self._fail(bad)

    def _pushing(self) -> PushTable:
        """The pushes under way, in the axes of the engine's bodies."""
        if not self.pushes:
            return self._no_push
        active = [p for p in self.pushes.active(self.time) if p.joint > 0]
        if not active:
            return self._no_push
        return PushTable(
            np.array([p.joint - 1 for p in active]),
            np.array([p.until for p in active]),
            np.array([self._turn[p.joint - 1].T @ p.point for p in active]),
            np.array([p.wrench for p in active]),
        )

    def foot_wrenches(self) -> dict[str, np.ndarray]:
        """See `engine.Engine.foot_wrenches`."""
        if self.points is None:
            return self.soles.no_wrenches()
        pin.forwardKinematics(self.model, self.data, self.q)
        rows = (k for k in range(len(self.points)) if self.points.sole[k] >= 0 and self.forces[k].any())
        found = []
        for k in rows:
            j = int(self.points.body[k])
            at = self.data.oMi[j + 1].act(self._turn[j] @ self.points.points[k, :3])
            found.append((int(self.points.sole[k]), at, self.forces[k]))
        return self.soles.wrenches(self.data, found)
