"""Node `policy`: runs a third-party learned policy.

It steps with each complete sensor instant. On any fault it lets the robot down; it never holds the last posture.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from humanoid_control.errors import ConfigError, HumanoidError, PolicyError, missing_package
from humanoid_control.nodes.base.messages import LATCHED, PAUSED
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.statistics import SampleWindow
from humanoid_control.nodes.base.supervised_robot import ReportedPower
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.nodes.policies.inputs import PolicyInputs
from humanoid_control.nodes.policies.outputs import PolicyOutputs
from humanoid_control.nodes.policies.parameters import SECOND, PolicyParameters
from humanoid_control.policy import (
    Policy,
    PolicySupervisor,
    PolicyTargets,
    RobotState,
    SupervisionSettings,
    load_policy,
)
from humanoid_control.policy.player import HOLD_DAMPING, HOLD_PER_EFFORT
from humanoid_control.policy.supervision import CATCH, DAMP, SIT, STAND_IN, damping_gains, tilt_of
from humanoid_control.robots import Robot, load_robot

__all__ = ["PolicyNode", "PolicyParameters", "main"]

WAITING = "WAITING"
POWERED = ("", "HOLD", "BLEND", "RUN")  # driver states in which a policy may start; empty: no driver
CHECK_PERIOD = 0.25  # [s] period of the check of the start conditions
END_TIME = 0.9  # [s] to let the robot down before the process ends; the supervisor waits 1 s
BETWEEN = 1.25  # periods since the sensors were taken after which they are late: ticks take them at once
EARLY_WARNING = 0.05  # [rad] targets beyond joint ranges by more than this precede falls


class PolicyNode(TickNode):
    """Node that steps a supervised policy at sensor instants."""

    Parameters = PolicyParameters
    params: PolicyParameters
    node_name = "policy"
    sole = True

    def configure(self) -> float:
        p = self.params
        if not p.policy:
            raise ConfigError("policy.policy must be a policy file that `humanoid policy FILE` accepts")
        if p.catch == SECOND and not p.second:
            raise ConfigError("policy.catch is 'second': policy.second must be the file of another policy")
        self.robot = robot = load_robot(p.robot, "floating")
        self.policies = [_loaded(p.policy, p.network, robot)]
        if p.second:
            self.policies.append(_loaded(p.second, p.second_network, robot))
        first, periods = self.policies[0], {q.period for q in self.policies}
        if len(periods) > 1:
            raise ConfigError(f"policies of {' and '.join(f'{1 / x:g} Hz' for x in sorted(periods))} cannot be blended")
        catcher = self.policies[1] if p.catch == SECOND else None
        settings = SupervisionSettings(stand_in=p.stand_in, late=p.late)
        stiff = HOLD_PER_EFFORT * robot.effort
        self.supervisor = PolicySupervisor(first, (stiff, HOLD_DAMPING * stiff), catcher, settings)
        self._rehearse()
        n = max(1, int(p.window / first.period))
        self.took, self.latenesses = SampleWindow(n), SampleWindow(n)
        self.inputs_of = PolicyInputs(self, self.policies)
        self.outputs = PolicyOutputs(self, first)
        self.power = ReportedPower(self, lambda: None)
        self.paused = False
        self.create_subscription(Bool, PAUSED, self.on_paused, LATCHED)
        for name in ("start", "stop", "switch"):
            self.create_service(Trigger, f"~/{name}", getattr(self, f"on_{name}"))
        return 1.0 / first.period

    def _rehearse(self) -> None:
        """Run a few steps at rest to load everything."""
        n, up = self.robot.n, np.array([0.0, 0.0, 0.0, 1.0])
        for policy in self.policies:
            state = RobotState(policy.rest.copy(), np.zeros(n), up, np.zeros(3), np.zeros(3), np.zeros(3))
            for _ in range(5):
                try:
                    policy.step(state)
                except PolicyError:  # its own checks reject policies that never work
                    break
            policy.reset()

    def parameters_changed(self, changed: set[str]) -> None:
        if "late" in changed:
            self.supervisor.set_late(self.params.late)

    def activate(self) -> None:
        self.inputs_of.restart()
        self.asked = self.params.start
        self.restart()

    def restart(self) -> None:
        """Command nothing until the policy is requested."""
        self.running, self.checked, self.end_at, self.steps, self.lost = False, 0.0, float("inf"), 0, 0
        self.ticked, self.taken, self.stalled = time.monotonic(), -np.inf, 0.0
        self.seen: RobotState | None = None  # state of the last step
        self.supervisor.reset()
        self.outputs.restart()
        self.inputs_of.start_policy()
        self.outputs.say(WAITING)

    # -- requests -----------------------------------------------------------------------------------------------------

    def on_paused(self, m: Bool) -> None:
        self.paused = bool(m.data)

    def on_start(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Move the robot to the first posture, then run the policy."""
        going = self.running and self.supervisor.state not in (SIT, DAMP)
        response.success = self.active and not going
        why = "the policy is running" if going else "the node is not active"
        response.message = "moving to the first posture once the sensors are received" if response.success else why
        if response.success:
            self.asked = True
            self.restart()
        return response

    def on_stop(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Let the robot down under control."""
        self.asked = False
        response.success, response.message = True, "nothing runs"
        if self.running:
            self.supervisor.stop("~/stop was called")
            response.message = "lowering the robot; ~/start restarts"
        return response

    def on_switch(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        try:
            if len(self.policies) < 2:
                raise ConfigError("only one policy is loaded: set the parameter second")
            if not self.running:
                raise ConfigError("no policy is running: call ~/start")
            other = next(q for q in self.policies if q is not self.supervisor.policy)
            self.supervisor.switch(other)
            response.success, response.message = True, f"to {other.model.name}"
        except HumanoidError as e:
            response.success, response.message = False, str(e)
        return response

    # -- the tick -----------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        i, s = self.inputs_of, self.inputs_of.sensors
        # After a suspension, waiting messages arrive with correct stamps, so the delay is measured by the clock.
        self.stalled = max(self.stalled, (now - self.ticked) * i.pace - 1.0 / self.rate)
        self.ticked = now
        if self.running and not self.paused and self._between_steps(now):
            return
        self.taken = now
        s.take()
        s.advance(now, 1.5 / self.rate, i.pace)
        if self.paused:
            s.advance(now, 0.0)
            self.stalled = 0.0
            return
        instant = i.instant(now)
        if i.leaps(instant):
            self.health.report("jump", Level.WARN, "the sensor clock jumped: waiting again")
            self.restart()
        if not self.running:
            self._prepare(now, instant)
            return
        if not self.outputs.owner.may_command(now):
            self.health.report("lost", Level.ERROR, "another node commands the robot: waiting")
            self.asked = False
            self.restart()
            return
        if i.step(instant, now, 1.0 / self.rate):
            self._control(now)
        elif silent := s.quiet(self.params.sensor_lost):
            self._without_sensors(now, silent)

    def _between_steps(self, now: float) -> bool:
        """Test whether a tick needs nothing, because the sensors will wake the node for the next step.

        Their messages then wait for that step: one check of all costs half as much as two of a few.
        """
        i, latest = self.inputs_of, min(BETWEEN / self.rate, 0.5 * self.params.sensor_lost)
        return now - self.taken < latest and i.sensors.waiting_instant is not None and not i.waits()

    def _prepare(self, now: float, instant: int | None) -> None:
        """Start once all inputs are available."""
        i = self.inputs_of
        missing = i.sensors.missing or i.sensors.quiet(self.params.sensor_lost)
        ready = self.asked and instant is not None and not missing and self.power.state in POWERED
        may = self.outputs.owner.may_command(now, ready)
        if now - self.checked > CHECK_PERIOD:
            self.checked = now
            waits = self.silent("joint_states", now, 0.0) or "joint_states" in self.inputs
            text = f"{', '.join(missing[:3])} not received: the policy waits"
            self.health.check("start", bool(missing) and waits, Level.WARN, text)
            text = f"the driver is in {self.power.state}: the policy waits for power"
            self.health.check("power", self.asked and self.power.state not in POWERED, Level.WARN, text)
            state = i.state(now) if not i.sensors.missing else None
            blind = i.needs_odometry and (state is None or state.linear_velocity is None)
            self.health.check("odom", blind, Level.WARN, "the policy observes the base's velocity: odom is needed")
        if not (ready and may):
            return
        self.supervisor.start()
        self.running = True
        i.start_policy()

    def _control(self, now: float) -> None:
        i, sup, begin = self.inputs_of, self.supervisor, time.perf_counter()
        if not self.power.one_of(POWERED):
            sup.stop(f"the driver went to {self.power.state}")
            self.asked = False
        late, state = max(i.late, self.stalled), i.state(now)
        self.stalled = 0.0
        self.lost += late > 0.5 / self.rate
        i.follow(now, self.policies)
        policy = sup.policy
        targets = sup.step(state, i.command(now, policy), late)
        took = time.perf_counter() - begin
        if took * i.pace > self.params.late / self.rate:  # in robot time, because a simulation may run slower
            targets = sup.step(state, i.command(now, policy), took * i.pace)
        self._send(targets, now)
        self.took.add(took)
        self.latenesses.add(late)
        self.steps += 1
        self._report(state)
        self.outputs.show(sup.policy, now, self.params.terms_rate)

    def _send(self, targets: PolicyTargets, now: float) -> None:
        """Publish targets, or damping if they are not finite."""
        sitting = self.supervisor.state in (SIT, DAMP)
        others = np.full(self.robot.n, np.nan) if sitting else self.inputs_of.others(now)
        others[self.supervisor.policy.acted] = np.nan
        if self.params.standing and self.supervisor.state == STAND_IN:
            others = targets.q  # policy gains are too soft to stand with; the drives hold with their own gains
        if self.outputs.send(targets, others):
            return
        self.supervisor.stop("a target is not a number")
        self.health.report("number", Level.ERROR, "a target is not a number: the robot is lowered")
        zero = np.zeros(self.robot.n)
        self.outputs.send(
            PolicyTargets(zero, zero, zero, zero, damping_gains(self.robot)), np.full(self.robot.n, np.nan)
        )

    def _without_sensors(self, now: float, silent: list[str]) -> None:
        """Let the robot down; called once per period."""
        self.asked = False
        self.supervisor.stop(f"no {' and '.join(silent)} for {self.params.sensor_lost:g} s")
        self._send(self.supervisor.step(self.inputs_of.state(now)), now)
        self._report(None)

    def _report(self, state: RobotState | None) -> None:
        sup = self.supervisor
        self.outputs.say(sup.state.upper().replace(" ", "_"))
        why = f": {sup.reason}" if sup.reason else ""
        self.health.check("caught", sup.state == CATCH, Level.WARN, f"caught{why}")
        down = sup.state in (SIT, DAMP)
        self.health.check("down", down, Level.ERROR, f"lowered{why}; ~/start restarts")
        beyond = float(sup.policy.out_of_range.max(initial=0.0)) if not down else 0.0
        text = f"targets are {beyond:.2f} rad beyond the ranges of their joints: the robot may be about to fall"
        self.health.check("beyond", beyond > EARLY_WARNING, Level.WARN, text)
        self.seen = state
        for reference in self.inputs_of.references.values():
            text = "no reference received: the idle posture is followed"
            self.health.check("reference", not reference.active and not down, Level.WARN, text)

    # -- the end --------------------------------------------------------------------------------------------------

    def ending(self) -> bool:
        """Let the robot down before the process ends."""
        if not self.running:
            return False
        if self.end_at == float("inf"):
            self.end_at = time.monotonic() + END_TIME
            self.supervisor.stop("the node shuts down")
        return self.supervisor.state != DAMP and time.monotonic() < self.end_at

    def values(self) -> dict[str, Any]:
        sup, (p50, p99) = self.supervisor, self.took.percentiles()
        late = self.latenesses.values()
        names = [q.model.name for q in self.policies]
        return {
            "policy": sup.policy.model.name,
            "other_policy": next((n for n in names if n != sup.policy.model.name), ""),
            "follows_velocity": sup.policy.model.follows_velocity,
            "policy_state": sup.state if self.running else "waiting",
            "reason": sup.reason,
            "policy_steps": self.steps,
            "steps_lost": self.lost,
            "step_p50_ms": round(1e3 * p50, 3),
            "step_p99_ms": round(1e3 * p99, 3),
            "observation_late_max_ms": round(1e3 * float(late.max()), 2) if len(late) else float("nan"),
            "targets_beyond_rad": round(float(sup.policy.out_of_range.max(initial=0.0)), 4),
            "tilt_rad": round(tilt_of(self.seen)[0], 3) if self.seen is not None else float("nan"),
            "sensors_by_clock": round(self.inputs_of.pace, 3),
            "reference_frames": sum(r.count for r in self.inputs_of.references.values()),
        }


def _loaded(path: str, network: str, robot: Robot) -> Policy:
    """Return a policy ready to run."""
    try:
        return load_policy(path, robot, Path(network) if network else None)
    except ModuleNotFoundError as e:
        raise missing_package(e) or e from None


def main() -> int:
    return main_of(PolicyNode)


if __name__ == "__main__":
    sys.exit(main())
