"""Base of every node: lifecycle, parameters, fixed-rate tick, health, diagnostics."""

from __future__ import annotations

import dataclasses
import inspect
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import ParameterException
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile

from humanoid_control.errors import ConfigError, HumanoidError, UnknownNameError
from humanoid_control.hardware.realtime import pin
from humanoid_control.kinematics.joint_state import PART, NodeStatus
from humanoid_control.nodes.base.graph_watch import GraphWatch
from humanoid_control.nodes.base.health import Health as Health
from humanoid_control.nodes.base.health import Level as Level
from humanoid_control.nodes.base.heartbeat import Heartbeat
from humanoid_control.nodes.base.messages import EVENTS, POLLED_IN, STREAM_IN, RisingStamps, diagnostic_array, stamp_of
from humanoid_control.nodes.base.parameters import (
    NodeParameters,
    allowed,
    check_frame_prefix,
    check_value,
    converted,
    default_of,
    with_value,
)
from humanoid_control.nodes.base.statistics import TickStatistics

DIAGNOSTICS_PERIOD, NEWS_PERIOD = 1.0, 0.1  # [s] periods of diagnostics; the shorter one after a problem begins or ends
# signature by which rclpy recognises a callback of message and info
WITH_INFO = inspect.signature(lambda message, info: None)
SETTLING = 4.0  # [s] startup time of a stack, in which its processes compete for the cores


def declare(node: Any, cls: type[NodeParameters]) -> Any:
    """Declare the fields of a parameter dataclass; return the given values, warn of unknown names.

    Raises:
        ConfigError: if a type or range is wrong.
        UnknownNameError: if a value is not a choice.
    """
    values, overrides = {}, getattr(node, "_parameter_overrides", {})
    for f in dataclasses.fields(cls):
        if f.name in overrides:  # converted first, because rclpy compares the types
            value = check_value(cls, f.name, overrides[f.name].value)
            overrides[f.name] = Parameter(f.name, value=value)
        try:
            given = node.declare_parameter(f.name, default_of(f), descriptor(f)).value
        except ParameterException as e:
            reason, unit = str(e).splitlines()[0], f.metadata["unit"]
            raise ConfigError(f"parameter {f.name} must be in {allowed(f)} {unit}: {reason}") from None
        values[f.name] = check_value(cls, f.name, given)
    for name in unknown_names(overrides, values):
        # ROS ignores unknown names silently. A shared file may contain names of other nodes: warn only.
        node.get_logger().warning(f"{UnknownNameError('parameter', name, values)} (ignored)")
    return cls(**values)


def unknown_names(given: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return names that neither the node nor rclpy declares."""
    declared = {*known, "use_sim_time", "start_type_description_service"}
    return sorted(name for name in given if name not in declared and not name.startswith("qos_overrides."))


def descriptor(f: dataclasses.Field) -> ParameterDescriptor:
    """Return the description that `ros2 param describe` shows."""
    m, default = f.metadata, default_of(f)
    d = ParameterDescriptor(description=f"{m['meaning']} [{m['unit']}]" if m["unit"] else m["meaning"])
    d.read_only = not m["live"]
    if m["choices"]:
        d.additional_constraints = f"one of {', '.join(m['choices'])}"
    low, high = m["low"], m["high"]
    if low is not None and high is not None:
        if isinstance(default, float):
            d.floating_point_range = [FloatingPointRange(from_value=float(low), to_value=float(high))]
        else:
            d.integer_range = [IntegerRange(from_value=int(low), to_value=int(high))]
    return d


def with_info(callback: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return a callback of message and message info for every rclpy executor."""

    def both(*given: Any) -> Any:  # the events executor passes one tuple, the other executors two arguments
        return callback(*(given if len(given) == 2 else given[0]))

    both.__signature__ = WITH_INFO  # type: ignore[attr-defined]
    return both


def set_priority(priority: int) -> str:
    """Request real-time scheduling (positive) or a lower priority (negative) for all threads.

    Without the right (rtprio limit or root) it stays normal.

    Returns:
        The granted scheduling: 'fifo 50', 'nice 10' or 'normal'.
    """
    try:
        if priority > 0:
            for thread in os.listdir("/proc/self/task"):
                os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(priority))
            return f"fifo {priority}"
        if priority < 0:
            os.nice(-priority)
            return f"nice {-priority}"
    except OSError:
        pass
    return "normal"


