"""Real nodes over real DDS: a domain of their own, this machine only, everything waited for, nothing slept for."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from test.ending import end
from test.places import domain

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2: run `make setup`, or source a ROS 2 installation")

TIMEOUT = 60.0
# Of nodes that may take their time [Hz]: slower than a user has them, so that several tests fit on two busy cores.
RATES = {"simulator": 200.0, "state_estimator": 100.0, "whole_body_ik": 100.0}


class Graph:
    """A small ROS node of the test's own, and the node processes it talks to."""

    def __init__(self, folder: Path, warm, rates: dict[str, float]) -> None:
        self.folder, self.warm, self.rates, self.processes = folder, warm, rates, {}
        os.environ.update(
            ROS_DOMAIN_ID=domain("nodes"),
            ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST",
            ROS_LOG_DIR=str(folder / "ros"),
            FASTDDS_BUILTIN_TRANSPORTS="UDPv4",
            PYTHONUNBUFFERED="1",
        )
        from rclpy.signals import SignalHandlerOptions

        from humanoid_control.nodes.base.runner import make_executor

        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self.node = rclpy.create_node("test")
        self.executor = make_executor()  # the other one takes a third of a core from the nodes
        self.executor.add_node(self.node)
        self.heard: dict[str, list] = {}
        self.clients: dict = {}

    def start(self, node: str, *parameters: str, wait: bool = True, args: tuple[str, ...] = (), fresh: bool = False):
        """Start a node process, parameters as 'name:=value'; wait for its READY. A node is one of ours, or a script.

        It is a fork of a process that is warm, see `WarmProcess`; `fresh`: from the interpreter's start. Without
        real-time priority: on two busy cores it starved the DDS threads of the test, which then missed topics for good.
        """
        if node in self.rates and not any(p.startswith("rate:=") for p in parameters):
            parameters = (f"rate:={self.rates[node]}", *parameters)
        # what a busy machine does to the ticks is no matter, except where rates are measured
        parameters = ("priority:=0", *(("missed_warn:=100.0",) if self.rates else ()), *parameters)
        given = ["--ros-args", *(a for p in parameters for a in ("-p", p)), *args]
        script, stem = node.endswith(".py"), Path(node).stem
        module, path = f"humanoid_control.nodes.{node}", self.folder / f"{stem}_{len(self.processes)}.log"
        if fresh or script:
            process = subprocess.Popen(
                [sys.executable, "-u", *([node] if script else ["-m", module]), *given],
                stdout=path.open("w+"),
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        else:
            process = self.warm.start(module, given, dict(os.environ), Path.cwd(), path)
        process.log_path = str(path)
        self.processes[f"{stem}_{len(self.processes)}"] = process
        if wait:
            self.until(lambda: "READY" in self.output(process) or process.poll() is not None, f"{node} ready")
        return process

    def output(self, process) -> str:
        return Path(process.log_path).read_text()

    def listen(self, message: type, topic: str, qos: object = 50) -> list:
        """Collect the messages of a topic."""
        self.heard[topic] = []
        self.node.create_subscription(message, topic, self.heard[topic].append, qos)
        return self.heard[topic]

    def publisher(self, message: type, topic: str, qos: object = 5):
        """A publisher that somebody listens to."""
        publisher = self.node.create_publisher(message, topic, qos)
        self.until(lambda: publisher.get_subscription_count() > 0, f"somebody listens to {topic}")
        return publisher

    def until(self, condition, what: str, timeout: float = TIMEOUT, meanwhile=None) -> None:
        """Take messages until something is the case; `meanwhile` is called every 5 to 20 ms, or as often as it returns.

        Not with every message: what is published meanwhile is often answered, and the answers would keep a core busy.
        """
        end, called = time.monotonic() + timeout, 0.0
        while not condition():
            now = time.monotonic()
            if meanwhile is None:
                called = now
            elif now - called >= 0.005:
                called = now
                meanwhile()
            self.executor.spin_once(timeout_sec=max(called + 0.02 - time.monotonic(), 0.0))
            if time.monotonic() > end:
                logs = "\n".join(f"--- {n}\n{self.output(p)[-1500:]}" for n, p in self.processes.items())
                raise AssertionError(f"waited {timeout:g} s in vain: {what}\n{logs}")

    def spin(self, seconds: float) -> None:
        """Take messages for some time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.executor.spin_once(timeout_sec=0.01)

    def call(self, service: type, name: str, request=None):
        """Call a service and return its answer.

        The answer is lost where the server has not yet discovered who asks, and DDS does not say so: asked again.
        """
        client = self.clients.get(name) or self.node.create_client(service, name)
        self.clients[name] = client
        self.until(client.service_is_ready, f"service {name}")
        asked = []

        def answered() -> bool:
            if not asked or time.monotonic() - asked[-1][0] > 5.0:
                asked.append((time.monotonic(), client.call_async(request or service.Request())))
            return any(future.done() for _, future in asked)

        self.until(answered, f"answer of {name}")
        return next(future for _, future in asked if future.done()).result()

    def diagnostics(self, name: str, meanwhile=None) -> dict:
        """Wait for the next diagnostics of a node: its message and values; `meanwhile` keeps its inputs alive."""
        from diagnostic_msgs.msg import DiagnosticArray

        if "/diagnostics" not in self.heard:
            self.listen(DiagnosticArray, "/diagnostics")
        heard = self.heard["/diagnostics"]
        heard.clear()
        found: dict = {}

        def look() -> bool:
            for array in heard:
                for s in array.status:
                    if s.name.endswith(name):
                        found.update(level=s.level[0], message=s.message, **{v.key: v.value for v in s.values})
            return bool(found)

        self.until(look, f"diagnostics of {name}", meanwhile=meanwhile)
        return found

    def until_said(self, name: str, words: str, meanwhile=None) -> dict:
        """Wait until a node's diagnostics say something ('ok' must be all they say)."""
        found: dict = {}

        def said() -> bool:
            found.update(self.diagnostics(name, meanwhile))
            return found["message"] == "ok" if words == "ok" else words in found["message"]

        self.until(said, f"{name} to say '{words}'")
        return found

    def stop(self, process, number: int = signal.SIGINT) -> tuple[int, float]:
        """Send a signal; exit code and how long it took [s]."""
        begin = time.monotonic()
        process.send_signal(number)
        code = process.wait(60)
        return code, time.monotonic() - begin

    def close(self) -> None:
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(3)
                process.kill()
                process.wait()
        end(self.executor.shutdown, self.node.destroy_node, rclpy.try_shutdown)


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels():
    """A simulator that has to wait for the compiler would not be ready in time."""
    from humanoid_control.warm_up.simulation import compile_kernels, compiled

    if not compiled():
        compile_kernels()


@pytest.fixture
def graph(tmp_path, warm_process, request):
    g = Graph(tmp_path, warm_process, {} if request.node.get_closest_marker("timed") else RATES)
    yield g
    g.close()
