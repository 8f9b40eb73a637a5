"""The simulated world: one robot, ideal drives, the ground, gravity, and a fixed-step integrator."""

from __future__ import annotations

from humanoid_control.multibody import Model
from humanoid_control.multibody.from_pinocchio import bodies_of
from humanoid_control.robots import Robot
from humanoid_control.simulation.drives.gains import DriveGains, default_gains
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.steps.step import State, run_steps
from humanoid_control.simulation.worlds.compiled_world import CompiledWorld


class World(CompiledWorld):
    """One robot whose drives give their torque at once: semi-implicit Euler, drives and contact implicit."""

    def __init__(self, robot: Robot, settings: WorldSettings | None = None, gains: DriveGains | None = None) -> None:
        tree = bodies_of(robot.model)
        given, gains = settings or WorldSettings(), gains or default_gains(robot)
        super().__init__(robot, given, gains, robot.model, tree, Model(tree.bodies))
        self.reset()

    def _place(self) -> None:
        self._settle(self.q)

    def step(self, steps: int = 1) -> None:
        """Advance by a number of integration steps; nothing happens while `diverged`."""
        if self.diverged:
            return
        d, h, a = self.drives, self.settings.step, self.arrays
        x = State(self.q.copy(), self.v.copy(), self.acceleration.copy(), self.torque.copy(), self.layers, self.forces)
        done, bad = run_steps(
            a.tables, a.work, x, self._drive_table(), self._contact, self._push_table(), self.time, d.since, d.coast, h,
            steps,
        )  # fmt: skip
        self.q, self.v, self.acceleration, self.torque = x.q, x.v, x.acceleration, x.torque
        self.time += done * h
        if bad >= 0:
            self._fail(self._coordinate(bad))
