"""World of a robot on winches in the compiled multibody engine.

`WinchedRobot` is common to all engines: commands, measurements, faults.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.packed import Packed
from humanoid_control.errors import UnknownNameError
from humanoid_control.multibody.model import Model, from_pinocchio
from humanoid_control.robots import Robot
from humanoid_control.simulation.drives.position_control import DriveGains, default_gains
from humanoid_control.simulation.drives.tendon_plant import TendonPlant, TendonStates
from humanoid_control.simulation.drives.winches import WinchErrors, WinchPlant
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.worlds.base import EngineBase
from humanoid_control.simulation.worlds.multibody_world import CompiledWorld
from humanoid_control.simulation.worlds.step import push_table
from humanoid_control.simulation.worlds.winch_step import WinchWiring, run_winch_steps
from humanoid_control.tendons.control.commands import OFF, WinchCommand, WinchStates
from humanoid_control.tendons.control.winch_loop import LONGEST
from humanoid_control.tendons.tendon import TendonSet

LIMP = 0.5  # [1/s] estimated passive damping per inertia of a joint without a drive: tissue and bearings


def winch_gains(robot: Robot, stiffness: float = 60.0, damping_ratio: float = 1.0) -> DriveGains:
    """Return `default_gains`, with light damping and stops only for joints that tendons cross.

    Damping: 2 * damping_ratio * inertia * 0.5 / s, neutral posture.

    Raises:
        RobotError: if the robot has no valid tendon file.
    """
    gains = default_gains(robot, stiffness, damping_ratio)
    free = TendonPlant(robot).joints
    inertia = np.diag(pin.crba(robot.model, robot.model.createData(), robot.q("neutral")))[robot.iv :]
    kp, kd, rotor, effort = gains.kp.copy(), gains.kd.copy(), gains.rotor.copy(), gains.effort.copy()
    kp[free], kd[free], rotor[free], effort[free] = 0.0, 2 * damping_ratio * LIMP * inertia[free], 0.0, np.inf
    return replace(gains, kp=kp, kd=kd, rotor=rotor, effort=effort)


class WinchedRobot(EngineBase):
    """Winches of a robot in any engine.

    Attributes:
        winches: the plant.
        commanded: time of the last command [s].
    """

    winches: WinchPlant
    commanded: float

    def _add_winches(self, tendons: TendonSet | None) -> None:
        s = self.settings
        errors = WinchErrors(s.moment_arm_error, s.winch_error, s.path_friction, s.seed)
        self.winches = WinchPlant(self.robot, errors, tendons)
        self.uncommanded = self.winches.joints
        self._packed_winches = Packed(self.winches.record)

    def put_winches(self, joints: np.ndarray) -> None:
        """Rest the winches at angles (n,) [rad], with the smallest tensions that best hold against gravity."""
        weight = pin.computeGeneralizedGravity(self.model, self.data, self.robot.q(joints))
        held = self.winches.plant.states(joints, weight[self.robot.iv :]).tensions
        self.winches.put(joints, held)
        self.commanded = self.time

    def set_tendon_commands(self, command: WinchCommand) -> None:
        """Command all winches until the next command; raises as `WinchLoop.command`."""
        self.commanded = self.time
        self.winches.loop.command(command)

    def hold_tendons(self) -> None:
        """Hold all wires, as drives do without commands."""
        self.winches.loop.hold()

    def winch_states(self) -> WinchStates:
        """Return copies of measured wires, winding speeds, tensions (M,)."""
        return self.winches.states()

    def tendon_states(self) -> TendonStates:
        """Return measured wires [m], rates and tensions; see `engine.Engine`."""
        states = self.winches.states()
        return TendonStates(self.winches.names, states.wire, states.tension, -states.speed)

    def set_tendon_fault(self, tendon: str, fault: str, size: float = 0.0) -> None:
        """Set a fault of a tendon.

        Args:
            fault: 'snapped', 'slipped', 'deaf', 'slack' or 'mended'.
            size: slipped or slack wire [m].

        Raises:
            UnknownNameError: if tendon or fault is unknown.
        """
        w = self.winches
        faults = {
            "snapped": lambda k: w.snap(k),
            "slipped": lambda k: w.slip(k, size),
            "deaf": lambda k: w.deafen(k),
            "slack": lambda k: w.release_wire(k, size),
            "mended": lambda k: w.clear_fault(k),
        }
        if tendon not in w.names:
            raise UnknownNameError("tendon", tendon, w.names)
        if fault not in faults:
            raise UnknownNameError("fault of a tendon", fault, faults)
        faults[fault](w.names.index(tendon))

    @property
    def drive_substeps(self) -> int:
        """Substeps per step for drive loops at 1 kHz or more; 1 if all are off."""
        if (self.winches.loop.record.kind == OFF).all():
            return 1
        return max(1, int(np.ceil(self.settings.step / LONGEST)))


class WinchWorld(WinchedRobot, CompiledWorld):
    """Robot in the multibody engine moved by winches, implicit in tendons, drives, stops and contact.

    Joints without tendons keep ideal drives.

    Attributes:
        wiring: tendons as coordinates of the model.
    """

    with_matrix = True

    def __init__(
        self,
        robot: Robot,
        settings: WorldSettings | None = None,
        gains: DriveGains | None = None,
        tendons: TendonSet | None = None,
    ) -> None:
        """Build the world.

        Args:
            tendons: true routing; default: the robot's file.

        Raises:
            RobotError: if the robot has no valid tendon file.
            ConfigError: if an error is out of range.
        """
        tree = from_pinocchio(robot.model)
        given, gains = settings or WorldSettings(), gains or winch_gains(robot)
        super().__init__(robot, given, gains, robot.model, tree, Model(tree.bodies))
        self._add_winches(tendons)
        p, nv = self.winches.plant, self.arrays.model.nv
        d = len(p.joints)
        joint = np.array(p.joints, dtype=np.int64)
        row = self.arrays.tables.rank[robot.iv + joint]
        self.wiring = WinchWiring(
            p.geometry.tables.record,
            self.winches.record,
            joint,
            np.ascontiguousarray(row, dtype=np.int64),
            np.zeros(d),
            np.zeros(d),
            np.zeros((nv, nv)),
            np.zeros(nv),
            np.zeros(nv),
            np.zeros(d),
        )
        self._wiring = Packed(self.wiring)
        self._no_pushes = Packed(push_table([]))
        self.reset()

    def _place(self) -> None:
        self._settle(self.q)
        self.put_winches(self.joints)

    def step(self, steps: int = 1) -> None:
        """See `engine.Engine.step`."""
        if self.diverged:
            return
        many = self.drive_substeps
        h, x, pushes = self.settings.step / many, self._state.record, self._push_table()
        x.q[:], x.v[:], x.acceleration[:], x.torque[:] = self.q, self.v, self.acceleration, self.torque
        schedule = self._schedule(h, steps * many)
        tables = self._world.table, self._state.table, self._drives.table, pushes.table, self._wiring.table
        done, bad = run_winch_steps(*tables, schedule)
        self.q, self.v, self.acceleration, self.torque = (a.copy() for a in x[:4])
        self.time += done * h
        self._moved()
        if bad >= 0:
            self._fail(self._coordinate(bad))
