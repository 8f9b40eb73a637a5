"""Stack of nodes under supervision, with a monitor and an optional recorder.

```python
from humanoid_control.session import Session

with Session("targets", "hrp2") as session:
    print(session.viewer_url)
    session.run(seconds=60.0)
    print(session.monitor.nodes["whole_body_ik"].message)
```
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError, missing_extra
from humanoid_control.hardware.realtime import give_back_memory
from humanoid_control.kinematics import NodeStatus, node_statuses
from humanoid_control.nodes.base.graph_watch import Claim, node_claim
from humanoid_control.nodes.base.ros_env import check_namespace, choose_discovery
from humanoid_control.session.runs import (
    discard_run_directory,
    new_run_directory,
    replay_command,
    write_parameters,
)
from humanoid_control.session.stacks import COMMANDS, NodeSpec, Stack, find_stack
from humanoid_control.session.supervisor import RESTARTS, InputRefused, StackFailure, Supervisor, node_command
from humanoid_control.terminal import Waiting, warn
from humanoid_control.viewer import page_address
from humanoid_control.warm_up import HARDWARE

FIRST_MOTION_TIMEOUT = 45.0  # [s]
FIRST_WORD_TIMEOUT = 12.0  # [s] ready nodes that can be heard publish diagnostics every second
NAMES_TIMEOUT = 1.0  # [s] in which the nodes of an ended stack disappear
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RECORDER = "record"


class NamesTaken(ConfigError):
    """Another stack has nodes of the same names."""


class Session:
    """Context manager of a running stack.

    Attributes:
        stack: running stack, without the viewer if it cannot be shown.
        directory: directory of parameters, logs and recording.
        bag: path of the recording, or None.
        monitor: node that listens to the nodes.
        complaints: (node, line) of warnings, deaths and restarts.
        stopped: set by SIGINT, SIGTERM or SIGHUP; `run` then returns, and the start raises KeyboardInterrupt. A second
            signal stops drives at once.
    """

    def __init__(
        self,
        stack: Stack | str,
        robot: str = "hrp2",
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        window: float | None = None,
        namespace: str = "",
        record: bool | Sequence[str] = False,
        quiet: bool = False,
    ) -> None:
        """Prepare a run without starting it.

        Args:
            stack: stack, or a name of `STACKS`.
            robot: catalogue name, or path of a URDF.
            settings: node -> parameter -> value; overrides the stack.
            window: averaging time of node statistics [s]; None: their default.
            record: True: record all topics; names: record these.

        Raises:
            UnknownNameError: if a stack or node is unknown.
        """
        self.stack, settings = find_stack(stack) if isinstance(stack, str) else stack, settings or {}
        if unknown := [node for node in settings if node not in self.stack]:
            raise UnknownNameError("node", unknown[0], self.stack.executables, hint=f"(in stack {self.stack.name})")
        check_namespace("namespace", namespace)
        if "viewer" in self.stack and (problem := missing_extra("viewer")):
            warn(f"without the viewer: {problem}")
            self.stack = self.stack.without("viewer")
        self.directory = new_run_directory(self.stack.name)
        self.bag = self.directory / "recording" if record else None
        if "viewer" in self.stack and self.bag is not None:
            viewer = settings.get("viewer", {})
            settings = {**settings, "viewer": {"replay": replay_command(self.bag, viewer.get("port")), **viewer}}
        self.namespace, self.quiet, self._settings = namespace, quiet, settings
        self._topics = () if isinstance(record, bool) else tuple(record)
        shared = {"robot": robot} if window is None else {"robot": robot, "window": window}
        self._parameters = write_parameters(self.directory, self.stack.ros_parameters(shared, settings))
        self.stopped = threading.Event()
        self.complaints: list[tuple[str, str]] = []
        self._held: list[str] | None = []  # lines held back until the nodes are ready
        self.supervisor = Supervisor(self.directory, self._complain)
        self._monitor: Monitor | None = None
        self._handlers: dict[int, Any] = {}
        self._names: list[Claim] = []  # claims of the node names
        self._stopping = False
        self._parent = parent_to_live_with()
        self.begin = time.monotonic()

    @property
    def monitor(self) -> Monitor:
        """Monitor of the running stack."""
        assert self._monitor is not None, "the session has not been started, or was stopped"
        return self._monitor

    @property
    def viewer_url(self) -> str | None:
        """Address of the page; None without a viewer."""
        if "viewer" not in self.stack:
            return None
        return page_address(self._settings.get("viewer", {}).get("port", 8080))

    def __enter__(self) -> Session:
        if threading.current_thread() is threading.main_thread():
            self._handlers = {s: signal.signal(s, lambda *_: self._on_signal()) for s in SIGNALS}
        try:
            self.start()
        except BaseException as e:
            self.__exit__(type(e), e)
            raise
        return self

    def _on_signal(self) -> None:
        if self._stopping:
            for name in self._powering():
                self.supervisor.interrupt(name)
        self.stopped.set()

    def _powering(self) -> list[str]:
        return [spec.executable for spec in self.stack.nodes if spec.powers]

    def __exit__(self, kind: object, error: object, *_: object) -> None:
        self.stop()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers = {}
        if isinstance(error, (InputRefused, NamesTaken)):  # its message is complete
            discard_run_directory(self.directory)

    def start(self) -> None:
        """Start recorder, nodes and monitor; return when all are ready.

        Raises:
            NamesTaken: if another stack has a node of the same name and domain.
            InputRefused: if a node rejected its input; the directory of the run is removed on exit.
            StackFailure: if a node did not start.
        """
        self.begin = time.monotonic()
        self._claim_names()
        groups = self.stack.kernel_groups(self._settings)
        self.supervisor.load()
        if self.bag is not None:
            command = [sys.executable, "-u", "-m", "humanoid_control.cli.main", "record", "-o", str(self.bag)]
            command += ["--topics", *self._topics] if self._topics else []
            self.supervisor.start(RECORDER, command, essential=False, restarts=0)  # a bag cannot be continued
        for spec in self.stack.nodes:
            if spec.powers:  # it is not forked
                self._start_node(spec)
        # All others are forked from a process with everything loaded, so they share unmodified memory.
        self.supervisor.load(*(g for g in groups if g != HARDWARE))
        self._monitor = Monitor(self.namespace, self.stack.commands, self.stack.player)
        self._waiting = Waiting(self.quiet)
        while not self.supervisor.wait_loaded(0.1):
            self._wait_for("the kernels of its nodes")
        for spec in sorted(self.stack.nodes, key=lambda spec: not spec.essential):  # helpers would delay the others
            if not spec.powers:
                self._start_node(spec)
        try:
            self.supervisor.wait_ready(meanwhile=self._wait_for_nodes)
        except StackFailure as e:
            self._print_held(str(e))
            raise
        self._print_held()

    def _claim_names(self) -> None:
        """Reserve the node names on this machine."""
        said, begin = os.environ.get("ROS_DOMAIN_ID", ""), time.monotonic()
        domain = int(said) if said.isdigit() else 0
        for name in self.stack.executables:
            full = f"/{self.namespace.strip('/')}/{name}".replace("//", "/")
            self._names.append(Claim(f"stack {full}", domain))
            of_node = node_claim(full, domain)
            while not (free := self._names[-1].take() and of_node.take()) and time.monotonic() - begin < NAMES_TIMEOUT:
                time.sleep(0.05)  # nodes of a killed stack live a moment longer
            of_node.release()
            if not free:
                raise NamesTaken(
                    f"another stack of this machine has a node {full} in ROS domain {domain}, which conflicts with "
                    "this one: stop it, or give one of them its own --namespace or ROS_DOMAIN_ID"
                )

    def _wait_for(self, what: str) -> None:
        """Report a long wait."""
        if self.stopped.is_set():
            raise KeyboardInterrupt
        self._waiting.tell(what)

    def _wait_for_nodes(self) -> None:
        self.monitor.listen(0.02)
        self._wait_for(", ".join(c.name for c in self.supervisor.children.values() if not c.ready.is_set()))

    def _start_node(self, spec: NodeSpec) -> None:
        """Start a node; nodes that power drives are not forked, to be independent."""
        command = node_command(spec.module, self._parameters, self.namespace, self.stack.remaps.get(spec.executable))
        restarts = 0 if spec.powers else RESTARTS
        self.supervisor.start(spec.executable, command, spec.essential, restarts, forked=not spec.powers)

    def wait_first_motion(self, timeout: float = FIRST_MOTION_TIMEOUT) -> float:
        """Wait for the first motion; return the time since the start [s].

        Raises:
            StackFailure: if nothing arrives, for example without discovery.
            KeyboardInterrupt: if a signal stopped the session.
        """
        begin, self._waiting = time.monotonic(), Waiting(self.quiet)
        while not self.monitor.moving_since:
            self.monitor.spin(0.02)
            self.check()
            self._wait_for("the first motion")
            if time.monotonic() - begin > (timeout if self.monitor.nodes else min(timeout, FIRST_WORD_TIMEOUT)):
                raise StackFailure(self._reason_of_silence(timeout))
        give_back_memory()  # the run needs little of the memory of the start
        return self.monitor.moving_since - self.begin

    def _reason_of_silence(self, timeout: float) -> str:
        if not self.monitor.nodes:
            return (
                "the nodes are running, but no messages arrive: discovery does not work in this ROS domain; check "
                "ROS_AUTOMATIC_DISCOVERY_RANGE, ROS_DOMAIN_ID and the loopback interface with `humanoid doctor`"
            )
        worst = [f"{name}: {status.message}" for name, status in self.monitor.nodes.items() if status.level]
        return f"nothing moves after {timeout:g} s: {'; '.join(worst) or 'see the logs'} ({self.directory})"

    def check(self) -> None:
        """Restart dead or hung nodes; stop if the parent process has ended.

        Raises:
            StackFailure: if an essential node died too often.
        """
        if self._parent not in (None, os.getppid()) and not self.stopped.is_set():
            warn("stopping: the parent process has ended (to continue without it: nohup or setsid)")
            self.stopped.set()
        if not self.supervisor.watch():
            dead = [c.name for c in self.supervisor.children.values() if c.gave_up and c.essential]
            raise StackFailure(f"{', '.join(dead)} could not be kept alive: see {self.directory}")

    def run(self, seconds: float, show: Callable[[float, str], None] | None = None) -> float:
        """Run for some time, or until a signal; return the duration [s].

        Args:
            seconds: duration [s], may be infinite.
            show: called with elapsed time [s] and a status line.

        Raises:
            StackFailure: if an essential node died too often.
        """
        begin = time.monotonic()
        while not self.stopped.is_set() and time.monotonic() - begin < seconds:
            self.monitor.spin(0.1)
            self.check()
            if show is not None:
                show(time.monotonic() - begin, self.monitor.line())
        return time.monotonic() - begin

    def stop(self) -> float:
        """Stop everything; return the duration [s].

        Driver nodes stop first, while commands still arrive, so that the robot decelerates under control, then the
        recorder.
        """
        self._stopping = True
        if self._monitor is not None:
            self._monitor.close()
            self._monitor = None
        took = self.supervisor.stop(first=[*self._powering(), RECORDER])
        while self._names:
            self._names.pop().release()
        return took

    def processes(self) -> list[dict[str, Any]]:
        """Return name, process id and startup time [s] of processes."""
        return [
            {"name": c.name, "pid": c.process.pid if c.process else None, "ready_s": round(c.ready_after, 2)}
            for c in self.supervisor.children.values()
        ]

    def _complain(self, name: str, text: str) -> None:
        if self._stopping and "killed" not in text:
            return  # nodes that miss nodes already stopped
        self.complaints.append((name, text))
        if self._held is not None:
            self._held.append(f"{name}: {text}")
        elif not self.quiet:
            warn(f"  {name}: {text}")

    def _print_held(self, but: str = "") -> None:
        """Print held complaints that `but` does not contain."""
        lines, self._held = self._held or [], None
        for line in lines:
            if not self.quiet and line not in but:
                warn(f"  {line}")


def parent_to_live_with() -> int | None:
    """Return the process id that this process must not outlive, or None.

    None for session leaders (setsid, systemd, container), under nohup, and for background jobs of scripts.
    """
    ignored = signal.SIG_IGN in (signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGINT))
    if ignored or os.getsid(0) == os.getpid():
        return None
    return os.getppid()


class Monitor:
    """ROS node in this process that listens to a stack.

    Attributes:
        nodes: last diagnostics by node.
        moving_since: begin of the motion [s, monotonic]; 0: not yet.
    """

    def __init__(self, namespace: str = "", commands: str = COMMANDS, player: str = "trajectory_streamer") -> None:
        """Subscribe.

        Args:
            commands: topic of the commands that show motion.
            player: node that plays a clip.
        """
        choose_discovery(os.environ)
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.signals import SignalHandlerOptions
        from sensor_msgs.msg import JointState

        from humanoid_control.nodes.base.messages import EVENTS, STREAM_IN
        from humanoid_control.nodes.base.runner import make_executor

        self._context = rclpy.Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self.node: Any = rclpy.create_node("monitor", namespace=namespace, context=self._context)
        self._executor = make_executor(context=self._context)
        self._executor.add_node(self.node)
        self.nodes: dict[str, NodeStatus] = {}
        self.moving_since, self._player = 0.0, player
        self._first: np.ndarray | None = None
        self._states = False
        self._subscriptions = [
            self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, EVENTS),
            self.node.create_subscription(JointState, "joint_states", self._on_states, STREAM_IN),
            self.node.create_subscription(JointState, commands, self._on_commands, STREAM_IN),
        ]

    def _on_diagnostics(self, m: Any) -> None:
        self.nodes |= node_statuses(m)

    def _on_states(self, _: Any) -> None:
        self._states = True

    def _on_commands(self, m: Any) -> None:
        p = np.asarray(m.position or m.velocity or m.effort)  # feedback commands consist of velocities or torques alone
        if self._first is None:
            self._first = p
        elif self._states and p.shape == self._first.shape and np.abs(p - self._first).max(initial=0.0) > 1e-3:
            self.moving_since = time.monotonic()
            # The streams are no longer needed and would only cost time.
            for s in self._subscriptions[1:]:
                self.node.destroy_subscription(s)
            self._subscriptions = self._subscriptions[:1]

    def spin(self, seconds: float) -> None:
        """Handle pending messages, or wait up to `seconds` [s]."""
        self._executor.spin_once(timeout_sec=seconds)

    def listen(self, seconds: float) -> None:
        """Handle all messages for `seconds` [s]."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.spin(left)

    def hold_clip_at(self, seconds: float, timeout: float = 10.0) -> bool:
        """Pause the clip at a time [s]; return True if the streamer answered."""
        from std_msgs.msg import Float64
        from std_srvs.srv import Trigger

        from humanoid_control.nodes.base.messages import EVENTS

        seek = self.node.create_publisher(Float64, "clip/seek", EVENTS)
        pause = self.node.create_client(Trigger, f"{self._player}/pause")
        end, answer = time.monotonic() + timeout, None
        while time.monotonic() < end:
            self.spin(0.05)
            if answer is None and pause.service_is_ready() and seek.get_subscription_count():
                seek.publish(Float64(data=seconds))
                answer = pause.call_async(Trigger.Request())
            if answer is not None and answer.done():
                return True
        return False

    def line(self) -> str:
        """Return the message of the worst node, or 'all ok'."""
        worst = max(self.nodes.items(), key=lambda item: item[1].level, default=None)
        if worst is None:
            return "waiting"
        name, status = worst
        return "all ok" if status.level == 0 else f"{name}: {status.message}"[:70]

    def close(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        self._context.try_shutdown()
