"""The world with the robot's real drives: motors, gears, screws and their loops."""

from __future__ import annotations

import numpy as np

from humanoid_control.robots import Robot
from humanoid_control.simulation.drives.drive_train import ELASTIC, RIGID, build_drive_train
from humanoid_control.simulation.drives.gains import DriveGains, driven_gains
from humanoid_control.simulation.drives.shafts import shaft_table
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.steps.driven_step import Wiring, run_driven_steps
from humanoid_control.simulation.steps.step import State
from humanoid_control.simulation.worlds.compiled_world import CompiledWorld

SHORT = {RIGID: 5.0e-4, ELASTIC: 2.5e-4}  # [s] longest step of motors and gears


class DrivenWorld(CompiledWorld):
    """One robot with rotors, screws and gears; motors under current control follow the position loops.

    Attributes:
        train: bodies and shafts. current: (m,) of the motors [A], in the order of `train.shafts`.
        full_q, full_v: state of all coordinates, the elastic rotors' among them.
    """

    def __init__(self, robot: Robot, settings: WorldSettings, gains: DriveGains | None = None) -> None:
        """Build the world.

        Args:
            settings: its `drives` is 'rigid' or 'elastic'.
            gains: of the position loops; default: damped for the inertia with the rotors.

        Raises:
            RobotError: no file of drives, or one that cannot be.
        """
        self.train = build_drive_train(robot, settings.drives)
        t = self.train
        self._shafts = shaft_table(t)
        super().__init__(robot, settings, gains or driven_gains(robot), t.pinocchio, t.tree, t.model)
        self._parts = max(1, int(np.ceil(settings.step / SHORT[settings.drives] - 1e-9)))
        own = {s.joints[0]: k for k, s in enumerate(t.shafts) if s.elastic}
        m = len(t.shafts)
        self._wiring = Wiring(
            np.array([robot.index[j] for j in t.joints]),
            np.array([robot.index[j] for j in t.held], dtype=np.int64),
            robot.velocity,
            np.array([own.get(j, -1) for j in t.joints]),
            np.zeros(robot.n),
            np.zeros(robot.n),
            np.zeros(m),
            np.zeros(m),
            np.zeros(m),
        )
        self.full_q, self.full_v = t.model.neutral(), np.zeros(t.model.nv)
        self._full_a = np.zeros(t.model.nv)
        self.reset()

    @property
    def current(self) -> np.ndarray:
        """Currents (m,) [A]."""
        return self._wiring.current

    def _place(self) -> None:
        r, t, w = self.robot, self.train, self._wiring
        k = len(t.joints)
        self.full_q[: r.iq], self.full_v[: r.iv] = self.q[: r.iq], self.v[: r.iv]
        joints, rates = self.joints, self.joint_velocity
        self.full_q[r.iq : r.iq + k], self.full_v[r.iv : r.iv + k] = joints[w.joint], rates[w.joint]
        w.angles[:], w.rates[:], w.current[:] = joints, rates, 0.0
        for s in t.shafts:
            if s.elastic:  # relaxed gears
                c, j = t.model.coordinates.index(s.body), r.index[s.joints[0]]
                self.full_q[t.model.qpos[c]], self.full_v[c] = s.drive.ratio * joints[j], s.drive.ratio * rates[j]
        self._full_a[:] = 0.0
        self._settle(self.full_q)

    def step(self, steps: int = 1) -> None:
        """Advance by a number of integration steps, each made of short ones; nothing happens while `diverged`."""
        if self.diverged:
            return
        d, h, a = self.drives, self.settings.step / self._parts, self.arrays
        x = State(
            self.full_q.copy(), self.full_v.copy(), self._full_a.copy(), self.torque.copy(), self.layers, self.forces
        )
        done, bad = run_driven_steps(
            a.tables, a.work, x, self._drive_table(), self._contact, self._push_table(), self._shafts, self._wiring,
            self.time, d.since, d.coast, h, steps * self._parts,
        )  # fmt: skip
        self.full_q, self.full_v, self._full_a, self.torque = x.q, x.v, x.acceleration, x.torque
        self.time += done * h
        self._read()
        if bad >= 0:
            self._fail(self.train.model.coordinates[bad])

    def _read(self) -> None:
        """The robot's own q, v and acceleration from those of all coordinates."""
        r, w = self.robot, self._wiring
        q, v, a = np.empty(r.nq), np.empty(r.nv), np.zeros(r.nv)
        k = len(w.joint)
        q[: r.iq], v[: r.iv], a[: r.iv] = self.full_q[: r.iq], self.full_v[: r.iv], self._full_a[: r.iv]
        joints, rates = w.angles.copy(), w.rates.copy()
        joints[w.joint], rates[w.joint] = self.full_q[r.iq : r.iq + k], self.full_v[r.iv : r.iv + k]
        q[r.iq :], v[r.iv :] = joints, rates
        a[r.iv + w.joint] = self._full_a[r.iv : r.iv + k]
        self.q, self.v, self.acceleration = q, v, a
