"""Engines: one simulated robot behind one interface."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, RobotError, UnknownNameError
from humanoid_control.kinematics.joint_state import ImuReading, JointState, RobotInterface
from humanoid_control.robots import Robot, load_robot
from humanoid_control.robots.description.inertias import inertia_fault
from humanoid_control.simulation.contact.ground import Ground
from humanoid_control.simulation.contact.ground_recipe import ground_of
from humanoid_control.simulation.contact.points import ContactSettings
from humanoid_control.simulation.drives.position_control import DriveCommands, DriveGains, default_gains, driven_gains
from humanoid_control.simulation.settings import ALL, IDEAL, TENDONS, TOUCHING, WINCHES, WorldSettings

if TYPE_CHECKING:
    from humanoid_control.simulation.drives.tendon_plant import TendonStates


ENGINES = ("multibody", "mujoco")
ROTORS = ("geared", "quasi_direct")
ARMATURE_PER_EFFORT = 1.5e-4  # [kg m^2/(N m)] quasi-direct drives, as assumed by learned policies
LEAST_ARMATURE = 3e-3  # [kg m^2]


class Engine(RobotInterface, Protocol):
    """One simulated robot with its drives, ground and gravity.

    Attributes:
        q: (nq,) in pinocchio's convention; floating base: x y z, quaternion x y z w.
        v: (nv,); floating base: linear, angular, own axes.
        time: simulated [s].
        acceleration: (nv,) of the last step.
        torque: (n,) of the motors in the last step [N m].
        diverged: non-finite; the last finite state is kept until `reset` or `set_state`.
        failure: reason of the divergence.
        uncommanded: joints moved by tendons, which ignore commands.
    """

    robot: Robot
    settings: WorldSettings
    q: np.ndarray
    v: np.ndarray
    time: float
    acceleration: np.ndarray
    torque: np.ndarray
    diverged: bool
    failure: str
    uncommanded: np.ndarray
    drives: DriveCommands
    gains: DriveGains

    @property
    def joints(self) -> np.ndarray:
        """Joint angles (n,) [rad]."""

    @property
    def joint_velocity(self) -> np.ndarray:
        """Joint velocities (n,) [rad/s]."""

    def reset(self, joints: np.ndarray | str = "neutral") -> None:
        """Reset time and robot: at rest in a posture, standing if the base floats.

        Raises:
            SizeError: if `joints` has a wrong shape.
            UnknownNameError: if the posture is unknown.
        """

    def set_tension(self, tension: float) -> None:
        """Set all tensions of drives 'tendons' [N], reached in 0.5 s; 0: hold the neutral posture.

        Raises:
            ConfigError: if negative or not finite.
        """

    def step(self, steps: int = 1) -> None:
        """Advance by integration steps; does nothing while `diverged`."""

    def push(self, link: str, wrench: np.ndarray, duration: float, point: np.ndarray | None = None) -> None:
        """Apply a wrench (6,) to a link: force [N], torque [N m] in world axes.

        Args:
            duration: [s].
            point: point of application, link frame [m]; default: origin.

        Raises:
            UnknownNameError: if the link is unknown.
            ConfigError: if an argument is invalid.
        """

    def set_state(
        self,
        joints: np.ndarray | None = None,
        velocities: np.ndarray | None = None,
        X_world_root: pin.SE3 | None = None,
        twist: np.ndarray | None = None,
    ) -> None:
        """Set the state and hold it; omitted positions are kept, omitted velocities are zero.

        Args:
            joints: (n,) [rad], clipped.
            velocities: (n,) [rad/s].
            X_world_root: root link.
            twist: (6,) linear, angular, of the root link in its own axes.

        Raises:
            ConfigError: if not finite, or for a fixed base with pose or twist.
            SizeError: if a shape is wrong.
        """

    def foot_wrenches(self) -> dict[str, np.ndarray]:
        """Return the ground wrench on each foot (6,): force [N], torque [N m], in its sole frame."""

    def joint_state(self) -> JointState:
        """Return the true joint state with motor torques."""

    def tendon_states(self) -> TendonStates | None:
        """Return path lengths [m] and tensions [N]; None without a tendon file.

        Raises:
            RobotError: if the file is invalid.
        """

    def base_state(self) -> tuple[np.ndarray, np.ndarray]:
        """Return root link pose (7,) (x y z, quaternion x y z w) and twist (6,) in its own axes."""

    def imu(self) -> ImuReading:
        """Return the reading of an IMU in the root link."""

    def link_pose(self, link: str) -> pin.SE3:
        """Return the pose of a link in the world.

        Raises:
            UnknownNameError: if the link is unknown.
        """

    def stored_energy(self) -> float:
        """Return kinetic plus potential energy of the links [J]."""


def make_engine(
    robot: Robot, name: str = "multibody", settings: WorldSettings | None = None, gains: DriveGains | None = None
) -> Engine:
    """Create an engine by name.

    Args:
        name: 'multibody', or 'mujoco' (pip extra `mujoco`).
        settings: default: `WorldSettings()`.
        gains: default: `default_gains`, `driven_gains`, `tension_gains` or `winch_gains`, by drives.

    Raises:
        UnknownNameError: if the engine is unknown.
        EnvironmentProblem: if MuJoCo is missing.
        RobotError: if `check_model` fails.
        ConfigError: if a setting is out of range.
    """
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    check_model(robot)
    if settings is not None and settings.drives == WINCHES:
        return _winched(robot, name, settings, gains)
    if name == "mujoco":
        if settings is not None and settings.drives != IDEAL:
            raise ConfigError(f"drives '{settings.drives}' need engine 'multibody', not 'mujoco'")
        from humanoid_control.simulation.worlds.mujoco_world import MujocoWorld

        return MujocoWorld(robot, settings, gains)
    if settings is not None and settings.drives == TENDONS:
        from humanoid_control.simulation.worlds.multibody_world import TensionWorld

        return TensionWorld(robot, settings, gains)
    if settings is not None and settings.drives != IDEAL:
        from humanoid_control.simulation.worlds.multibody_world import DrivenWorld

        return DrivenWorld(robot, settings, gains)
    from humanoid_control.simulation.worlds.multibody_world import MultibodyWorld

    return MultibodyWorld(robot, settings, gains)


def _winched(robot: Robot, name: str, settings: WorldSettings, gains: DriveGains | None) -> Engine:
    if name == "mujoco":
        from humanoid_control.simulation.worlds.mujoco_winches import MujocoWinchWorld

        return MujocoWinchWorld(robot, settings, gains)
    from humanoid_control.simulation.worlds.winch_world import WinchWorld

    return WinchWorld(robot, settings, gains)


# -------- Configuration


@dataclass(frozen=True)
class SimulationConfig:
    """Flat description of a simulated robot for parameters, studies and worker processes.

    Other fields: see `WorldSettings`, `make_engine`, `default_gains`.

    Attributes:
        robot: catalogue name, or path of a URDF.
        base: 'fixed' or 'floating'.
        touching: 'all' links with shapes touch the ground, or 'soles' only.
        ground: recipe (`ground_recipe`); empty: a plane with `slope` forward.
        slope: [rad].
        contact_stiffness: normal [N/m]; shear stiffness scales with it.
        stiffness: position gain per effort limit [1/rad].
        rotors: 'geared' or 'quasi_direct' (`quasi_direct_armature`), ideal drives only.
    """

    robot: str = "lola"
    base: str = "floating"
    engine: str = "multibody"
    drives: str = IDEAL
    tension: float = 0.0
    moment_arm_error: float = 0.0
    winch_error: float = 0.0
    path_friction: float = 0.0
    seed: int = 0
    step: float = 0.001
    gravity: float = 9.81
    touching: str = ALL
    friction: float = 0.8
    ground: str = ""
    slope: float = 0.0
    contact_stiffness: float = 1.0e5
    stiffness: float = 60.0
    damping_ratio: float = 1.0
    rotors: str = "geared"

    def changed(self, values: Mapping[str, Any]) -> SimulationConfig:
        """Return a copy with other `VARIABLES`.

        Raises:
            UnknownNameError: if a name is unknown.
        """
        for name in values:
            if name not in VARIABLES:
                raise UnknownNameError("variable", name, VARIABLES)
        return replace(self, **values)

    def build(self, robot: Robot | None = None) -> Engine:
        """Create the engine at rest in the neutral posture, from a loaded `robot` if given.

        Raises:
            HumanoidError: as `load_robot` and `make_engine`, or if a number is out of range.
        """
        for name in ("stiffness", "damping_ratio"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} must be 0 or more, got {getattr(self, name):g}")
        robot = robot or load_robot(self.robot, self.base)
        if self.ground and self.slope:
            raise ConfigError(f"slope conflicts with ground='{self.ground}': give one of them")
        ground = ground_of(self.ground) if self.ground else Ground.plane(slope=self.slope)
        if self.touching not in TOUCHING:
            raise UnknownNameError("choice of touching", self.touching, TOUCHING)
        same = {f.name: getattr(self, f.name) for f in fields(WorldSettings) if hasattr(self, f.name)}
        touching: tuple[str, ...] | str = ALL if self.touching == ALL else ()
        settings = WorldSettings(**{**same, "ground": ground, "contact": self._contact(), "touching": touching})
        settings.check()
        return make_engine(robot, self.engine, settings, self._gains(robot))

    def _contact(self) -> ContactSettings:
        k, usual = self.contact_stiffness, ContactSettings()
        if not 1e3 <= k <= 1e7:
            raise ConfigError(f"contact_stiffness must be 1e3 to 1e7 N/m, got {k:g}")
        return replace(
            usual,
            friction=self.friction,
            stiffness=k,
            shear_stiffness=usual.shear_stiffness * k / usual.stiffness,
        )

    def _gains(self, robot: Robot) -> DriveGains:
        make = default_gains if self.drives == IDEAL else driven_gains
        if self.drives == WINCHES:
            from humanoid_control.simulation.worlds.winch_world import winch_gains

            make = winch_gains
        if self.drives == TENDONS:
            from humanoid_control.simulation.worlds.multibody_world import tension_gains

            make = tension_gains
        gains: DriveGains = make(robot, self.stiffness, self.damping_ratio)
        if self.rotors == "geared":
            return gains
        if self.rotors not in ROTORS or self.drives != IDEAL:
            raise ConfigError(f"rotors are geared, or with drives '{IDEAL}' quasi_direct, not '{self.rotors}'")
        return replace(gains, rotor=quasi_direct_armature(robot))


def quasi_direct_armature(robot: Robot) -> np.ndarray:
    """Estimate rotor inertias (n,) at the joints for low reductions [kg m^2]."""
    armature: np.ndarray = np.maximum(ARMATURE_PER_EFFORT * robot.effort, LEAST_ARMATURE)
    return armature


VARIABLES = tuple(f.name for f in fields(SimulationConfig) if f.type == "float")


# -------- Plausible masses and inertias


def check_model(robot: Robot) -> None:
    """Check masses of moving links and all inertias.

    Raises:
        RobotError: at the first missing, negative or non-finite mass, or principal moments I1 + I2 < I3.
    """
    for link in ET.fromstring(robot.urdf).findall("link"):
        inertial = link.find("inertial")
        if inertial is not None and (fault := inertia_fault(inertial)):
            raise RobotError(f"{robot.name}: link '{link.get('name', '')}' {fault}")
    model = robot.model
    for joint in range(1, model.njoints):
        if not model.inertias[joint].mass > 0:
            bodies = [f.name for f in model.frames if f.parentJoint == joint and f.type == pin.FrameType.BODY]
            raise RobotError(
                f"{robot.name}: link '{bodies[0] if bodies else model.names[joint]}' moves and has no mass: give it an "
                "<inertial>, or make its joint fixed"
            )
