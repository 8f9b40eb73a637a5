"""Execution of a learned policy: state in, joint targets with gains out."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.errors import PolicyError
from humanoid_control.policy.checks import Examination, examine
from humanoid_control.policy.formats.reader import read_policy
from humanoid_control.policy.model import ACTION, DAMPING, REFERENCE, STIFFNESS, TARGET, Term
from humanoid_control.policy.network import InferenceSession
from humanoid_control.policy.observation import GaitClock, ObservationBuilder
from humanoid_control.policy.reference import EmbeddedReference, MotionReference
from humanoid_control.policy.terms import Sensed
from humanoid_control.robots import Robot


class RobotState(NamedTuple):
    """Measured or estimated robot state, joints in robot order.

    Attributes:
        q: (n,) [rad].
        v: (n,) [rad/s].
        orientation: root link in the world, x y z w (4,).
        angular_velocity: root link, own axes (3,) [rad/s].
        position: root link in the world (3,) [m]; None: unknown.
        linear_velocity: root link, own axes (3,) [m/s]; None: unknown.
    """

    q: np.ndarray
    v: np.ndarray
    orientation: np.ndarray
    angular_velocity: np.ndarray
    position: np.ndarray | None = None
    linear_velocity: np.ndarray | None = None


class Command(NamedTuple):
    """Command to a policy.

    Attributes:
        velocity: forward, sideward [m/s], yaw rate [rad/s] (3,).
        heading: [rad].
        joints: external targets, robot order (n,) [rad]; None: rest posture.
    """

    velocity: np.ndarray | tuple[float, float, float] = (0.0, 0.0, 0.0)
    heading: float = 0.0
    joints: np.ndarray | None = None


class PolicyTargets(NamedTuple):
    """Targets (n,) in robot order: torque = kp (q - measured q) + kd (v - measured v) + tau.

    q [rad], v [rad/s], tau [N m], kp [N m/rad], kd [N m s/rad]; NaN gains: neither driven nor held by the policy.
    """

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    kp: np.ndarray
    kd: np.ndarray


class Policy:
    """Policy on one robot, for nodes, simulations and tests.

    Attributes:
        period: [s].
        rest: rest posture; neutral for unknown joints (n,) [rad].
        out_of_range: excess of the last targets over joint ranges (len(acted),) [rad].
    """

    def __init__(self, found: Examination, robot: Robot) -> None:
        """Load the network.

        Raises:
            PolicyError: if the policy has contradictions or no network, or does not fit the robot.
            ModuleNotFoundError: if onnxruntime is not installed.
        """
        if found.contradictions:
            more = len(found.contradictions) - 1
            raise PolicyError(found.contradictions[0] + (f" (and {more} more contradictions)" if more else ""))
        if found.network is None:
            raise PolicyError(f"{found.model.path}: contains no network to run")
        missing = [j for j in found.model.joints if j not in robot.index]
        if missing or robot.base != "floating":
            what = f"no joint '{missing[0]}'" if missing else "a base that is fixed"
            raise PolicyError(f"{found.model.path}: {robot.name} has {what}")
        model = self.model = found.model
        self.robot, self.period = robot, model.period
        self._session = InferenceSession(found.network.path)
        self.observed = np.array([robot.index[j] for j in model.joints])
        self.acted = np.array([robot.index[j] for j in model.acted])
        self.rest = robot.joints(robot.q("neutral")).copy()
        rest = np.where(np.isin(model.joints, model.acted), model.default, model.undriven)
        self.rest[self.observed] = np.clip(rest, robot.lower[self.observed], robot.upper[self.observed])
        self._lower, self._upper = robot.lower[self.acted], robot.upper[self.acted]
        self._dtypes = {t.name: t.dtype for t in found.network.inputs}
        self._builder = ObservationBuilder(model, self._dtypes)
        self._kinematics = LinkState(robot)
        self._gait = GaitClock(model.gait, model.period) if model.gait is not None else None
        self._sensed = Sensed(rest=model.default, target=model.undriven, height_command=model.height_command)
        ranges = [model.commands.get(axis, (-np.inf, np.inf)) for axis in ("x", "y", "yaw")]
        self._slowest, self._fastest = np.array(ranges).T
        n = robot.n
        self._targets = PolicyTargets(
            self.rest.copy(), np.zeros(n), np.zeros(n), np.full(n, np.nan), np.full(n, np.nan)
        )
        if model.held_gains is not None:
            self._targets.kp[self.observed], self._targets.kd[self.observed] = model.held_gains
        self._targets.kp[self.acted], self._targets.kd[self.acted] = found.kp, found.kd
        embedded = any(o.kind.startswith(f"{REFERENCE}.") for o in model.outputs)
        self.reference: EmbeddedReference | MotionReference | None = None
        if embedded:
            self.reference = EmbeddedReference(model)
        elif model.tracks:
            self.reference = MotionReference(model)
        self.reset()

    def reset(self) -> None:
        """Clear history and last action; restart the motion."""
        self.action = np.zeros(len(self.model.acted))
        self.out_of_range = np.zeros(len(self.acted))
        self._step = 0
        self._builder.reset()
        if self._gait is not None:
            self._gait.reset()
        self._feeds: dict[str, np.ndarray] = {}
        for one in self.model.inputs:
            if one.feedback or one.time_step:
                self._feeds[one.name] = np.zeros(one.shape, dtype=self._dtypes[one.name])
        if isinstance(self.reference, EmbeddedReference):
            first = {name: np.zeros(shape, dtype=dtype) for name, shape, dtype, _ in self._builder.inputs} | self._feeds
            self.reference.take(self._session.run(first))
        if self.reference is not None:
            self.reference.reset()

    @property
    def targets(self) -> PolicyTargets:
        """Targets of the last step; overwritten."""
        return self._targets

    @property
    def terms(self) -> np.ndarray:
        """Scaled terms of the last step; overwritten."""
        return self._builder.vector

    @property
    def observed_terms(self) -> list[Term]:
        """Terms in the order of `terms`."""
        return self._builder.terms

    @property
    def start_posture(self) -> np.ndarray:
        """First posture of the motion, or rest posture (n,) [rad]."""
        out = self.rest.copy()
        found = self.model.start if self.reference is None else self.reference.joint_pos
        if found is not None:
            out[self.observed] = np.clip(found, self.robot.lower[self.observed], self.robot.upper[self.observed])
        return out

    @property
    def leaning(self) -> np.ndarray:
        """World up axis in the root axes, if the robot leaned as the present frame of its motion (3,)."""
        if self.reference is None:
            return np.array([0.0, 0.0, 1.0])
        k = self._kinematics
        return self.reference.leaning(k.root_rotation.T @ k.anchor_rotation)

    def step(self, state: RobotState, command: Command | None = None) -> PolicyTargets:
        """Return targets for the next period; arrays are overwritten.

        Args:
            command: clipped to the policy's ranges.

        Raises:
            PolicyError: if the state or an output is not finite.
        """
        command = command or Command()
        if not (np.isfinite(state.q).all() and np.isfinite(state.v).all() and np.isfinite(state.orientation).all()):
            raise PolicyError(f"{self.model.path}: the state of the robot is not a number: the policy is stopped")
        self._sense(state, command)
        feeds = self._feeds | self._builder.build(self._sensed)
        outputs = self._session.run(feeds)
        for one in self.model.inputs:
            if one.feedback:
                self._feeds[one.name] = outputs[one.feedback].reshape(one.shape)
            elif one.time_step:
                self._feeds[one.name] = np.full(one.shape, self._step + 1, dtype=self._dtypes[one.name])
        if self.reference is not None:
            if isinstance(self.reference, EmbeddedReference):
                self.reference.take(outputs)
            self.reference.advance(self.period)
        if self._gait is not None:
            self._gait.advance(self._sensed.command)
        self._step += 1
        return self._take(outputs, command)

    def _sense(self, state: RobotState, command: Command) -> None:
        s = self._sensed
        s.q, s.v = state.q[self.observed], state.v[self.observed]
        s.command = np.clip(np.asarray(command.velocity, dtype=float), self._slowest, self._fastest)
        s.heading, s.action = command.heading, self.action
        s.target = self.model.undriven if command.joints is None else command.joints[self.observed]
        self._kinematics.place(state, self.model.imu, self.model.anchor)
        k = self._kinematics
        s.orientation, s.angular_velocity = k.imu_orientation, k.imu_angular_velocity
        s.gravity = -k.imu_rotation[2]  # world up axis in the link's axes: third row of R
        s.roll, s.pitch, s.yaw = k.roll_pitch_yaw
        s.linear_velocity = np.full(3, np.nan) if state.linear_velocity is None else state.linear_velocity
        s.height = np.nan if state.position is None else float(state.position[2])
        if self._gait is not None:
            s.phases = self._gait.phases
        if self.model.motion_length > 0:
            s.progress = min(self._step * self.period / self.model.motion_length, 1.0)
        if self.reference is not None:
            s.reference = self.reference.channels(k.anchor_rotation, k.anchor_position)

    def _take(self, outputs: dict[str, np.ndarray], command: Command) -> PolicyTargets:
        model, out = self.model, self._targets
        for output in model.outputs:
            if output.kind not in (ACTION, TARGET, STIFFNESS, DAMPING):
                continue
            values = outputs[output.name].ravel().astype(float)
            if not np.isfinite(values).all():
                raise PolicyError(f"{model.path}: the output '{output.name}' is not a number: the policy is stopped")
            if output.kind == ACTION:
                self.action = values
                action = values if model.action_clip is None else np.clip(values, *model.action_clip)
                q = model.offset + model.scale * action
            elif output.kind == TARGET:
                q = values
            elif output.kind == STIFFNESS:
                out.kp[self.acted] = values
            else:
                out.kd[self.acted] = values
        if model.target_clip is not None:
            q = np.clip(q, *model.target_clip)
        self.out_of_range = np.maximum(np.maximum(self._lower - q, q - self._upper), 0.0)
        out.q[:] = self.rest if command.joints is None else command.joints
        out.q[self.acted] = q
        return out


class LinkState:
    """Links observed by a policy, computed from the root link.

    Attributes:
        root_rotation: orientation of the root link, world frame (3, 3).
        imu_rotation: orientation of the IMU, world frame (3, 3).
        imu_orientation: x y z w (4,).
        imu_angular_velocity: own axes (3,) [rad/s].
        roll_pitch_yaw: root link [rad].
        anchor_position: position of the anchor, world frame (3,) [m]; NaN: unknown.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._model, self._data = robot.model, robot.model.createData()
        self._q, self._v = robot.q("neutral").copy(), np.zeros(robot.nv)
        root = self._model.frames[self._model.getFrameId(robot.root_link, pin.FrameType.BODY)]
        self._X_base_root = root.placement.copy()
        self.root_rotation = self.imu_rotation = self.anchor_rotation = np.eye(3)
        self.imu_orientation = np.array([0.0, 0.0, 0.0, 1.0])
        self.imu_angular_velocity, self.anchor_position = np.zeros(3), np.zeros(3)
        self.roll_pitch_yaw = (0.0, 0.0, 0.0)

    def place(self, state: RobotState, imu: str, anchor: str) -> None:
        """Update from a state; empty link names mean the root link."""
        r, root = self._robot, self._robot.root_link
        R = pin.Quaternion(state.orientation).toRotationMatrix()
        self.roll_pitch_yaw = tuple(pin.rpy.matrixToRpy(R).tolist())
        known = state.position is not None
        position = state.position if state.position is not None else np.zeros(3)
        self.root_rotation = self.imu_rotation = R
        self.imu_orientation = state.orientation
        self.imu_angular_velocity = state.angular_velocity
        self.anchor_rotation, self.anchor_position = R, position if known else np.full(3, np.nan)
        if imu in ("", root) and anchor in ("", root):
            return
        X = pin.SE3(R, position) * self._X_base_root.inverse()
        self._q[: r.iq] = pin.SE3ToXYZQUAT(X)
        self._q[r.iq :], self._v[r.iv :] = state.q, state.v
        self._v[3:6] = self._X_base_root.rotation @ state.angular_velocity
        pin.forwardKinematics(self._model, self._data, self._q, self._v)
        if imu not in ("", root):
            frame = self._model.getFrameId(imu, pin.FrameType.BODY)
            self.imu_rotation = pin.updateFramePlacement(self._model, self._data, frame).rotation.copy()
            self.imu_orientation = pin.Quaternion(self.imu_rotation).coeffs()
            local = pin.ReferenceFrame.LOCAL
            self.imu_angular_velocity = pin.getFrameVelocity(self._model, self._data, frame, local).angular.copy()
        if anchor not in ("", root):
            frame = self._model.getFrameId(anchor, pin.FrameType.BODY)
            placement = pin.updateFramePlacement(self._model, self._data, frame)
            self.anchor_rotation = placement.rotation.copy()
            self.anchor_position = placement.translation.copy() if known else np.full(3, np.nan)


def load_policy(path: str | Path, robot: Robot, network: Path | None = None) -> Policy:
    """Read, check, test and load a policy.

    Args:
        robot: floating base.
        network: replaces the description's.

    Raises:
        PolicyError: if the policy is unreadable, contradictory or does not fit the robot.
        ModuleNotFoundError: if the extra `policy` is not installed.
    """
    return Policy(examine(*read_policy(Path(path), network), robot), robot)
