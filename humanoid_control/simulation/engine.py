"""Engines: one simulated robot behind one interface, whatever computes it; made by name, or from a few numbers."""

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
ARMATURE_PER_EFFORT = 1.5e-4  # [kg m^2/(N m)] of quasi-direct drives, as learned policies have them
LEAST_ARMATURE = 3e-3  # [kg m^2]


class Engine(RobotInterface, Protocol):
    """One robot, its drives, the ground, gravity: `command` it, `step`, `read` it.

    Attributes:
        robot: that is simulated, with all its joints.
        settings: of the world.
        q (nq,), v (nv,): state, in pinocchio's convention (a base that floats: x y z, quaternion x y z w; linear and
            angular velocity in its own axes).
        time: simulated [s].
        acceleration: (nv,) of the last step.
        torque: (n,) of the motors in the last step [N m].
        diverged: the state stopped being finite; the last good one is kept until `reset` or `set_state`.
        failure: one line why; empty otherwise.
        uncommanded: which joints take no commands, because tendons at constant tensions move them.
        drives: references of the drives, as they were commanded.
        gains: of the drives.
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
        """Time zero: the robot at rest in a posture, standing where it floats, commanded to stay there.

        Raises:
            SizeError: not an angle for each joint; it is a ValueError. UnknownNameError: no such posture.
        """

    def set_tension(self, tension: float) -> None:
        """Set the tension of every tendon [N], reached in 0.5 s. 0: the tensions that hold the neutral posture.

        Only drives 'tendons' hold tensions; with others nothing changes.

        Raises:
            ConfigError: below 0, or not finite.
        """

    def step(self, steps: int = 1) -> None:
        """Advance by a number of integration steps; nothing happens while `diverged`."""

    def push(self, link: str, wrench: np.ndarray, duration: float, point: np.ndarray | None = None) -> None:
        """Push a link from now on.

        Args:
            link: its name.
            wrench: (6,) force [N] and torque [N m] in world axes.
            duration: [s].
            point: where the force acts, in the frame of the link [m]; default its origin.

        Raises:
            UnknownNameError: no such link. ConfigError: wrench or point not finite or of another size, or no duration.
        """

    def set_state(
        self,
        joints: np.ndarray | None = None,
        velocities: np.ndarray | None = None,
        X_world_root: pin.SE3 | None = None,
        twist: np.ndarray | None = None,
    ) -> None:
        """Set the state of the robot, commanded to stay there; omitted parts keep their position, at rest.

        Args:
            joints: (n,) [rad], clipped to the range.
            velocities: (n,) [rad/s].
            X_world_root: pose of the root link.
            twist: (6,) linear, angular velocity of it in its own axes.

        Raises:
            ConfigError: not finite, or a pose for a base that is fixed. SizeError: another shape; it is a ValueError.
        """

    def foot_wrenches(self) -> dict[str, np.ndarray]:
        """The wrench of the ground on each foot (6,): force [N], torque [N m], in its sole frame (`base.Soles`)."""

    def joint_state(self) -> JointState:
        """True state of the joints, with the torques of their motors; stamped with the simulated time."""

    def tendon_states(self) -> TendonStates | None:
        """Lengths of the tendons' paths [m] and their tensions [N]; None for a robot without a file of tendons.

        Raises:
            RobotError, UnknownNameError: the file has an error.
        """

    def base_state(self) -> tuple[np.ndarray, np.ndarray]:
        """Pose (7,) of the root link (x y z, quaternion x y z w) and its twist (6,) in its own axes."""

    def imu(self) -> ImuReading:
        """Reading of an inertial measurement unit in the root link."""

    def link_pose(self, link: str) -> pin.SE3:
        """Pose of a link in the world.

        Raises:
            UnknownNameError: no such link.
        """

    def stored_energy(self) -> float:
        """Kinetic plus potential energy of the links [J]."""


def make_engine(
    robot: Robot, name: str = "multibody", settings: WorldSettings | None = None, gains: DriveGains | None = None
) -> Engine:
    """An engine by its name; the modules it needs are imported only now.

    Args:
        robot: base fixed or floating.
        name: 'multibody', or 'mujoco' (the extra `mujoco` of pip).
        settings: of the world; default: `WorldSettings()`.
        gains: of the drives; default: `position_control.default_gains`, for drives with motors `driven_gains`, for
            tendons `multibody_world.tension_gains`.

    Raises:
        UnknownNameError: no such engine. EnvironmentProblem: MuJoCo is not installed.
        RobotError: the robot cannot be simulated (`check_model`). ConfigError: a setting out of range.
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
    """A robot moved by winches, in either engine."""
    if name == "mujoco":
        from humanoid_control.simulation.worlds.mujoco_winches import MujocoWinchWorld

        return MujocoWinchWorld(robot, settings, gains)
    from humanoid_control.simulation.worlds.winch_world import WinchWorld

    return WinchWorld(robot, settings, gains)


# -------- Configuration


@dataclass(frozen=True)
class SimulationConfig:
    """A simulated robot by the few numbers that parameters, studies and worker processes pass around.

    Attributes:
        robot: of the catalogue, or path of a URDF.
        base: 'fixed' or 'floating'.
        engine: see `make_engine`.
        drives: 'ideal', 'rigid', 'elastic', 'tendons' or 'winches'
        tension: of the tendons then [N]
        moment_arm_error, winch_error, path_friction: of the tendons, drawn with seed; see `WorldSettings`.
        step: of the integration [s].
        gravity: [m/s^2].
        touching: contact with the ground: 'all' links by their collision shapes, or the 'soles' only.
        friction: of the ground.
        ground: its shape, see `ground_recipe`; empty: a plane that rises forward by `slope` [rad].
        contact_stiffness: along the normal and across it of a corner of a sole [N/m].
        stiffness: of each drive as a multiple of its effort limit [1/rad].
        damping_ratio: of each drive.
        rotors: of ideal drives, 'geared' or 'quasi_direct'; see `quasi_direct_armature`.
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
        """A copy with other numbers.

        Raises:
            UnknownNameError: a name that is not one of `VARIABLES`.
        """
        for name in values:
            if name not in VARIABLES:
                raise UnknownNameError("variable", name, VARIABLES)
        return replace(self, **values)

    def build(self, robot: Robot | None = None) -> Engine:
        """The engine, at rest in the neutral posture; `robot` where it is loaded already.

        Raises:
            HumanoidError: as `load_robot` and `make_engine`; a number out of range.
        """
        for name in ("stiffness", "damping_ratio"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} must be 0 or more, got {getattr(self, name):g}")
        robot = robot or load_robot(self.robot, self.base)
        if self.ground and self.slope:
            raise ConfigError(f"slope is of the plane that is there without ground='{self.ground}': give one of them")
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
    """Rotor inertia (n,) seen at the joints of a robot with drives of low reduction, not published [kg m^2]."""
    armature: np.ndarray = np.maximum(ARMATURE_PER_EFFORT * robot.effort, LEAST_ARMATURE)
    return armature


VARIABLES = tuple(f.name for f in fields(SimulationConfig) if f.type == "float")


# -------- Plausible masses and inertias


def check_model(robot: Robot) -> None:
    """Make sure that every moving link has mass and that every inertia is one of a body.

    Raises:
        RobotError: naming the first link that moves without mass, whose mass or inertia is negative or not a number,
            or whose principal moments break the triangle inequality (no body has I1 + I2 < I3).
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
