"""One simulated robot, whatever computes it: the interface that nodes, sensors and studies use, and its makers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots import Robot
from humanoid_control.simulation.check import check_model
from humanoid_control.simulation.settings import IDEAL, TENDONS

if TYPE_CHECKING:
    from humanoid_control.simulation.drives.gains import DriveGains
    from humanoid_control.simulation.drives.tendon_plant import TendonStates
    from humanoid_control.simulation.sensors.root_link import ImuReading
    from humanoid_control.simulation.settings import WorldSettings

ENGINES = ("multibody", "mujoco")


class Engine(Protocol):
    """One robot, its drives, the ground, gravity.

    Attributes:
        robot, settings: what was asked for.
        q (nq,), v (nv,): state, in pinocchio's convention (a base that floats: x y z, quaternion x y z w; linear and
            angular velocity in its own axes).
        time: simulated [s].
        acceleration: (nv,) of the last step. torque: (n,) of the motors in the last step [N m].
        diverged: the state stopped being finite; the last good one is kept until `reset` or `set_state`.
        failure: one line why; empty while all is well.
        uncommanded: which joints take no commands, because tendons at constant tensions move them.
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

    @property
    def joints(self) -> np.ndarray:
        """Joint angles (n,) [rad]."""

    @property
    def joint_velocity(self) -> np.ndarray:
        """Joint velocities (n,) [rad/s]."""

    def reset(self, joints: np.ndarray | str = "neutral") -> None:
        """Time zero: the robot at rest in a posture, standing where it floats, commanded to stay there."""

    def command(
        self,
        positions: np.ndarray | None = None,
        velocities: np.ndarray | None = None,
        efforts: np.ndarray | None = None,
    ) -> None:
        """Tell the drives what to do from now on, each joint by what is given for it.

        A position makes a position drive, with velocity and effort as feed-forward; a velocity without a position a
        velocity drive; an effort alone a torque. Values beyond the limits are clipped. Joints for which nothing
        finite is given go on as they are.

        Args:
            positions: (n,) [rad]. velocities: (n,) [rad/s]. efforts: (n,) [N m].
        """

    def set_tension(self, tension: float) -> None:
        """Tension of every tendon from now on [N], 0: of each what holds the neutral posture.

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
            UnknownNameError: no such link. ConfigError: not finite, or no duration.
        """

    def set_state(
        self,
        joints: np.ndarray | None = None,
        velocities: np.ndarray | None = None,
        X_world_root: pin.SE3 | None = None,
        twist: np.ndarray | None = None,
    ) -> None:
        """Put the robot somewhere, commanded to stay there; what is not given: where it is, at rest.

        Args:
            joints: (n,) [rad], clipped to the range. velocities: (n,) [rad/s].
            X_world_root: pose of the root link. twist: (6,) linear, angular velocity of it in its own axes.

        Raises:
            ConfigError: not finite, or a pose for a base that is fixed.
        """

    def foot_wrenches(self) -> dict[str, np.ndarray]:
        """The wrench of the ground on each foot (6,): force [N], torque [N m], in its sole frame (`soles.Soles`)."""

    def tendon_states(self) -> TendonStates | None:
        """Lengths of the tendons' ways [m] and their tensions [N]; None for a robot without a file of tendons.

        Raises:
            RobotError, UnknownNameError: the file has an error.
        """

    def base_state(self) -> tuple[np.ndarray, np.ndarray]:
        """Pose (7,) of the root link (x y z, quaternion x y z w) and its twist (6,) in its own axes."""

    def imu(self) -> ImuReading:
        """What an inertial measurement unit in the root link reads."""

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
        name: 'multibody', or 'mujoco' (the extra `simulation` of pip).
        settings: of the world; default: see there.
        gains: of the drives; default: `gains.default_gains`.

    Raises:
        UnknownNameError: no such engine. EnvironmentProblem: MuJoCo is not installed.
        RobotError: the robot cannot be simulated (`check.check_model`). ConfigError: a setting out of range.
    """
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    check_model(robot)
    if name == "mujoco":
        if settings is not None and settings.drives != IDEAL:
            raise ConfigError(f"drives '{settings.drives}' need engine 'multibody', not 'mujoco'")
        from humanoid_control.simulation.worlds.mujoco_world import MujocoWorld

        return MujocoWorld(robot, settings, gains)
    if settings is not None and settings.drives == TENDONS:
        from humanoid_control.simulation.worlds.tension_world import TensionWorld

        return TensionWorld(robot, settings, gains)
    if settings is not None and settings.drives != IDEAL:
        from humanoid_control.simulation.worlds.driven_world import DrivenWorld

        return DrivenWorld(robot, settings, gains)
    from humanoid_control.simulation.worlds.world import World

    return World(robot, settings, gains)
