"""Policy on a simulated robot: PD loops at 500 Hz behind a limiter."""

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
from humanoid_control.simulation.settings import ALL

LOOP = 0.002  # [s] period of the PD loops
HOLD_PER_EFFORT = 1.6  # [1/rad] stiffness of joints without policy, as a multiple of their torque limit
HOLD_DAMPING = 0.08  # [s] their damping as a share of the stiffness
FALLEN_HEIGHT, FALLEN_TILT = 0.55, 1.0  # share of the initial height; [rad]
WATCHED = 0.120  # [m] measured distances of shapes
SETTLED = 1.0  # [s] after which velocity errors count


def gate_for(policy: Policy, settings: GateSettings | None = None) -> TorqueGate:
    """Return the gate of a policy with its exempt pairs.

    Args:
        policy: on a robot with quasi-direct drives.
    """
    chosen = settings or GateSettings()
    exempt = (*chosen.exempt, *exempt_pairs(policy.model.may_touch))
    return TorqueGate(policy.robot, quasi_direct_armature(policy.robot), replace(chosen, exempt=exempt))


def policy_engine(robot: Robot, engine: str, armature: np.ndarray | None = None, step: float = 0.001) -> Engine:
    """Return a simulated robot with torque drives, all links of which touch the ground: policies fall.

    Args:
        engine: 'multibody' or 'mujoco'.
        armature: (n,) [kg m^2].
        step: integration step [s].
    """
    rotor = quasi_direct_armature(robot) if armature is None else armature
    gains: DriveGains = replace(default_gains(robot), rotor=rotor)
    return make_engine(robot, engine, WorldSettings(step=step, touching=ALL), gains)


@dataclass
class PlayReport:
    """Report of a run.

    Attributes:
        fell: time of the fall [s], or None.
        distance: distance of the base travelled on the floor [m].
        velocity_error: mean planar error after 1 s [m/s].
        joint_error: mean error of a tracked motion [rad]; NaN: none.
        torque_share: largest share of the limit (n,).
        clipped: share of joint steps at the torque limit.
        speed_share: largest share of the limit (n,).
        range_excess: largest (n,) [rad].
        target_excess: largest [rad].
        self_distance: smallest between shapes [m].
        gate: active share by rule.
        observed: range of each observed number (2, k).
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
    """Policy, limiter and simulated robot, stepped by policy periods.

    Attributes:
        command: to the policy; may change at any time.
        torques: torques of the last PD step (n,) [N m].
    """

    def __init__(
        self, policy: Policy, engine: Engine, limiter: Limiter | None = None, supervised: bool = False
    ) -> None:
        """Place the robot in the first posture.

        Args:
            supervised: catch and lower the robot before a fall.

        Raises:
            ConfigError: if policy, PD and engine periods are not multiples.
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
        """Restart."""
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
        """Stand upright with the lowest sole on the floor."""
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
        """Return the engine's true state."""
        pose, twist = self.engine.base_state()
        e = self.engine
        return RobotState(e.joints.copy(), e.joint_velocity.copy(), pose[3:], twist[3:], pose[:3], twist[:3])

    def decide(self) -> PolicyTargets:
        """Return targets of all joints.

        Raises:
            PolicyError: if the policy stops unsupervised.
        """
        if self.supervisor is not None:
            return self.supervisor.step(self.state(), self.command)
        return self._held(self.policy.step(self.state(), self.command))

    def step(self) -> bool:
        """Advance by one period; False after a fall or stop."""
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
        """Add gains of joints without policy."""
        own = np.isfinite(targets.kp)
        if own.all():
            return targets
        kp, kd = np.where(own, targets.kp, self._hold[0]), np.where(own, targets.kd, self._hold[1])
        return targets._replace(kp=kp, kd=kd)

    def _note(self) -> None:
        r, policy = self.report, self.policy
        r.seconds = self.engine.time
        pose, twist = self.engine.base_state()
        up = 1.0 - 2.0 * (pose[3] ** 2 + pose[4] ** 2)  # z of the root's up axis
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
        """Record the smallest distance of shapes."""
        assert self._monitor is not None
        near = self._monitor.update(self.engine.q, WATCHED)
        if len(near):
            least = float(near.distance.min())
            self.report.self_distance = min(least, np.nan_to_num(self.report.self_distance, nan=WATCHED))

    def finish(self) -> PlayReport:
        """Return the report so far."""
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
    """Run until `seconds` or a fall, calling `each` after each period; return the report."""
    while player.engine.time < seconds - 1e-9:
        going = player.step()
        if each is not None:
            each(player)
        if not going:
            break
    return player.finish()