class TickNode(LifecycleNode):
    """Managed node with one fixed-rate tick.

    A subclass names its `Parameters`, builds its algorithms in `configure`, resets its state in `activate` and works in
    `tick`, which runs only while active. Only `tick` may publish commands. Exceptions in ticks and callbacks are
    reported; the node continues.
    """

    Parameters: type[NodeParameters] = NodeParameters
    node_name = "node"
    sole = False  # refuse to start if this machine already runs a node of this name, because others read its messages
    punctual = False  # ticks begin exactly on time; messages of the last 0.1 ms before a tick are handled after it
    refused = ""  # reason why configuration failed

    def __init__(self) -> None:
        self._polled: list[Any] = []
        super().__init__(self.node_name)
        self.heartbeat, self.graph = Heartbeat(), GraphWatch(self)
        self.params = declare(self, self.Parameters)
        self.add_pre_set_parameters_callback(self._before_set_parameters)
        self.add_on_set_parameters_callback(self._on_set_parameters)
        self.health = Health(self._log)
        self.rate = 1.0
        self.statistics = TickStatistics(1.0)
        self.inputs: dict[str, float] = {}
        self.when_stopped: list[Callable[[], None]] = []  # called at deactivation
        self.reports: list[Callable[[float], None]] = []  # called after each tick
        self.stamps = RisingStamps()
        self.wake = False
        self.late = 0.0  # delay of this tick after its deadline [s]
        self.active = self.configured = self._has_figures = False  # figures: available since the first activation
        self.scheduling = "normal"
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", EVENTS)
        self._kept = self._endpoints()  # entities that a cleanup keeps
        self._last_diagnostics = self._active_since = 0.0

    def destroy_node(self) -> None:
        self.graph.close()
        super().destroy_node()

    # -- for subclasses ---------------------------------------------------------------------------------------

    def configure(self) -> float:
        """Build everything from `self.params` and return the tick rate [Hz].

        Raises:
            HumanoidError: if the parameters are unusable; the transition then fails.
        """
        raise NotImplementedError

    def activate(self) -> None:
        """Start from a clean state."""

    def deactivate(self) -> None:
        """Stop publishing commands."""

    def tick(self, now: float) -> None:
        """Run one step starting at `now`, monotonic [s]."""

    def slack_time(self, left: float) -> None:
        """Do deferrable work after a tick, `left` [s] before the next one."""

    def ending(self) -> bool:
        """Test whether ticks must continue after a request to end."""
        return False

    def values(self) -> dict[str, Any]:
        """Return further figures for diagnostics, after the first activation."""
        return {}

    def parts(self) -> dict[str, NodeStatus]:
        """Return statuses of parts by name, for diagnostics."""
        return {}

    def parameters_changed(self, changed: set[str]) -> None:
        """Handle new values of live parameters."""

    def present(self) -> int:
        """Return an increasing ROS time stamp [ns], unless the clock was set back by a second."""
        return self.stamps.next(self.get_clock().now().nanoseconds)

    def listen(
        self,
        message: type,
        topic: str,
        callback: Any,
        qos: QoSProfile = STREAM_IN,
        raw: bool = False,
        wakes: bool = False,
        takes_info: bool = False,
    ) -> None:
        """Subscribe and monitor the age of the last message.

        Args:
            raw: pass serialized messages.
            wakes: a message triggers an extra tick at once.
        """

        def received(*given: Any) -> None:
            self.inputs[topic] = time.monotonic()
            callback(*given)
            self.wake = self.wake or wakes

        self.create_subscription(message, topic, received, qos, raw=raw, takes_info=takes_info)

    def poll(self, message: type, topic: str, callback: Any, qos: QoSProfile = POLLED_IN) -> Callable[[], None]:
        """Subscribe without waking the executor, for high rates.

        Args:
            callback: takes serialized messages.
            qos: its depth limits the waiting messages.

        Returns:
            Function that handles the waiting messages.
        """

        def received(data: bytes) -> None:
            self.inputs[topic] = time.monotonic()
            callback(data)

        subscription = self.create_subscription(message, topic, received, qos, raw=True)
        self._polled.append(subscription)

        def take() -> None:
            handle = subscription.handle
            with handle:
                for _ in range(qos.depth):
                    if (got := handle.take_message(message, True)) is None:
                        return
                    subscription.callback(got[0])

        return take

    @property
    def subscriptions(self) -> Iterator[Any]:
        """Subscriptions of the executor, without polled ones."""
        return (s for s in super().subscriptions if s not in self._polled)

    def create_subscription(
        self, msg_type: Any, topic: str, callback: Any, *args: Any, takes_info: bool = False, **kwargs: Any
    ) -> Any:
        """Subscribe as rclpy does, with reported callback exceptions.

        Args:
            *args: passed to rclpy.
            takes_info: the callback takes message and message info (publisher, times).
            **kwargs: passed to rclpy.
        """
        key = f"callback {topic}"

        def guarded(*given: Any) -> None:
            try:
                callback(*given)
                self.health.clear(key)
            except Exception as e:
                text = f"message on {topic} failed, ignored: {type(e).__name__}: {e}"
                self.health.report(key, Level.ERROR, text)

        def alone(message: Any) -> None:
            guarded(message)

        taken = with_info(guarded) if takes_info else alone
        return super().create_subscription(msg_type, topic, taken, *args, **kwargs)

    def create_service(self, srv_type: Any, srv_name: str, callback: Any, *args: Any, **kwargs: Any) -> Any:
        """Offer a service as rclpy does, with reported and answered exceptions."""
        key = f"service {srv_name}"

        def guarded(request: Any, response: Any) -> Any:
            try:
                answer = callback(request, response)
                self.health.clear(key)
                return answer
            except Exception as e:
                text = f"service {srv_name} failed: {type(e).__name__}: {e}"
                self.health.report(key, Level.ERROR, text)
                if hasattr(response, "success"):
                    response.success, response.message = False, text
                return response

        return super().create_service(srv_type, srv_name, guarded, *args, **kwargs)

    def silent(self, topic: str, now: float, limit: float) -> bool:
        """Test whether an input was silent for `limit` [s]; startup does not count."""
        since = self.inputs.get(topic, self._active_since + SETTLING)
        return now - since > limit

    def age(self, topic: str, now: float) -> float:
        """Return the time since an input's last message [s], or infinity."""
        return now - self.inputs[topic] if topic in self.inputs else float("inf")

    # -- lifecycle ----------------------------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._kept = self._endpoints()
        try:
            check_frame_prefix(self.params.frame_prefix)
            twin = self.graph.find_twin()
            if reason := pin(self.params.cpu) or (twin if self.sole else ""):
                raise ConfigError(reason)
            self.rate = self.configure()
        except HumanoidError as e:
            self._release()
            self.health.report("configure", Level.ERROR, str(e))
            self.refused = str(e)
            return TransitionCallbackReturn.FAILURE
        self.configured, self._has_figures = True, False
        self.scheduling = set_priority(self.params.priority)
        self.heartbeat.excuse_compiler()
        self.health.clear("configure")
        self.statistics = TickStatistics(self.rate, self.params.window)
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.statistics.restart()
        self._active_since = time.monotonic()
        self.activate()
        self.active = self._has_figures = True
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        self.active = False
        self.heartbeat.rest()  # later requests may arrive before the next loop
        self._stop()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._release()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        if self.active:
            self.active = False
            self._stop()
        self._release()
        return TransitionCallbackReturn.SUCCESS

    def _stop(self) -> None:
        self.deactivate()
        for stop in self.when_stopped:
            stop()

    def _endpoints(self) -> list[tuple[Callable[[Any], bool], Any]]:
        """Return all ROS entities of this node with their destructors."""
        subscriptions = super().subscriptions
        return [
            *((self.destroy_publisher, p) for p in self.publishers),
            *((self.destroy_subscription, s) for s in subscriptions),
            *((self.destroy_service, s) for s in self.services),
            *((self.destroy_client, c) for c in self.clients),
            *((self.destroy_timer, t) for t in self.timers),
        ]

    def _release(self) -> None:
        """Undo `configure`, so that a repeated one does not subscribe twice."""
        self.configured = False
        self.close()
        kept = {id(endpoint) for _, endpoint in self._kept}
        for destroy, endpoint in self._endpoints():
            if id(endpoint) not in kept:
                destroy(endpoint)
        self._polled.clear()
        self.inputs.clear()
        self.when_stopped.clear()
        self.reports.clear()
        self.health.open.clear()
        self.wake = False

    # -- the tick -------------------------------------------------------------------------------------------------

    def run_tick(self, skipped: int) -> None:
        """Run one tick with timing and exception guard."""
        start = time.monotonic()
        try:
            self.tick(start)
            for report in self.reports:
                report(start)
            self.health.clear("tick")
        except Exception as e:
            self.health.report("tick", Level.ERROR, f"tick failed, holding: {type(e).__name__}: {e}")
        self.statistics.tick(start, time.monotonic(), skipped)

    def run_extra_tick(self) -> None:
        """Run a tick requested by an input, outside the rate statistics."""
        try:
            self.tick(time.monotonic())
        except Exception as e:
            self.health.report("tick", Level.ERROR, f"tick failed, holding: {type(e).__name__}: {e}")

    def run_slack_time(self, left: float) -> None:
        """Run deferrable work with exception guard."""
        try:
            self.slack_time(left)
            self.health.clear("slack_time")
        except Exception as e:
            self.health.report("slack_time", Level.WARN, f"work between ticks failed: {type(e).__name__}: {e}")

    def close(self) -> None:
        """Release files and servers; may be called twice."""

    def publish_diagnostics(self, now: float) -> None:
        """Publish the status once a second, and after problems begin or end."""
        if now - self._last_diagnostics < (NEWS_PERIOD if self.health.news else DIAGNOSTICS_PERIOD):
            return
        self.graph.check(now)
        self._last_diagnostics, self.health.news = now, False
        r, p = self.statistics.report(), self.params
        if self.active and now - self._active_since > SETTLING:
            late = f"{r.missed_percent:.1f} % of the ticks were missed"
            level = Level.ERROR if r.missed_percent > p.missed_error else Level.WARN
            self.health.check("missed", r.missed_percent > p.missed_warn, level, late)
        more, parts = self._own_values()
        worst, message = self.health.worst()
        values: dict[str, Any] = {
            "state": "active" if self.active else "inactive" if self.configured else "unconfigured",
            "rate_hz": round(r.rate, 2),
            "period_p50_ms": _ms(r.period_p50),
            "period_p99_ms": _ms(r.period_p99),
            "period_error_p50_ms": _ms(r.period_error_p50),
            "period_error_p99_ms": _ms(r.period_error_p99),
            "execution_p50_ms": _ms(r.execution_p50),
            "execution_p99_ms": _ms(r.execution_p99),
            "ticks": r.ticks,
            "missed_ticks": r.missed,
            "missed_percent": round(r.missed_percent, 3),
            "scheduling": self.scheduling,
            **{f"age_ms {topic}": _ms(now - t) for topic, t in self.inputs.items()},
            **{f"count {key}": n for key, n in self.health.seen.items()},
            **more,
        }
        name = self.get_fully_qualified_name()
        statuses = {name: (worst, message, values)} | {f"{name}{PART}{part}": found for part, found in parts.items()}
        self._diagnostics.publish(diagnostic_array(statuses, p.robot, stamp_of(self.present())))

    def _own_values(self) -> tuple[dict[str, Any], Mapping[str, NodeStatus]]:
        if not (self.configured and self._has_figures):
            return {}, {}
        try:
            figures = self.values(), self.parts()
            self.health.clear("values")
            return figures
        except Exception as e:
            self.health.report("values", Level.WARN, f"figures failed: {type(e).__name__}: {e}")
            return {}, {}

    # -- parameters -----------------------------------------------------------------------------------------------

    def _before_set_parameters(self, parameters: list[Parameter]) -> list[Parameter]:
        """Convert parameters to their declared types, such as 100 for a float."""
        known = {f.name: f for f in dataclasses.fields(self.Parameters)}
        return [
            Parameter(p.name, value=converted(known[p.name], p.value)) if p.name in known and p.value is not None else p
            for p in parameters
        ]

    def _on_set_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        known = {f.name: f for f in dataclasses.fields(self.Parameters)}
        params, changed = self.params, set()
        for p in parameters:
            if p.name not in known:
                continue
            try:
                params = with_value(params, p.name, p.value)
            except HumanoidError as e:
                return SetParametersResult(successful=False, reason=str(e))
            changed.add(p.name)
        before, self.params = self.params, params
        try:
            if changed and self.configured:  # `configure` reads them anyway
                self.parameters_changed(changed)
        except Exception as e:
            self.params = before
            reason = str(e) if isinstance(e, HumanoidError) else f"{type(e).__name__}: {e}"
            return SetParametersResult(successful=False, reason=reason)
        return SetParametersResult(successful=True)

    def _log(self, level: Level, text: str) -> None:
        # rclpy stores one severity per calling line, so each severity needs its own line
        if level is Level.ERROR:
            self.get_logger().error(text)
        elif level is Level.WARN:
            self.get_logger().warning(text)
        else:
            self.get_logger().info(text)


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3) if seconds == seconds else float("nan")
