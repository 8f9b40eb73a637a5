"""The calibration jig: it holds the feet of a robot in known poses against the pelvis, while the encoders are read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pinocchio as pin
from scipy.stats import qmc

from humanoid_control.errors import RobotError
from humanoid_control.robots import Robot
from humanoid_control.simulation.sensors.encoders import AbsoluteEncoders

LOW, HIGH = 0.12, 0.88  # of each joint's range that poses use
TRIES = 400


@dataclass(frozen=True)
class JigAccuracy:
    """Standard deviations of how the jig holds a foot, on each axis [m], [rad]; small, but above zero."""

    position: float = 1e-4
    orientation: float = 2e-4


@dataclass(frozen=True)
class Leg:
    """The chain from the link that the jig holds to a foot.

    Attributes:
        robot: with its base fixed at that link.
        name: of the sole. joints: names from the pelvis down. index: (k,) which joints of the robot these are.
        frame: of the foot's link. offset: from it to the middle of the sole.
    """

    robot: Robot
    name: str
    joints: tuple[str, ...]
    index: np.ndarray
    frame: int
    offset: pin.SE3

    def pose(self, joints: np.ndarray) -> pin.SE3:
        """Pose of the middle of the sole in the world, in which the held link rests."""
        pin.framesForwardKinematics(self.robot.model, self.robot.data, self.robot.q(joints))
        return self.robot.data.oMf[self.frame] * self.offset

    def jacobian(self, joints: np.ndarray) -> np.ndarray:
        """Its twist (6, k), linear first, in its own axes, for rates of the leg's joints."""
        r = self.robot
        J = pin.computeFrameJacobian(r.model, r.data, r.q(joints), self.frame, pin.ReferenceFrame.LOCAL)
        return self.offset.toActionMatrixInverse() @ J[:, r.iv + self.index]

    @cached_property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Ranges of the leg's joints (k,) [rad]."""
        return self.robot.lower[self.index], self.robot.upper[self.index]


def legs_of(robot: Robot) -> list[Leg]:
    """The legs of a robot with its base fixed; soles that lie beyond another sole, as toes do, are left out.

    Raises:
        RobotError: the robot has no soles that joints move against its anchor.
    """
    chains = {}
    for foot in robot.feet:
        frame = robot.model.getFrameId(foot.link)
        moved = robot.support[robot.model.frames[frame].parentJoint][robot.iv :]
        chains[foot.name] = (foot, frame, frozenset(np.flatnonzero(moved).tolist()))
    out = []
    for name, (foot, frame, columns) in chains.items():
        if not columns or any(other < columns for _, _, other in chains.values() if other):
            continue
        middle = np.array([(foot.x_min + foot.x_max) / 2, (foot.y_min + foot.y_max) / 2, foot.z])
        index = np.array(sorted(columns))
        joints = tuple(robot.joint_names[k] for k in index)
        out.append(Leg(robot, name, joints, index, frame, pin.SE3(np.eye(3), middle)))
    if not out:
        raise RobotError(f"{robot.name} has no legs to calibrate: its robot file names no soles that joints move")
    return out


def jig_poses(leg: Leg, count: int) -> np.ndarray:
    """Joint vectors (count, n) that spread over the leg's ranges and keep the robot apart from itself.

    The first is the neutral posture; the others follow a low-discrepancy sequence, so the same count gives the same
    poses. The other joints stay neutral.
    """
    robot, neutral = leg.robot, leg.robot.postures["neutral"]
    lower, upper = leg.limits
    out, distance = [neutral.copy()], robot.self_distance()
    shares = qmc.Halton(len(leg.joints), scramble=False).random(TRIES)[1:]
    for share in LOW + (HIGH - LOW) * shares:
        if len(out) >= count:
            break
        posture = neutral.copy()
        posture[leg.index] = lower + share * (upper - lower)
        pin.forwardKinematics(robot.model, robot.data, robot.q(posture))
        apart = distance.all_distances(robot.data)
        if not len(apart) or apart.min() > 0:
            out.append(posture)
    if len(out) < count:
        raise RobotError(f"{robot.name}: only {len(out)} poses of {leg.name} keep it apart from itself; ask for fewer")
    return np.array(out)


@dataclass(frozen=True)
class Fixture:
    """One pose in the jig: what the jig says, and what the encoders say.

    Attributes:
        pose: of the sole against the held link. nominal: (n,) joint angles that the jig is built for.
        reading: (n,) of the absolute encoders; NaN where there is none.
    """

    pose: pin.SE3
    nominal: np.ndarray
    reading: np.ndarray


def fixtures(
    leg: Leg, poses: np.ndarray, encoders: AbsoluteEncoders, accuracy: JigAccuracy, random: np.random.Generator
) -> list[Fixture]:
    """Measure a leg in the jig: each pose is mounted once, a little off, and the encoders read once."""
    out = []
    for nominal in poses:
        off = random.standard_normal(6) * np.repeat([accuracy.position, accuracy.orientation], 3)
        true = nominal.copy()
        true[leg.index] += np.linalg.lstsq(leg.jacobian(nominal), off, rcond=1e-6)[0]
        out.append(Fixture(leg.pose(nominal), nominal, encoders.read(true)))
    return out
