"""What the worlds in the compiled engine share: bodies, contact with the ground, pushes."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.multibody import Model
from humanoid_control.multibody.arrays import Arrays
from humanoid_control.multibody.from_pinocchio import Tree
from humanoid_control.multibody.motion import forward1
from humanoid_control.robots import Robot
from humanoid_control.simulation.contact.forces import contact_settle
from humanoid_control.simulation.contact.robot_contact import (
    contact_points,
    contact_table,
    engine_links,
    place_carriers,
)
from humanoid_control.simulation.drives.gains import DriveGains
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.steps.step import DriveTable
from humanoid_control.simulation.steps.step_forces import PushTable, push_table
from humanoid_control.simulation.worlds.engine_base import EngineBase


class CompiledWorld(EngineBase):
    """One robot in the compiled multibody engine. A subclass steps; see `engine.Engine`.

    Attributes:
        arrays: the bodies in the engine's form.
        points: where the robot can touch the ground. layers (np, 3): deflections there [m]; forces (np, 3): on the
            robot, in the world, of the last step [N].
    """

    def __init__(
        self,
        robot: Robot,
        settings: WorldSettings,
        gains: DriveGains,
        pinocchio: pin.Model,
        tree: Tree,
        model: Model,
    ) -> None:
        """Lay out the bodies.

        Args:
            pinocchio, tree: the joints that move. model: their bodies, and more after them.
        """
        settings.check()
        self.settings = settings
        super().__init__(robot, gains, settings.gravity, settings.coast)
        self.arrays = Arrays(model, (0.0, 0.0, -settings.gravity))
        self._links = engine_links(pinocchio, tree)
        self.points = contact_points(robot, self._links, settings.touching)
        self._contact = contact_table(self.points, len(model.bodies), settings.ground, settings.contact)
        touching = len(self._contact.body)
        self.layers, self.forces = np.zeros((touching, 3)), np.zeros((touching, 3))
        self._scratch = np.zeros((4, robot.n))
        self._no_pushes = push_table([])

    def _settle(self, q: np.ndarray) -> None:
        """The layers of a robot that was put down at rest at the engine's configuration q."""
        self.forces[:] = 0.0
        if self.points is not None:
            forward1(self.arrays.tables, q, np.zeros(self.arrays.model.nv), self.arrays.work)
            c = self._contact
            place_carriers(self.arrays.work.W, c)
            contact_settle(c, self.layers)

    def _drive_table(self) -> DriveTable:
        d, g, r = self.drives, self.gains, self.robot
        return DriveTable(
            d.mode, d.q_ref, d.v_ref, d.effort, d.driven, d.lead, g.kp, g.kd, g.rotor, g.effort, g.stop, r.lower,
            r.upper, self._scratch,
        )  # fmt: skip

    def _push_table(self) -> PushTable:
        """The pushes under way, in the axes of the engine's bodies."""
        if not self.pushes:
            return self._no_pushes
        rows = []
        for p in self.pushes.active(self.time):
            if p.link in self._links:  # else it is fixed to what holds the robot
                body, X = self._links[p.link]
                rows.append((body, p.until, X.act(p.point), p.wrench))
        return push_table(rows)

    def foot_wrenches(self) -> dict[str, np.ndarray]:
        """See `engine.Engine.foot_wrenches`."""
        if self.points is None:
            return self.soles.no_wrenches()
        pin.forwardKinematics(self.model, self.data, self.q)
        corners = self.forces[: 4 * len(self.soles.names)]  # the soles' points come first
        return self.soles.wrenches(self.data, corners.reshape(-1, 4, 3))
