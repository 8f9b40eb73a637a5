"""A policy on a simulated robot: PD loops at 500 Hz behind a limiter, and what came of it in numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, PolicyError
from humanoid_control.policy.baselines import Limiter, Unlimited
from humanoid_control.policy.gate import GateSettings, TorqueGate, exempt_pairs
from humanoid_control.policy.runner import Command, Policy, PolicyTargets, RobotState
from humanoid_control.policy.supervision import PolicySupervisor, SupervisionEvent
from humanoid_control.robots import Robot
from humanoid_control.simulation import DriveGains, Engine, WorldSettings, make_engine
from humanoid_control.simulation import quasi_direct_armature as quasi_direct_armature
from humanoid_control.simulation.drives.position_control import default_gains

LOOP = 0.002  # [s] period of the PD loops
HOLD_PER_EFFORT = 1.6  # [1/rad] stiffness of joints that a policy does not drive, as a multiple of their torque limit
HOLD_DAMPING = 0.08  # [s] their damping as a share of the stiffness
FALLEN_HEIGHT, FALLEN_TILT = 0.55, 1.0  # share of the height at the start; [rad]
WATCHED = 0.120  # [m] distance of shapes that is looked at
SETTLED = 1.0  # [s] from which a commanded velocity counts as followed


def gate_for(policy: Policy, settings: GateSettings | None = None) -> TorqueGate:
    """The gate of a policy: shapes of links that its description lets touch are left alone.

    Args:
        policy: on its robot, whose drives are quasi-direct.
        settings: of the gate; default: as measured.
    """
    chosen = settings or GateSettings()
    exempt = (*chosen.exempt, *exempt_pairs(policy.model.may_touch))
    return TorqueGate(policy.robot, quasi_direct_armature(policy.robot), replace(chosen, exempt=exempt))


def policy_engine(robot: Robot, engine: str, armature: np.ndarray | None = None, step: float = 0.001) -> Engine:
    """A simulated robot with drives that give torques.

    Args:
        robot: with a base that floats.
        engine: 'multibody' or 'mujoco'.
        armature: (n,) [kg m^2].
        step: of the integration [s], of which the PD loop's period is a multiple.
    """
    rotor = quasi_direct_armature(robot) if armature is None else armature
    gains: DriveGains = replace(default_gains(robot), rotor=rotor)
    return make_engine(robot, engine, WorldSettings(step=step), gains)


@dataclass
class PlayReport:
    """What came of a run.

    Attributes:
        engine: that simulated it.
        seconds: that it ran.
        fell: when it fell [s]; None: it did not.
        distance: of the base on the floor [m].
        velocity_error: mean of the planar velocity's error after 1 s [m/s].
        joint_error: mean distance of the joints from a motion that is tracked [rad]; NaN for others.
        torque_share: (n,) largest torque as a share of its limit.
        clipped: share of joint steps at the torque limit.
        speed_share: (n,) largest speed as a share of its limit.
        range_excess: (n,) largest, beyond the range [rad].
        target_excess: largest by which a target left the range [rad].
        self_distance: least of the shapes [m].
        gate: activity by rule, as shares of the steps; empty without the gate.
        observed: (2, k) least and largest of each number of a frame of the observation.
        stopped: why the policy was stopped; empty otherwise.
        events: changes of state under supervision.
    """

    engine: str
    seconds: float = 0.0
    fell: float | None = None
    distance: float = 0.0
    velocity_error: float = float("nan")
    joint_error: float = float("nan")
    torque_share: np.ndarray = field(default_factory=lambda: np.zeros(0))
    clipped: float = 0.0
    speed_share: np.ndarray = field(default_factory=lambda: np.zeros(0))
    range_excess: np.ndarray = field(default_factory=lambda: np.zeros(0))
    target_excess: float = 0.0
    self_distance: float = float("nan")
    gate: dict[str, float] = field(default_factory=dict)
    observed: np.ndarray = field(default_factory=lambda: np.zeros((2, 0)))
    stopped: str = ""
    events: list[SupervisionEvent] = field(default_factory=list)


class PolicyPlayer:
    """A policy, a limiter and a simulated robot, stepped together by one period of the policy at a time.

    Attributes:
        policy, engine, limiter: of the run.
        supervisor: None without supervision.
        report: so far.
        command: that the policy gets, to be changed at any time.
        torques: (n,) of the last PD step [N m].
    """

    def __init__(
        self, policy: Policy, engine: Engine, limiter: Limiter | None = None, supervised: bool = False
    ) -> None:
        """Put the robot into the policy's first posture.

        Args:
            supervised: catch the robot before it falls, and lower it under control.

        Raises:
            ConfigError: the policy's period is not a multiple of the PD period, or the PD period of the engine's step.
        """
        robot = policy.robot
        self.policy, self.engine = policy, engine
        self.limiter: Limiter = limiter or Unlimited(robot)
        self._ticks, self._substeps = round(policy.period / LOOP), round(LOOP / engine.settings.step)
        if abs(self._ticks * LOOP - policy.period) > 1e-9 or abs(self._substeps * engine.settings.step - LOOP) > 1e-9:
            raise ConfigError(
                f"a policy of {1 / policy.period:g} Hz and steps of {engine.settings.step:g} s do not fit 500 Hz loops"
            )
        self.command = Command()
        self._monitor = robot.collision_monitor() if len(robot.pairs) else None
        kp = HOLD_PER_EFFORT * robot.effort
        self._hold = kp, HOLD_DAMPING * kp
        self.supervisor = PolicySupervisor(policy, self._hold) if supervised else None
        self.reset()

    def reset(self) -> None:
        """Begin again."""
        robot = self.policy.robot
        self.policy.reset()
        if self.supervisor is not None:
            self.supervisor.reset()
        self.limiter.reset()
        posture = self.policy.start_posture
        self.engine.reset(posture)
        self._stand(posture)
        self.report = PlayReport(type(self.engine).__name__)
        n = robot.n
        self.report.torque_share, self.report.speed_share = np.zeros(n), np.zeros(n)
        self.report.range_excess, self.torques = np.zeros(n), np.zeros(n)
        self._start, _ = self.engine.base_state()
        self._errors: list[float] = []
        self._joint_errors: list[float] = []
        self._clipped = 0
        self._low: np.ndarray | None = None

    def _stand(self, posture: np.ndarray) -> None:
        """Put the robot upright with its lowest sole on the floor."""
        robot = self.policy.robot
        X = robot.X_world_root.copy()
        corners = []
        pin.framesForwardKinematics(robot.model, robot.data, robot.q(posture, X))
        for foot in robot.feet:
            placement = robot.data.oMf[robot.model.getFrameId(foot.link, pin.FrameType.BODY)]
            corners += [placement.act(c)[2] for c in foot.corners()]
        if corners:
            X.translation = X.translation - np.array([0.0, 0.0, min(corners)])
        self.engine.set_state(joints=posture, X_world_root=X)

    def state(self) -> RobotState:
        """Present input of the policy: the engine's true state."""
        pose, twist = self.engine.base_state()
        e = self.engine
        return RobotState(e.joints.copy(), e.joint_velocity.copy(), pose[3:], twist[3:], pose[:3], twist[:3])

    def decide(self) -> PolicyTargets:
        """Targets of all joints for the next period.

        Raises:
            PolicyError: the policy stopped, and nothing supervises it.
        """
        if self.supervisor is not None:
            return self.supervisor.step(self.state(), self.command)
        return self._held(self.policy.step(self.state(), self.command))

    def step(self) -> bool:
        """Advance by one period of the policy; False once the robot fell, or the policy stopped, as the report says."""
        r, e = self.report, self.engine
        try:
            targets = self.decide()
        except PolicyError as stopped:
            r.stopped = str(stopped)
            return False
        robot = self.policy.robot
        for _ in range(self._ticks):
            q, v = e.joints, e.joint_velocity
            self.torques = self.limiter.torque(targets, q, v)
            e.command(efforts=self.torques)
            e.step(self._substeps)
            share = np.abs(self.torques) / robot.effort
            self._clipped += int((share >= 1.0 - 1e-9).sum())
            np.maximum(r.torque_share, share, out=r.torque_share)
            np.maximum(r.speed_share, np.abs(e.joint_velocity) / robot.velocity, out=r.speed_share)
            np.maximum(r.range_excess, np.maximum(robot.lower - e.joints, e.joints - robot.upper), out=r.range_excess)
        self._note()
        if self._monitor is not None:
            self._measure_shapes()
        return not e.diverged and r.fell is None

    def _held(self, targets: PolicyTargets) -> PolicyTargets:
        """Targets with gains for the joints that the policy does not drive."""
        own = np.isfinite(targets.kp)
        if own.all():
            return targets
        kp, kd = np.where(own, targets.kp, self._hold[0]), np.where(own, targets.kd, self._hold[1])
        return targets._replace(kp=kp, kd=kd)

    def _note(self) -> None:
        """Take the numbers of a period."""
        r, policy = self.report, self.policy
        r.seconds = self.engine.time
        pose, twist = self.engine.base_state()
        up = 1.0 - 2.0 * (pose[3] ** 2 + pose[4] ** 2)  # z of the root's own upward axis
        if pose[2] < FALLEN_HEIGHT * self._start[2] or up < np.cos(FALLEN_TILT):
            r.fell = r.fell if r.fell is not None else r.seconds
        r.distance = float(np.hypot(*(pose[:2] - self._start[:2])))
        r.target_excess = max(r.target_excess, float(policy.out_of_range.max(initial=0.0)))
        if r.seconds > SETTLED:
            self._errors.append(float(np.hypot(*(twist[:2] - np.asarray(self.command.velocity)[:2]))))
            if policy.reference is not None:
                goal = policy.reference.joint_pos
                self._joint_errors.append(float(np.abs(self.engine.joints[policy.observed] - goal).mean()))
        terms = policy.terms
        if self._low is None:
            self._low, self._high = terms.copy(), terms.copy()
        np.minimum(self._low, terms, out=self._low)
        np.maximum(self._high, terms, out=self._high)

    def _measure_shapes(self) -> None:
        """Least distance of the robot's shapes."""
        assert self._monitor is not None
        near = self._monitor.update(self.engine.q, WATCHED)
        if len(near):
            least = float(near.distance.min())
            self.report.self_distance = min(least, np.nan_to_num(self.report.self_distance, nan=WATCHED))

    def finish(self) -> PlayReport:
        """The report of the run so far."""
        r = self.report
        steps = max(round(r.seconds / LOOP), 1)
        if self.supervisor is not None:
            r.events = list(self.supervisor.events)
        r.clipped = self._clipped / (steps * self.policy.robot.n)
        r.velocity_error = float(np.mean(self._errors)) if self._errors else float("nan")
        r.joint_error = float(np.mean(self._joint_errors)) if self._joint_errors else float("nan")
        if self._low is not None:
            r.observed = np.array([self._low, self._high])
        if isinstance(self.limiter, TorqueGate):
            a = self.limiter.activity
            counts = {"any rule": a.active, "range": a.range, "speed": a.speed, "pairs": a.pairs}
            r.gate = {name: count / max(a.steps, 1) for name, count in counts.items()}
        return r


def play(player: PolicyPlayer, seconds: float, each: Callable[[PolicyPlayer], None] | None = None) -> PlayReport:
    """Run a player until a time [s], or until the robot fell, and give its report.

    Args:
        each: called after each period of the policy.
    """
    while player.engine.time < seconds - 1e-9:
        going = player.step()
        if each is not None:
            each(player)
        if not going:
            break
    return player.finish()
