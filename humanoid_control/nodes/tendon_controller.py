"""Node `tendon_controller`: winch commands from joint commands.

Tendons in hold mode get no message: their drives hold without commands.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from humanoid_control.errors import HumanoidError, first_few
from humanoid_control.hardware.commands.command_stream import CommandReader
from humanoid_control.hardware.transport import Mode
from humanoid_control.nodes.base.command_messages import read_command
from humanoid_control.nodes.base.command_owner import CommandOwner, listen_to_one
from humanoid_control.nodes.base.messages import STREAM_OUT, JointPositions, fill_joint_state, floats, stamp_of
from humanoid_control.nodes.base.parameters import NodeParameters, param
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.nodes.estimating.body_images import BodyImageLearner
from humanoid_control.robots import load_robot
from humanoid_control.robots.tendons import tendon_geometry, tendons_of
from humanoid_control.simulation.drives.winches import units_of
from humanoid_control.tendons.control.body_image import BodyImage
from humanoid_control.tendons.control.commands import WinchCommand, fields_of
from humanoid_control.tendons.control.laws import TendonController
from humanoid_control.tendons.control.references import JointReferences, WinchReadings
from humanoid_control.tendons.control.settings import (
    LAWS,
    NEEDS_ANGLES,
    RANGES,
    STOPS,
    WEIGHTS,
    TendonControllerSettings,
)
from humanoid_control.tendons.control.supervision import COMMAND_TIMEOUT, PERIODS, PowerOn, TendonSupervisor

STATES, COMMANDS = "tendon_states", "tendon_commands"
COVARIANCE = "state_estimator/covariance"
ESTIMATED, ESTIMATOR_PARAMETERS = "estimated_joint_states", "state_estimator/get_parameters"
SAFE_MODES = ("absolute", "r2")  # modes of the state estimator with an absolute start; the others drift in closed loop
DOUBTED = 5.0  # [deg] standard deviation of a joint estimate above which its angle is not fed back
AWAY = 10.0  # silence of the tendon states before the controller restarts, in multiples of `patience`
LONG = 5.0  # silence of the angles before they count as uncertain, in multiples of `patience`
TOLD = 3.0  # [s] duration of an event in the diagnostics
STABILITY_PERIOD = 5.0  # [s] period of the check of the joint stiffness
MODE_PERIOD = 2.0  # [s] period of the query for the mode of the state estimator
LEAST_SHARE = 0.3  # share of the tendons' own stiffness below which a joint's stiffness is reported
EXTRA_RATE = 50.0  # [Hz] rate of ~/missed and ~/references


def _range(name: str) -> tuple[float, float]:
    return RANGES[name]


@dataclass(frozen=True)
class TendonControllerParameters(NodeParameters):
    """Parameters of the tendon controller."""

    rate: float = param(500.0, "command rate", "Hz", 50.0, 1000.0)
    law: str = param("hybrid", "control law of the winches", choices=tuple(LAWS), live=True)
    angles: str = param(ESTIMATED, "topic of the joint angles; not used by the laws stiffness and length")
    force: bool = param(False, "accept angles from estimator modes other than absolute or r2, which may drift")
    tendon_rate: float = param(250.0, "expected rate of tendon_states", "Hz", 10.0, 2000.0)
    patience: float = param(
        0.05, "silence of tendon states or angles after which they are ignored, at least 3 periods", "s", 0.005, 10.0
    )
    kappa: float = param(8.0, "joint speed per angle error, law hybrid", "1/s", *_range("kappa"), live=True)
    k_i: float = param(1.0, "integral share of the angle error", "1/s", *_range("k_i"), live=True)
    stiffness: float = param(
        24000.0, "tension per excess length of a tendon, law stiffness", "N/m", *_range("stiffness"), live=True
    )
    load_cutoff: float = param(
        5.0,
        "bandwidth of the load estimated from the tensions; 0: payloads and pushes are ignored",
        "Hz",
        *_range("load_cutoff"),
        live=True,
    )
    load_most: float = param(
        10.0, "maximum difference between this load and the model", "N m", *_range("load_most"), live=True
    )
    least: float = param(
        0.0, "addition to the minimum tension of each tendon, a hard bound", "N", *_range("least"), live=True
    )
    co_contraction: float = param(
        0.0, "preferred tension above the minimum, as far as the joint torques permit", "N", 0.0, 200.0, live=True
    )
    governor: float = param(
        0.3,
        "torque deficit of a joint above which references are held; 0: never",
        "N m",
        *_range("governor"),
        live=True,
    )
    weights: str = param("heat", "weighting of the tension distribution", choices=WEIGHTS, live=True)
    stop: str = param("hold", "stop mode of the winches at emergency_stop", choices=STOPS)
    learn_from: str = param("", "topic of true joint angles, such as from motion capture, for ~/learn; empty: none")
    body_image: str = param("", "file of the learnt body image: loaded at startup if it exists, written by ~/save")
    tension_up: bool = param(False, "raise the tensions, one winch after another, before the first command")


class TendonControllerNode(TickNode):
    """Node with a `TendonController` and its `TendonSupervisor`."""

    Parameters = TendonControllerParameters
    params: TendonControllerParameters
    node_name = "tendon_controller"

    def configure(self) -> float:
        p = self.params
        robot = load_robot(p.robot, "fixed")
        self.robot, geometry, units = robot, tendon_geometry(robot), units_of(robot)
        self.control = TendonController(robot.model, geometry, units, self.settings(), held=robot.q("neutral"))
        groups = {g.name: g.tendons for g in tendons_of(robot).groups.values()}
        self.supervisor = TendonSupervisor(geometry.tendon_names, groups, self.control.least, self.control.most, units)
        self.joints = np.array([robot.joint_index(n) for n in geometry.joint_names])
        self.owned = {g.name: np.isin(geometry.joint_names, g.own) for g in tendons_of(robot).groups.values()}
        others = [n for n in robot.joint_names if n not in geometry.joint_names]
        self.reader = CommandReader(geometry.joint_names, others, [Mode.VELOCITY] * len(self.joints))
        lower, upper = geometry.limits.T
        self.references = JointReferences(lower, upper, robot.velocity[self.joints])
        self.readings = WinchReadings(geometry.tendon_names, np.array([u.speed for u in units]))
        self.estimate = JointPositions(robot)
        self.uncertain = np.zeros(len(self.joints), dtype=bool)
        self._warm_up()
        self.commands = CommandOwner(self, COMMANDS)
        self._messages: dict[tuple[int, ...], JointState] = {}
        self._extra = {
            what: (self.create_publisher(JointState, f"~/{what}", STREAM_OUT), JointState(name=geometry.joint_names))
            for what in ("missed", "references")
        }
        listen_to_one(self, JointState, "joint_commands", self.on_command, COMMAND_TIMEOUT)
        self.listen(JointState, STATES, self.on_states)
        self.listen(JointState, p.angles, self.on_angles)
        self.create_subscription(Float64MultiArray, COVARIANCE, self.on_covariance, 1)
        self._estimator: Any = self.create_client(GetParameters, ESTIMATOR_PARAMETERS)
        self._mode, self._mode_requested_at = "", -np.inf
        self.create_subscription(Bool, "emergency_stop", self.on_emergency_stop, 10)
        self.create_service(Trigger, "~/relax", self.on_relax)
        self.create_service(SetBool, "~/hold", self.on_hold)
        self.create_service(Trigger, "~/tension_up", self.on_tension_up)
        self.power_on: PowerOn | None = None
        self.started, self._event = False, ("", -TOLD)
        self.learner = BodyImageLearner(self, robot, geometry, self.control.stiffness, self._use_image)
        self._stiffness, self._checked_at = (float("nan"), float("nan")), -np.inf
        self._extra_sent = 0.0
        return p.rate

    def settings(self) -> TendonControllerSettings:
        p = self.params
        return TendonControllerSettings(
            **{f.name: getattr(p, f.name) for f in fields(TendonControllerSettings) if hasattr(p, f.name)}
        )

    def _warm_up(self) -> None:
        """Load compiled code before the first tick."""
        c = self.control
        m, d = c.packed.record.G.shape
        self._path, self._seen, self._arms = np.zeros(m), np.zeros(m), np.zeros((m, d))
        theta = c.geometry.theta(self.robot.q("neutral"))
        states = self.readings.states._replace(tension=c.least.copy())
        c.reset(theta, states)
        for law in LAWS:
            c.with_law(law)
            c.step(self.references.rest(theta), theta, states, 1.0 / self.params.rate)
        c.change(self.settings())
        c.joint_stiffness(theta, c.least, c.settings.stiffness)

    def parameters_changed(self, changed: set[str]) -> None:
        if not hasattr(self, "control"):
            return
        try:
            self.control.change(self.settings())
            self.health.clear("settings")
        except HumanoidError as e:
            self.health.report("settings", Level.WARN, str(e))

    def activate(self) -> None:
        self.commands.restart()
        self.supervisor.release()
        self.restart()
        self._raise_tensions = self.params.tension_up

    def _use_image(self, image: BodyImage) -> None:
        self.control.use(image)
        if self.started:
            self.restart()

    def restart(self) -> None:
        """Restart at the current robot state, once tendons and angles arrive."""
        self.started, self._last_tick = False, -np.inf
        self.references.reset()
        self.commands.pause()

    # -- inputs -------------------------------------------------------------------------------------------------------

    def on_command(self, m: JointState) -> None:
        if self.started and (read := read_command(self, self.reader, m)) is not None:
            self.references.add(*read[0], time.monotonic())

    def on_states(self, m: JointState) -> None:
        """Accept wires and tensions; reject faulty messages."""
        try:
            jumped = self.readings.take(m.name, m.position, m.velocity, m.effort, time.monotonic())
        except HumanoidError as e:
            self._show_event(f"{e}: ignored")  # valid messages follow at once, so the event is shown for a while
            return
        text = self.readings.problem
        self.health.check(STATES, bool(text), Level.WARN, text)
        if jumped and self.started:
            self._show_event("wire lengths jumped, perhaps of another or a moved robot: restarted")
            self.restart()

    def on_angles(self, m: JointState) -> None:
        self.estimate.take(m)
        self.health.check("angles", bool(self.estimate.problem), Level.WARN, self.estimate.problem)

    def on_covariance(self, m: Float64MultiArray) -> None:
        """Mark joints with a large standard deviation as uncertain."""
        names = m.layout.dim[0].label.split(",") if m.layout.dim else []
        wrong = len(m.data) != len(names) ** 2
        text = f"{COVARIANCE}: {len(m.data)} numbers for {len(names)} joints: ignored"
        if self.health.check("covariance", wrong, Level.WARN, text) or not names:
            return
        variance = np.asarray(m.data).reshape(len(names), len(names)).diagonal()
        deviation = np.degrees(np.sqrt(np.maximum(variance, 0.0)))
        sure = dict(zip(names, (deviation <= DOUBTED).tolist(), strict=True))  # NaN counts as uncertain
        self.uncertain[:] = [not sure.get(n, True) for n in self.control.geometry.joint_names]

    def _request_mode(self, now: float) -> None:
        if (
            self.params.angles != ESTIMATED
            or now - self._mode_requested_at < MODE_PERIOD
            or not self._estimator.service_is_ready()
        ):
            return
        self._mode_requested_at = now
        self._estimator.call_async(GetParameters.Request(names=["source", "mode"])).add_done_callback(self._on_mode)

    def _on_mode(self, future: Any) -> None:
        answer = future.result()
        words = [v.string_value for v in answer.values if v.type == ParameterType.PARAMETER_STRING] if answer else []
        self._mode = words[1] if len(words) == 2 and words[0] == "tendons" else ""

    def _refuses_angles(self) -> bool:
        """Return True and report it if the angles may drift in closed loop."""
        refused = bool(self._mode) and self._mode not in SAFE_MODES and not self.params.force
        refused = refused and self.params.law in NEEDS_ANGLES
        text = f"state_estimator runs in mode {self._mode}, whose angles may drift: use absolute or r2, or force:=true"
        self.health.check("mode", refused, Level.ERROR, text)
        return refused

    def on_emergency_stop(self, m: Bool) -> None:
        if m.data:
            self.supervisor.stop(self.params.stop)
        elif self.supervisor.stopped:
            self._resume()

    # -- services -----------------------------------------------------------------------------------------------------

    def on_relax(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Reduce all tensions to 5 N within one second; the robot sinks."""
        self.supervisor.stop("pay_out")
        response.success, response.message = True, "tensions are released; ~/tension_up restores them"
        return response

    def on_hold(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        """Hold all wires, or follow commands again."""
        if request.data:
            self.supervisor.stop("hold")
        else:
            self._resume()
        response.success, response.message = True, "wires are held" if request.data else "following commands"
        return response

    def on_tension_up(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Raise tensions to the minimum, one winch at a time."""
        if not self.readings.known:
            response.success, response.message = False, f"no {STATES} yet"
            return response
        self._resume()
        self._raise_tensions = True
        response.success, response.message = True, "raising the tensions"
        return response

    def _resume(self) -> None:
        self.supervisor.release()
        self.power_on = None
        self.restart()

    # -- the tick -----------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        lost = self.age(STATES, now) > self._patience or not self.readings.known
        self.heartbeat.miss(not self.readings.known)
        waits = not self.readings.known and not self.silent(STATES, now, 0.0)
        self.health.check("lost", lost and not waits, Level.WARN, f"no {STATES}: the drives hold their wires")
        if self.started and self.age(STATES, now) > AWAY * self._patience:
            self.restart()
        if not self.commands.may_command(now, self.started or not lost) or lost:
            return
        if self._refuses_angles():
            if self.started:
                self.restart()
            return
        angles, old = self._angles(now)
        needs = self.params.law in NEEDS_ANGLES
        if not self.started:
            self.health.check(
                "start", needs and angles is None, Level.WARN, "no joint angles yet: nothing is commanded"
            )
            if needs and angles is None:
                return
            self._begin(angles)
        # Bounded, so that a late tick does not move the winches by a large step.
        dt = min(max(now - self._last_tick, 1e-4), 4.0 / self.rate) if np.isfinite(self._last_tick) else 1.0 / self.rate
        self._last_tick = now
        command = self._command(now, dt, angles, needs and old)
        if command is not None:
            self.send(command)
        self._report(now)

    @property
    def _patience(self) -> float:
        """Silence of an input after which it is not used [s]."""
        return max(PERIODS / self.params.tendon_rate, self.params.patience)

    def _angles(self, now: float) -> tuple[np.ndarray | None, bool]:
        """Return angles (D,) [rad] (None if any is unknown) and whether they are too old."""
        theta = self.estimate.values[self.joints]
        old = self.age(self.params.angles, now) > self._patience
        return (theta if np.isfinite(theta).all() else None), old

    def _begin(self, angles: np.ndarray | None) -> None:
        theta = angles if angles is not None else self.control.geometry.theta(self.robot.q("neutral"))
        theta = np.clip(theta, self.references.lower, self.references.upper)
        self.control.reset(theta, self.readings.states)
        self.references.begin(theta, time.monotonic())
        self.power_on = PowerOn(self.supervisor, self.readings.states) if self._raise_tensions else None
        self._raise_tensions, self.started = False, True

    def _command(self, now: float, dt: float, angles: np.ndarray | None, old: bool) -> WinchCommand | None:
        c, s, states = self.control, self.supervisor, self.readings.states
        c.geometry.raw_into(c.reference, self._path, self._arms)
        seen = self._path
        if angles is not None:
            seen = self._seen
            c.geometry.raw_into(angles, seen, self._arms)
        for event in s.step(states, self._path, dt, seen):
            self._show_event(event.text)
        c.dead[:], c.used[:] = s.snapped, ~s.snapped
        c.warmth[:], c.warm_most[:] = s.heat.warmth, s.heat.most
        if self.power_on is not None:
            return self._power_on_step(dt)
        if old and self.age(self.params.angles, now) > LONG * self._patience:
            for group in s.groups:
                s.hold_group(group, states)
        c.trusted[:] = not old
        for group in s.held_groups:
            c.trusted[self.owned[group]] = False
        c.trusted[self.uncertain] = False
        reference = self.references.at(now, dt)
        if angles is None and self.params.law in NEEDS_ANGLES:
            angles = c.reference
        return s.override(c.step(reference, angles, states, dt), states, c.settings.stiffness)

    def _power_on_step(self, dt: float) -> WinchCommand | None:
        power = self.power_on
        assert power is not None
        command = power.step(self.readings.states, self.control.command, dt)
        self.health.check("power_on", bool(power.refused), Level.ERROR, f"tensions not raised: {power.refused}")
        if power.done:
            self.power_on = None
            self._show_event("tensions are raised")
            self.restart()
            return None
        return command

    def send(self, command: WinchCommand) -> None:
        stamp = stamp_of(self.present())
        names = self.control.geometry.tendon_names
        for part in fields_of(command):
            key = tuple(part.rows.tolist())
            if key not in self._messages:
                if len(self._messages) > 64:
                    self._messages.clear()
                self._messages[key] = JointState(name=[names[k] for k in key])
            m = self._messages[key]
            fill_joint_state(m, stamp, part.position, part.velocity, part.effort)
            self.commands.publish(m)

    # -- reports ------------------------------------------------------------------------------------------------------

    def _show_event(self, text: str) -> None:
        self._event = text, time.monotonic()

    def _report(self, now: float) -> None:
        c, s, h = self.control, self.supervisor, self.health
        h.check("event", now - self._event[1] < TOLD, Level.WARN, self._event[0])
        names = c.geometry.tendon_names
        for what, flags, level in (
            ("slack", s.slack & ~s.snapped, Level.WARN),
            ("snapped", s.snapped, Level.ERROR),
            ("over", s.over, Level.ERROR),
        ):
            text = first_few([names[k] for k in np.flatnonzero(flags)])
            h.check(what, bool(flags.any()), level, f"{what}: {text}")
        h.check("held", bool(c.held), Level.WARN, f"reference held, {c.held}")
        h.check(
            "doubted", bool(s.held_groups), Level.WARN, f"no plausible angles: {', '.join(s.held_groups)}; lengths held"
        )
        silent = self.started and not self.references.heard(now)
        h.check("silent", silent and self.references.moved, Level.WARN, "no joint_commands: references are held")
        h.check("stopped", bool(s.stopped), Level.WARN, f"winches are stopped: {s.stopped}")
        if now - self._extra_sent > 1.0 / EXTRA_RATE:
            self._extra_sent, stamp = now, stamp_of(self.present())
            for what, row in (("missed", c.missed), ("references", c.reference)):
                publisher, message = self._extra[what]
                if publisher.get_subscription_count():
                    message.header.stamp = stamp
                    setattr(message, "effort" if what == "missed" else "position", floats(row))
                    publisher.publish(message)

    def slack_time(self, left: float) -> None:
        """Check the joint stiffness periodically."""
        now = time.monotonic()
        self._request_mode(now)
        self.learner.add(self.readings, now)
        self.learner.slack_time()
        if not self.started or now - self._checked_at < STABILITY_PERIOD:
            return
        self._checked_at, c = now, self.control
        K = c.settings.stiffness if c.settings.law == "stiffness" else float(np.mean(c.stiffness))
        self._stiffness = c.joint_stiffness(c.reference, self.readings.states.tension, K)
        least, own = self._stiffness
        soft = c.settings.law == "stiffness" and least < LEAST_SHARE * own
        text = f"joint stiffness is only {least:.2g} N m/rad: joints may buckle; the wire stiffness is {K:g} N/m"
        self.health.check("buckling", soft, Level.WARN, text)

    def values(self) -> dict[str, Any]:
        c, s, names = self.control, self.supervisor, self.control.geometry.joint_names
        T, f = self.readings.states.tension, c.packed.record.shares.f
        out: dict[str, Any] = {
            "law": c.settings.law,
            "tension_mean": round(float(T.mean()), 1),
            "tension_peak": round(float(T.max()), 1),
            "tension_peak_tendon": c.geometry.tendon_names[int(np.argmax(T))],
            "co_contraction": round(float(T.mean() - f.mean()), 1),
            "torque_missed_max": round(float(np.abs(c.missed).max()), 3),
            "torque_missed_joint": names[int(np.argmax(np.abs(c.missed)))],
            "slowed": round(c.slowed, 3),
            "hottest_deg_c": round(float(s.heat.core.max()), 1),
            "hottest_tendon": c.geometry.tendon_names[int(np.argmax(s.heat.core))],
            "joint_stiffness_min": round(self._stiffness[0], 2),
            "held": c.held,
            "learning": self.learner.state,
        }
        theta = self.estimate.values[self.joints]
        if np.isfinite(theta).all():
            error = np.abs(c.reference - theta)
            out["error_max_deg"] = round(float(np.degrees(error.max())), 3)
            out["error_max_joint"] = names[int(np.argmax(error))]
        return out


def main() -> int:
    return main_of(TendonControllerNode)


if __name__ == "__main__":
    sys.exit(main())
