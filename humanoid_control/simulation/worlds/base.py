"""Base class of all worlds: commands, pushes, soles, sensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.collision.ssv.model import PoseArray
from humanoid_control.compiled.array_types import F3, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import ConfigError, NotANumberError, SizeError, UnknownNameError
from humanoid_control.kinematics.joint_state import ImuReading, JointState, Measurement
from humanoid_control.robots import Robot
from humanoid_control.simulation.drives.position_control import DriveCommands, DriveGains
from humanoid_control.simulation.sensors.imu import ImuMotion, base_state, read_imu
from humanoid_control.simulation.worlds.step import FASTEST

if TYPE_CHECKING:
    from humanoid_control.simulation.drives.tendon_plant import TendonPlant, TendonStates
    from humanoid_control.simulation.settings import WorldSettings


class EngineBase:
    """Parts of `engine.Engine` that need only robot, state and commands.

    A subclass sets the state, `diverged` and `failure` in `step` and accepts new states in `_place`.
    """

    q: np.ndarray
    v: np.ndarray
    time: float
    acceleration: np.ndarray
    torque: np.ndarray
    diverged: bool
    failure: str
    settings: WorldSettings

    def __init__(self, robot: Robot, gains: DriveGains, gravity: float, coast: float) -> None:
        self.robot, self.gains = robot, gains
        self.model = robot.model.copy()
        self.model.gravity.linear = np.array([0.0, 0.0, -gravity])
        self.data = self.model.createData()
        self.drives = DriveCommands(robot, gains, coast)
        self.pushes = Pushes(robot)
        self.soles = WorldSoles(robot)
        root = self.model.frames[self.model.getFrameId(robot.root_link, pin.FrameType.BODY)]
        self.motion, self._lever = ImuMotion(), root.placement.translation.copy()
        self.X_base_root = root.placement.copy() if robot.base == "floating" else None
        self.uncommanded = np.zeros(0, dtype=int)
        self._tendons: TendonPlant | None = None

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.robot.joint_names

    @property
    def joints(self) -> np.ndarray:
        return self.q[self.robot.iq :]

    @property
    def joint_velocity(self) -> np.ndarray:
        return self.v[self.robot.iv :]

    # -- commands -----------------------------------------------------------------------------------------------

    def reset(self, joints: np.ndarray | str = "neutral") -> None:
        """See `engine.Engine.reset`."""
        posture = joints if isinstance(joints, str) else self._checked("joints of a posture", joints)
        self.time = 0.0
        self.pushes.clear()
        self._restart(self.robot.q("neutral" if posture is None else posture), np.zeros(self.robot.nv))

    def command(
        self,
        positions: np.ndarray | None = None,
        velocities: np.ndarray | None = None,
        efforts: np.ndarray | None = None,
    ) -> None:
        """See `kinematics.joint_state.RobotInterface.command`."""
        given = {"positions": positions, "velocities": velocities, "efforts": efforts}
        positions, velocities, efforts = (self._checked(f"{name} of a command", x) for name, x in given.items())
        # Tendons move these joints: NaN leaves their drives without commands.
        if len(self.uncommanded):
            positions, velocities, efforts = (
                x if x is None else np.where(np.isin(np.arange(self.robot.n), self.uncommanded), np.nan, x)
                for x in (positions, velocities, efforts)
            )
        self.drives.set(self.time, self.joints, positions, velocities, efforts)

    def set_tension(self, tension: float) -> None:
        """See `engine.Engine.set_tension`."""
        replace(self.settings, tension=tension).check()

    def push(self, link: str, wrench: np.ndarray, duration: float, point: np.ndarray | None = None) -> None:
        """See `engine.Engine.push`."""
        self.pushes.add(self.time, link, wrench, duration, point)

    def set_state(
        self,
        joints: np.ndarray | None = None,
        velocities: np.ndarray | None = None,
        X_world_root: pin.SE3 | None = None,
        twist: np.ndarray | None = None,
    ) -> None:
        """See `engine.Engine.set_state`."""
        r = self.robot
        joints, velocities = (
            self._checked("joints of a state", joints),
            self._checked("velocities of a state", velocities),
        )
        twist = self._checked("twist of a state", twist, 6)
        if r.base == "fixed" and (X_world_root is not None or twist is not None):
            raise ConfigError(f"the base of {r.name} is fixed and cannot be moved (use base: floating)")
        v = np.zeros(r.nv)
        q = r.q(self.joints if joints is None else np.clip(joints, r.lower, r.upper))
        if r.base == "floating":
            q[: r.iq] = self.q[: r.iq] if X_world_root is None else pin.SE3ToXYZQUAT(X_world_root)
            v[: r.iv] = 0.0 if twist is None else twist
        v[r.iv :] = 0.0 if velocities is None else velocities
        # Checked before the present state is replaced.
        if not (np.isfinite(q).all() and (np.abs(v) < FASTEST).all()):
            bad = np.flatnonzero(~np.isfinite(q[r.iq :]) | ~(np.abs(v[r.iv :]) < FASTEST))
            what = f"joint {r.joint_names[bad[0]]}" if len(bad) else "the base"
            raise NotANumberError(f"state of {what} is non-numeric or impossibly fast: nothing was changed")
        self._restart(q, v)

    def _checked(self, what: str, values: np.ndarray | None, size: int = 0) -> np.ndarray | None:
        """Convert external numbers to an array (size,), by default (n,)."""
        if values is None:
            return None
        size = size or self.robot.n
        try:
            array = np.asarray(values, dtype=float)
        except (TypeError, ValueError):
            raise SizeError(f"{what}: expected {size} numbers, got {values!r:.60}") from None
        if array.shape != (size,):
            raise SizeError(f"{what}: expected shape ({size},), got {array.shape}")
        return array

    def _restart(self, q: np.ndarray, v: np.ndarray) -> None:
        self.q, self.v = q, v
        self.diverged, self.failure = False, ""
        self.acceleration, self.torque = np.zeros(self.robot.nv), np.zeros(self.robot.n)
        self.drives.reset(q[self.robot.iq :], self.time)
        self.motion.reset()
        self._place()

    def _place(self) -> None:
        """Accept `q` and `v` set from outside."""

    def _moved(self) -> None:
        """Record a new state for the IMU."""
        if self.robot.base == "floating":
            self.motion.add(self.time, self.q, self.v, self._lever)

    def _fails(self, q: np.ndarray, v: np.ndarray) -> bool:
        """Return whether a new state is not finite; sets `failure`."""
        if np.isfinite(q).all() and (np.abs(v) < FASTEST).all():
            return False
        # `not <` also selects NaN.
        bad = np.flatnonzero(~(np.abs(v) < FASTEST))
        self._fail(self._coordinate(int(bad[0]) if len(bad) else self.robot.iv))
        return True

    def _fail(self, what: str) -> None:
        self.diverged, self.failure = True, f"diverged at {self.time:.3f} s ({what}); the last finite state is kept"

    def _coordinate(self, k: int) -> str:
        return f"joint {self.robot.joint_names[k - self.robot.iv]}" if k >= self.robot.iv else "the base"

    # -- state and sensors --------------------------------------------------------------------------------------

    def joint_state(self) -> JointState:
        """See `engine.Engine.joint_state`."""
        return JointState(self.robot.joint_names, self.joints, self.joint_velocity, self.torque, self.time)

    def foot_wrenches(self) -> dict[str, np.ndarray]:
        """See `engine.Engine.foot_wrenches`."""
        raise NotImplementedError

    def read(self) -> Measurement:
        """Return ideal measurements."""
        return Measurement(self.joint_state(), self.imu(), self.foot_wrenches())

    def tendon_states(self) -> TendonStates | None:
        """See `engine.Engine.tendon_states`."""
        if self.robot.tendons is None:
            return None
        if self._tendons is None:  # loaded on demand
            from humanoid_control.simulation.drives.tendon_plant import TendonPlant

            self._tendons = TendonPlant(self.robot, self.settings.moment_arm_error, self.settings.seed)
        return self._tendons.states(self.joints, self.torque)

    def base_state(self) -> tuple[np.ndarray, np.ndarray]:
        """See `engine.Engine.base_state`."""
        return base_state(self)

    def imu(self) -> ImuReading:
        """See `engine.Engine.imu`."""
        return read_imu(self)

    def link_pose(self, link: str) -> pin.SE3:
        """See `engine.Engine.link_pose`."""
        frame = self.pushes.frame(link)
        pin.forwardKinematics(self.model, self.data, self.q)
        return pin.updateFramePlacement(self.model, self.data, frame).copy()

    def stored_energy(self) -> float:
        """See `engine.Engine.stored_energy`."""
        pin.computeAllTerms(self.model, self.data, self.q, self.v)
        kinetic = float(pin.computeKineticEnergy(self.model, self.data))
        return kinetic + float(pin.computePotentialEnergy(self.model, self.data))


# -------- Pushes


@dataclass(frozen=True)
class Push:
    """Wrench (6,) [force N, torque N m] in world axes at a point (3,) of the link frame [m], until a time [s]."""

    link: str
    point: np.ndarray
    wrench: np.ndarray
    until: float


class Pushes:
    """Active pushes."""

    def __init__(self, robot: Robot) -> None:
        self._links = {f.name: k for k, f in enumerate(robot.model.frames) if f.type == pin.FrameType.BODY}
        self._robot_name = robot.name
        self._list: list[Push] = []

    def frame(self, link: str) -> int:
        """Return the frame id of a link."""
        if link not in self._links:
            raise UnknownNameError("link", link, self._links, hint=f"(robot {self._robot_name})")
        return self._links[link]

    def add(self, time: float, link: str, wrench: np.ndarray, duration: float, point: np.ndarray | None = None) -> None:
        """Begin a push; see `Engine.push`."""
        self.frame(link)  # raises if unknown
        wrench = np.array(wrench, dtype=float)
        if wrench.shape != (6,) or not np.isfinite(wrench).all():
            raise ConfigError(f"a push on {link} must be six numbers (force, torque), got {wrench.tolist()}")
        if not 0 < duration < np.inf:
            raise ConfigError(f"a push must last longer than 0 s, got {duration:g}")
        at = np.zeros(3) if point is None else np.array(point, dtype=float)
        if at.shape != (3,) or not np.isfinite(at).all():
            raise ConfigError(f"the point of a push on {link} must be three numbers [m], got {at.tolist()}")
        self._list.append(Push(link, at, wrench, time + duration))

    def clear(self) -> None:
        self._list.clear()

    def __bool__(self) -> bool:
        return bool(self._list)

    def active(self, time: float) -> Iterator[Push]:
        """Return active pushes, drop others."""
        # Tolerance: round-off in the time must not extend a push by one step.
        self._list = [p for p in self._list if time < p.until - 1e-9]
        return iter(self._list)


# -------- Soles


class WorldSoles:
    """Flat soles; a sole frame has its link's axes and the origin in its centre.

    Attributes:
        joints: carrying pinocchio joints.
        placement: sole frames in the joint frames.
        corners: (F, 4, 3) in the joint frames [m].
    """

    def __init__(self, robot: Robot) -> None:
        model = robot.model
        self.names = tuple(foot.name for foot in robot.feet)
        self.joints: list[int] = []
        self.placement: list[pin.SE3] = []
        corners = []
        for foot in robot.feet:
            frame = model.frames[model.getFrameId(foot.link, pin.FrameType.BODY)]
            local = foot.corners()
            self.joints.append(int(frame.parentJoint))
            self.placement.append(frame.placement * pin.SE3(np.eye(3), local.mean(axis=0)))
            corners.append([frame.placement.act(c) for c in local])
        self.corners = np.array(corners).reshape(-1, 4, 3)
        # Corners in the sole frame, for moments about its origin.
        levers = [[X.actInv(c) for c in foot] for X, foot in zip(self.placement, corners, strict=True)]
        self._arrays = Packed(
            SoleArrays(
                np.array(self.joints, dtype=np.int64),
                np.array([X.rotation for X in self.placement]).reshape(-1, 3, 3),
                np.array(levers).reshape(-1, 4, 3),
            )
        )
        self._poses: PoseArray | None = None

    def no_wrenches(self) -> dict[str, np.ndarray]:
        return {name: np.zeros(6) for name in self.names}

    def wrenches(self, data: pin.Data, forces: np.ndarray) -> dict[str, np.ndarray]:
        """Return the ground wrench on each foot (6,) in its sole frame, from corner forces (F, 4, 3) in the world [N].

        Args:
            data: after `pin.forwardKinematics`.
        """
        # PoseArray views the memory of `data`: another object needs another view.
        if self._poses is None or self._poses.data is not data:
            self._poses = PoseArray(data)
        rows = np.empty((len(self.names), 6))
        sum_corner_forces(self._arrays.table, self._poses.rows(), np.ascontiguousarray(forces), rows)
        return dict(zip(self.names, rows, strict=True))


class SoleArrays(NamedTuple):
    """Soles for kernels.

    Attributes:
        joint: (F,) carrying joints.
        R: (F, 3, 3) sole axes in the joint frame.
        levers: (F, 4, 3) corners in the sole frame [m].
    """

    joint: I1
    R: F3
    levers: F3


@kernel
def sum_corner_forces(table: Table[SoleArrays], poses: np.ndarray, forces: np.ndarray, out: np.ndarray) -> None:
    """Sum world forces (F, 4, 3) [N] on sole corners to wrenches `out` (F, 6) in sole frames; poses: see PoseArray."""
    s = unpack(table, SoleArrays)
    out[:, :] = 0.0
    for k in range(s.joint.shape[0]):
        pose = poses[s.joint[k]]
        for c in range(4):
            x, y, z = turn_into(pose, s.R[k], forces[k, c])
            a, b, d = s.levers[k, c, 0], s.levers[k, c, 1], s.levers[k, c, 2]
            out[k, 0] += x
            out[k, 1] += y
            out[k, 2] += z
            # Moment lever x force about the sole centre.
            out[k, 3] += b * z - d * y
            out[k, 4] += d * x - a * z
            out[k, 5] += a * y - b * x


@kernel
def turn_into(pose: np.ndarray, R: np.ndarray, f: np.ndarray) -> tuple[float, float, float]:
    """Return R^T R_joint^T f: a world vector in axes R of a joint with the given pose row."""
    # The first nine entries of a pose are R_joint^T, row by row.
    x = pose[0] * f[0] + pose[1] * f[1] + pose[2] * f[2]
    y = pose[3] * f[0] + pose[4] * f[1] + pose[5] * f[2]
    z = pose[6] * f[0] + pose[7] * f[1] + pose[8] * f[2]
    return (
        R[0, 0] * x + R[1, 0] * y + R[2, 0] * z,
        R[0, 1] * x + R[1, 1] * y + R[2, 1] * z,
        R[0, 2] * x + R[1, 2] * y + R[2, 2] * z,
    )
